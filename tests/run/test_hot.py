"""The rule that decides if something is hot."""

import weft
from weft.run import hot
from weft.run.hot import COUNTED, HOT, is_hot


def test_what_is_used_often_is_hot_and_few_uses_are_counted():
    assert [is_hot("test", 3) for _ in range(HOT + 1)] == [False] * (HOT - 1) + [True] * 2
    for group in range(2 * COUNTED):
        for key in range(2 * COUNTED if group == 0 else 1):
            is_hot(("test", group), key)
    assert len(hot._USES) <= COUNTED and max(map(len, hot._USES.values())) <= COUNTED
    assert not any(is_hot("loop", i) for _ in range(2 * HOT) for i in range(COUNTED + 44))
    weft.clear_caches()
    weft.clear_caches()
    assert not hot._USES
