"""The transformations and loops that users call: pytrees in, pytrees out.

`devices` is imported when it is first used, because
`weft.numpy` needs it only where an array is put on a device.
"""

from weft.util import import_lazily

__getattr__, __dir__ = import_lazily(__name__, {"weft.api.devices": ""})
