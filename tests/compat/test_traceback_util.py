"""The files whose frames users do not see, under JAX's private names."""

import weft
from weft.compat import traceback_util


def test_files_are_hidden_and_shown():
    hidden = traceback_util._exclude_paths
    count = len(hidden)
    hidden.append("a/library.py")
    assert "a/library.py" in hidden and len(hidden) == count + 1
    weft.extend.source_info_util.register_exclusion("other.py")
    hidden.remove("a/library.py")
    hidden.remove("other.py")
    assert len(hidden) == count and "a/library.py" not in hidden
