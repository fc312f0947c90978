"""Running programs: eager operations, the C++ call path, and the pipeline that compiles.

`observer` is imported when it is first used, because few programs are watched as they run.
"""

from weft.util import import_lazily

__getattr__, __dir__ = import_lazily(__name__, {"weft.run.observer": ""})
