"""Inlining, on toy programs."""

from tests.core import toys
from tests.core.toys import add, cos, f32, jit, make, mul, sin
from weft.passes.check import check_jaxpr
from weft.passes.inline import inline_calls


def text(jaxpr):
    return jaxpr.pretty_print(width=1000)


def test_inline_puts_programs_in_place_of_calls():
    inner = jit(lambda x, y: (mul(sin(x), y), y, 2.0), f32(), f32(), call=toys.inlined_pjit)
    kept = jit(cos, f32(), name="kept")

    def program(x):
        a, b, c = inner(x, 3.0)
        d, _, _ = inner(a, b)
        return kept(add(d, c))

    jaxpr = make(program, f32())
    flat = inline_calls(jaxpr)
    assert text(flat) == (
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 3.0; d:f32[] = sin c; "
        "e:f32[] = mul d 3.0; f:f32[] = add e 2.0; "
        "g:f32[] = jit[name=kept jaxpr={ lambda ; f:f32[]. let g:f32[] = cos f in (g,) }] f "
        "in (g,) }"
    )
    check_jaxpr(flat)
    assert inline_calls(jaxpr) is flat
    assert inline_calls(flat) is flat
    assert len(jaxpr.eqns) == 4


def test_inline_goes_through_nested_calls():
    call = sin
    for depth in range(5):
        call = jit(call, f32(), name=f"f{depth}", call=toys.inlined_pjit)
    flat = inline_calls(make(lambda x: call(call(x)), f32()))
    assert text(flat) == "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin b in (c,) }"


def test_inline_keeps_source_lines():
    flat = inline_calls(make(jit(lambda x: sin(x), f32(), call=toys.inlined_pjit), f32()))
    assert "toys.py" in flat.pretty_print(source_info=True)
