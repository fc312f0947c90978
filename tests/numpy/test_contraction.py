"""einsum against NumPy: subscripts, lists of axes, axes of size 1, its path."""

import numpy as np
import pytest

import weft.numpy as jnp
from tests.settings import ALL
from weft import config, jit, jvp, make_jaxpr


def draw(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


EINSUMS = [
    "i,i", "i,i->i", "i,j->ij", "ij,jk", "ij,jk->ki", "ij,kj->ik", "bij,bjk->bik", "ij->ji",
    "ij->", "ii", "ii->i", "iij->j", "ij,ij->", "ijk->kj", "i,j,k->kji", "ij,jk,kl->il",
    "bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk", "...ij,...jk->...ik", "...i->...", "i...,i->...",
    "ab,b,bc->ac", "ij,ji", "iji->j", "ij,j->ij", "ijk,k->ij", "kj,ij,k->i",
]  # fmt: skip


SIZES = dict(zip("abcdhijklmqkb", (2, 5, 3, 4, 2, 3, 3, 3, 2, 2, 3, 3, 5), strict=True))


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("subscripts", EINSUMS)
def test_einsum(subscripts, rng):
    terms = subscripts.partition("->")[0].split(",")
    sizes = {**SIZES, "i": 3, "j": 3, "k": 3}
    xs = [draw(rng, *(2,) * ("..." in t), *(sizes[n] for n in t.replace("...", ""))) for t in terms]
    if subscripts == "i...,i->...":
        xs = [draw(rng, 3, 2), draw(rng, 3)]
    expected = np.einsum(subscripts, *xs)
    got = jnp.einsum(subscripts, *xs)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jit(lambda *a: jnp.einsum(subscripts, *a))(*xs), got, rtol=1e-5)


def draw_einsum(rng):
    """Random subscripts of up to four operands, with repeated axes, ellipses and axes of size 1."""
    sizes = {name: int(rng.integers(1, 4)) for name in "abcde"}
    batch = rng.integers(1, 3, rng.integers(0, 3))
    terms, xs = [], []
    for _ in range(rng.integers(1, 5)):
        names = [*rng.choice([*sizes], rng.integers(0, 4))]
        shape = [sizes[n] for n in names]
        if len({*names}) == len(names) and rng.random() < 0.2:
            shape = [1 if rng.random() < 0.3 else n for n in shape]
        at = rng.integers(0, len(names) + 1)
        more = batch[rng.integers(0, len(batch) + 1) :] if rng.random() < 0.5 else None
        if more is not None:
            names[at:at] = ["..."]
            shape[at:at] = [1 if rng.random() < 0.2 else n for n in more]
        terms.append("".join(names))
        xs.append(rng.standard_normal(shape))
    text = ",".join(terms)
    if rng.random() < 0.6:
        known = [*dict.fromkeys(text.replace(".", "").replace(",", ""))]
        kept = [*rng.permutation(known)][: rng.integers(0, len(known) + 1)]
        dots = ["..."] if "..." in text else []
        text += "->" + "".join([*dots, *kept] if rng.random() < 0.5 else [*kept, *dots])
    return text, xs


@pytest.mark.parametrize("seed", range(50 if ALL else 2))
def test_random_einsums(seed):
    """Forty in one program and in eager calls, with their derivatives along the operands."""
    rng = np.random.default_rng(seed)
    cases = [draw_einsum(rng) for _ in range(40)]
    wants = [np.einsum(text, *xs) for text, xs in cases]

    def run(*operands):
        return [jnp.einsum(text, *xs) for (text, _), xs in zip(cases, operands, strict=True)]

    operands = [xs for _, xs in cases]
    with config.scope(enable_x64=True):
        outs, dots = jit(lambda *xs: jvp(run, xs, xs))(*operands)
        for (text, xs), want, out, dot in zip(cases, wants, outs, dots, strict=True):
            assert out.shape == want.shape, text
            np.testing.assert_allclose(out, want, rtol=1e-9, atol=1e-9, err_msg=text)
            # each operand moves by itself: a product of n operands grows by n times its value
            np.testing.assert_allclose(dot, len(xs) * want, rtol=1e-9, atol=1e-9, err_msg=text)
        for text, xs in cases[:4]:
            np.testing.assert_allclose(jnp.einsum(text, *xs), np.einsum(text, *xs), rtol=1e-9)


def test_einsum_broadcasts_axes_of_size_one(rng):
    a, b = draw(rng, 1, 3), draw(rng, 2, 3)
    for subscripts in ("ij,ij->ij", "ij,ij->j", "ij,ij->i", "ij,ij->"):
        np.testing.assert_allclose(
            jnp.einsum(subscripts, a, b), np.einsum(subscripts, a, b), rtol=1e-5, atol=1e-6
        )


def test_einsum_takes_any_sign_as_a_name(rng):
    a = rng.normal(size=(2, 1, 3))
    np.testing.assert_allclose(jnp.einsum("k1_->_k1", a), np.einsum("kab->bka", a), rtol=1e-5)


def test_einsum_with_lists_of_axes(rng):
    a, b = draw(rng, 2, 3), draw(rng, 3, 4)
    np.testing.assert_allclose(jnp.einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b, rtol=1e-5)
    np.testing.assert_allclose(jnp.einsum(a, [7, 3], b, [3, 9]), a @ b, rtol=1e-5)


def test_einsum_path_is_opt_einsums(rng):
    a, b, c = draw(rng, 10, 2), draw(rng, 2, 10), draw(rng, 10, 3)
    path, text = jnp.einsum_path("ij,jk,kl->il", a, b, c)
    assert path == [(1, 2), (0, 1)]
    assert "Complete contraction" in str(text)


def test_operands_keep_their_place_in_einsum():
    """No transposes where the other order of operands spares them."""
    a, b = jnp.ones((2, 3)), jnp.ones((4, 3))
    text = str(make_jaxpr(lambda a, b: jnp.einsum("ik,jk->ji", a, b))(a, b))
    assert text.count("dot_general") == 1 and "transpose" not in text


def test_ellipses_stand_for_as_many_axes_as_there_are():
    a, b, c = (np.arange(np.prod(s)).reshape(s) + 1.0 for s in ((2, 3, 4), (3, 4), (4,)))
    for text, operands in [
        ("...i,...i", (a, b)), ("...i,i...", (b, a.transpose(2, 0, 1))), ("...->...", (a,)),
        ("i...,...i->i...", (b, b.T)), ("...,...", (a, c)), ("...ij,...jk", (a, b.T)),
        ("...i->...", (c,)), ("...,...i,i", (c[:3], a, c)), ("i...->...", (a,)),
        ("a...b,b->...a", (a, c)),
    ]:  # fmt: skip
        np.testing.assert_allclose(jnp.einsum(text, *operands), np.einsum(text, *operands), 1e-5)


def test_the_name_of_an_optimizer_is_checked():
    a = jnp.ones((2, 2))
    with pytest.raises(ValueError, match="einsum: optimize must be a bool, .*; got 'best'"):
        jnp.einsum("ij,jk,kl", a, a, a, optimize="best")
