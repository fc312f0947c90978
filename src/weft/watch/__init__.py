"""Watch programs as they run: NaNs, keys used twice, leaked tracers, events.

`key_reuse` is imported when it is first used, because few programs are watched for that.
"""

from weft.util import import_lazily

__getattr__, __dir__ = import_lazily(__name__, {"weft.watch.key_reuse": ""})
