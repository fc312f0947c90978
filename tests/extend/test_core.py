"""weft.core and weft.extend.core: the same objects under the field's names."""

import numpy as np
import pytest

import weft
from weft import jit, lax, make_jaxpr, vmap
from weft.errors import ShapeError
from weft.extend import core


def test_every_public_name_is_there():
    for module in (weft.core, core, core.primitives):
        assert all(hasattr(module, name) for name in module.__all__)
    assert core.primitives.sin_p is lax.sin_p


def test_jaxprs_are_functions_and_hold_others():
    closed = make_jaxpr(lambda x: jit(lambda y: y * 2)(x))(1.0)
    assert isinstance(closed, core.ClosedJaxpr) and isinstance(closed.jaxpr, core.Jaxpr)
    assert float(core.jaxpr_as_fun(closed)(2.0)[0]) == 4.0
    assert float(weft.core.eval_jaxpr(closed.jaxpr, closed.consts, 2.0)[0]) == 4.0
    (inner,) = core.subjaxprs(closed.jaxpr)
    assert list(core.jaxprs_in_params(closed.eqns[0].params)) == [inner]
    core.check_jaxpr(closed.jaxpr)


def test_an_equation_written_by_hand():
    aval = weft.core.ShapedArray((3,), np.float32)
    x, y = core.gensym()(aval), core.gensym()(aval)
    eqn = core.new_jaxpr_eqn([x], [y], core.primitives.sin_p, dict(lax_params()))
    jaxpr = core.Jaxpr([], [x], [y], [eqn])
    core.check_jaxpr(jaxpr)
    np.testing.assert_allclose(jaxpr(np.ones(3, np.float32))[0], np.sin(np.ones(3)), rtol=1e-6)


def test_primitives_take_programs_with_their_values():
    """JAX holds a ClosedJaxpr in the same way; its constants are written into the program."""
    jaxpr = make_jaxpr(jit(lambda x: 2 * x))(1.0)
    with_const = make_jaxpr(lambda x: x * np.arange(3.0, dtype=np.float32))(1.0)
    assert with_const.consts and with_const.invars is with_const.jaxpr.invars
    params = {**jaxpr.eqns[0].params, "jaxpr": with_const}
    call = lambda x: core.primitives.jit_p.bind(x, **params)[0]
    for run in (call, jit(call)):
        np.testing.assert_array_equal(run(2.0), [0, 2, 4])
    assert float(weft.grad(lambda x: call(x).sum())(2.0)) == 3
    x, y = core.Var(with_const.in_avals[0]), core.Var(with_const.out_avals[0])
    eqn = core.new_jaxpr_eqn([x], [y], core.primitives.jit_p, params)
    program = core.Jaxpr([], [x], [y], [eqn], core.no_effects, jaxpr.jaxpr.debug_info)
    np.testing.assert_array_equal(vmap(program)(np.ones(2))[0], [[0, 1, 2]] * 2)
    assert program.debug_info == jaxpr.debug_info and "<lambda>" in program.debug_info[1]


def test_programs_say_what_they_are_made_of():
    info = make_jaxpr(lambda x, y: {"a": x["k"] + y})({"k": 1.0}, 2.0).debug_info
    assert info.arg_names == ("x['k']", "y") and info.result_paths == ("result['a']",)
    assert info.traced_for == "jit" and "test_core.py:" in info.func_src_info
    assert core.Jaxpr([], [], [], []).debug_info == ("jit", "", None, None)


def lax_params():
    """The parameters that `sin` has, whatever they are."""
    return make_jaxpr(lax.sin)(1.0).eqns[0].params


def test_types():
    aval = weft.core.ShapedArray((3, 4), np.float32)
    assert core.mapped_aval(3, 0, aval).shape == (4,)
    assert core.unmapped_aval(5, 1, aval).shape == (3, 5, 4)
    assert core.mapped_aval(3, None, aval) is core.unmapped_aval(3, None, aval) is aval
    for axis in (aval.ndim, -1):
        with pytest.raises(ShapeError, match="mapped_aval: axes must be distinct and name axes of"):
            core.mapped_aval(3, axis, aval)
    assert core.primal_dtype_to_tangent_dtype(np.dtype(np.int32)) == weft.dtypes.float0
    assert np.ndarray in core.array_types and int not in core.array_types
    assert core.valid_jaxtype(1.0) and not core.valid_jaxtype("a")
    assert weft.core.max_dim(2, 3) == 3 and weft.core.min_dim(2, 3) == 2


def test_where_we_are():
    seen = []

    def look(x):
        seen.append(
            (
                core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                core.unsafe_get_axis_names_DO_NOT_USE(),
                core.nonempty_axis_env_DO_NOT_USE(),
            )
        )
        return x

    look(1.0), jit(look)(1.0), vmap(look, axis_name="i")(np.ones(2))
    assert seen == [(False, False, [], False), (True, False, [], False), (False, True, ["i"], True)]
    trace = core.find_top_trace()
    with core.set_current_trace(trace):
        assert core.find_top_trace() is trace


def test_concrete_or_error():
    assert core.concrete_or_error(int, 3.0) == 3
    with pytest.raises(weft.errors.ConcretizationTypeError, match="use a static size"):
        jit(lambda x: core.concrete_or_error(int, x, "use a static size"))(3)
