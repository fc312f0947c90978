"""Devices of this process, and how arrays lie on them: meshes, specs, shardings."""
