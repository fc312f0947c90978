"""Types and primitives of one's own: their rules are used, in and out of programs."""

import dataclasses
import inspect

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.core import ShapedArray
from weft.experimental import hijax

X = np.arange(3, dtype=np.float32)


class Sine(hijax.VJPHiPrimitive):
    """sin, whose derivative is ten times as large."""

    def expand(self, x):
        return jnp.sin(x)

    def vjp_fwd(self, nonzero, x):
        return self(x), x

    def vjp_bwd_retval(self, x, ct):
        return (10 * ct * jnp.cos(x),)

    def batch(self, axis, args, dims):
        assert axis.size == 3
        return -jnp.sin(args[0]), dims[0]


class Cosine(hijax.VJPHiPrimitive):
    """cos, whose derivative is the argument's tangent."""

    def expand(self, x):
        return jnp.cos(x)

    def jvp(self, primals, tangents):
        return self(*primals), tangents[0]


class Scale(hijax.HiPrimitive):
    """x times a number."""

    def to_lojax(self, x, *, by):
        return x * by

    def jvp(self, primals, tangents, *, by):
        return self.bind(*primals, by=by), -tangents[0]


def test_the_rules_of_a_primitive_are_used():
    sine, cosine = Sine(), Cosine()
    for f in (sine, weft.jit(sine)):
        np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-6)
        np.testing.assert_allclose(weft.grad(f)(1.0), 10 * np.cos(1), rtol=1e-6)
        np.testing.assert_allclose(weft.vmap(f)(X), -np.sin(X), rtol=1e-6)
    assert weft.jvp(cosine, (1.0,), (3.0,))[1] == 3 and weft.grad(cosine)(1.0) == 1
    np.testing.assert_allclose(weft.vmap(cosine)(X), np.cos(X), rtol=1e-6)
    scale = Scale("scale")
    assert weft.value_and_grad(lambda x: scale.bind(x, by=3.0))(2.0) == (6, -1)
    with pytest.raises(NotImplementedError, match="VJPHiPrimitive: must define expand"):
        hijax.VJPHiPrimitive()(1.0)


@dataclasses.dataclass(frozen=True)
class Quantized:
    """Small integers and a scale."""

    ints: object
    scale: object


@dataclasses.dataclass(frozen=True)
class QuantizedType(hijax.HiType):
    """The type of such values."""

    shape: tuple

    def lo_ty(self):
        return [ShapedArray(self.shape, np.dtype("int8")), ShapedArray((), np.dtype("float32"))]

    def lower_val(self, x):
        return [x.ints, x.scale]

    def raise_val(self, ints, scale):
        return Quantized(ints, scale)


def test_values_of_a_type_go_through_programs():
    hijax.register_hitype(Quantized, lambda x: QuantizedType(x.ints.shape))
    q = Quantized(jnp.arange(3, dtype="int8"), jnp.float32(2))
    double = lambda q: Quantized(q.ints, q.scale * 2)
    out = weft.lax.fori_loop(0, 3, lambda i, q: double(q), weft.jit(double)(q))
    assert type(out) is Quantized and out.scale == 32
    grads = weft.grad(lambda q: (q.ints * q.scale).sum(), allow_int=True)(q)
    assert grads.scale == 3
    hijax.control_flow_allowed_effects.add_type(KeyError)
    assert hijax.control_flow_allowed_effects.contains(KeyError())


TO_DEFINE = {
    hijax.HiType(): "lo_ty lower_val raise_val",
    hijax.MutableHiType(): "lo_ty_qdd read_loval new_from_loval update_from_loval",
    hijax.VJPHiPrimitive(): "expand jvp vjp_fwd vjp_bwd_retval batch",
    hijax.HiPrimitive("p"): "to_lojax jvp",
}


@pytest.mark.parametrize("of", TO_DEFINE, ids=lambda of: type(of).__name__)
def test_what_a_class_does_not_define_is_refused(of):
    for name in TO_DEFINE[of].split():
        method = getattr(of, name)
        taken = [
            p for p in inspect.signature(method).parameters.values() if p.kind < p.VAR_POSITIONAL
        ]
        with pytest.raises(NotImplementedError) as error:
            method(*taken)
        named = f"{of.name if type(of) is hijax.HiPrimitive else type(of).__name__}: must define"
        assert str(error.value) in ("", f"{named} {name}."), name
