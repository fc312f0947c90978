"""Places of equations, and the names of the scopes that they are in."""

import weft
import weft.numpy as jnp
from weft.errors import HIDDEN_FILES
from weft.extend import source_info_util as source


def test_places_of_equations_have_names():
    with weft.named_scope("outer"), source.extend_name_stack("inner"):
        assert str(source.current_name_stack()) == "outer/inner"
        assert source.current().name_stack == "outer/inner"
    assert "test_source_info_util.py" in source.summarize(source.current())
    assert source.summarize(source.new_source_info()) == ""


def test_stacks_of_names():
    stack = source.new_name_stack("model")
    assert str(stack.transform("jvp").extend("dense")) == "model/jvp(dense)"
    assert not source.new_name_stack().stack
    with weft.named_scope("outer"):
        sine = source.set_name_stack(stack)(jnp.sin)
        assert weft.make_jaxpr(sine)(1.0).eqns[0].source_info.name_stack == "model"
        with source.reset_name_stack():
            assert source.current_name_stack() == source.new_name_stack()
        with source.transform_name_stack("jvp"), source.extend_name_stack("k"):
            assert str(source.current_name_stack()) == "outer/jvp(k)"
        with source.user_context(None, name_stack=stack):
            assert source.current_name_stack() == stack
        with source.user_context(None):
            assert str(source.current_name_stack()) == "outer"


def test_files_of_a_library_are_left_out():
    try:
        source.register_exclusion(__file__)
        assert "test_source_info_util" not in source.summarize(source.current())
    finally:
        HIDDEN_FILES.clear()
