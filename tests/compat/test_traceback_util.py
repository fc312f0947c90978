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


def test_innermost_place_of_an_equation():
    (eqn,) = weft.make_jaxpr(lambda x: x * 2.0)(1.0).eqns
    for source in (eqn.source_info, eqn.source_info.traceback):
        frame = traceback_util.user_frame(source)
        assert (frame.file_name, frame.start_line) == (__file__, frame.end_line)
        assert "<lambda>" in frame.function_name and frame.start_column < frame.end_column
    assert traceback_util.user_frame(None) is None
