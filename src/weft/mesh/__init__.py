"""Devices of this process, and the parts of arrays they hold: meshes, specs, shardings."""
