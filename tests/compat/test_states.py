"""The options as libraries find them in JAX: objects with a value."""

from weft.compat import states
from weft.options import config


def test_options_have_a_value_and_set_it_within_a_block():
    assert {"debug_nans", "enable_checks", "threefry_partitionable"} <= {*states.__all__}
    option = states.numpy_rank_promotion
    assert (option.value, option.name) == ("allow", "jax_numpy_rank_promotion")
    with option("raise"):
        assert option.value == config.numpy_rank_promotion == "raise"
    assert option.value == "allow" and "ranks" in option.__doc__
