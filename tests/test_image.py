import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import grad, image, jacfwd, jit, value_and_grad, vmap
from weft.cpu.kernels import load_kernels
from weft.errors import DtypeError, ShapeError
from weft.image import ResizeMethod, resize, scale_and_translate

KERNELS = {
    "linear": lambda x: np.maximum(0, 1 - x),
    "cubic": lambda x: np.where(
        x < 1, 1.5 * x**3 - 2.5 * x**2 + 1,
        np.where(x < 2, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2, 0)),
    "lanczos3": lambda x: np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0),
    "lanczos5": lambda x: np.where(x < 5, np.sinc(x) * np.sinc(x / 5), 0),
}  # fmt: skip


def resampled(x, target, method, antialias=True, scale=None, move=0.0):
    """A vector, or several, resampled, output pixel by output pixel."""
    scale = target / len(x) if scale is None else scale
    wide = max(1 / scale, 1) if antialias else 1
    out = np.zeros((target, *x.shape[1:]))
    for i in range(target):
        middle = (i + 0.5 - move) / scale - 0.5
        if -0.5 <= middle <= len(x) - 0.5:
            w = KERNELS[method](np.abs(middle - np.arange(len(x))) / wide)
            out[i] = np.tensordot(w, x, 1) / w.sum()
    return out


def close(got, want, tol=1e-5):
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def test_doctests():
    check_examples(image)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", KERNELS)
def test_resize(method, antialias, rng):
    x = rng.normal(size=(2, 6, 5)).astype(np.float32)
    shapes = (2, 4, 9), (2, 6, 3), (2, 1, 5)
    found = jit(lambda x: [resize(x, s, method, antialias) for s in shapes])(x)
    for shape, got in zip(shapes, found, strict=True):
        want = x
        for axis in (1, 2):
            if shape[axis] != x.shape[axis]:
                want = np.apply_along_axis(resampled, axis, want, shape[axis], method, antialias)
        close(got, want)
    close(resize(x, shape, method, antialias), want)


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("size", [229, 77, 603])
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", [*KERNELS, "area", "cubic-pytorch"])
def test_a_large_image_is_resampled_by_blocks(method, antialias, size, rng):
    x, weights = (rng.normal(size=(3, n)).astype(np.float32) for n in (300, size))

    def moved(x, scale):  # which is not known when traced: one product with all weights
        args = (3, size), (1,), scale, jnp.zeros(1), method, antialias
        return scale_and_translate(x, *args)

    def run(f, *args):
        loss = lambda *args: (jnp.vdot(weights, f(*args)), f(*args))
        return jit(value_and_grad(loss, has_aux=True))(x, *args)

    (_, got), slope = run(lambda x: resize(x, (3, size), method, antialias))
    (_, want), wanted = run(moved, np.array([size / 300], np.float32))
    close(got, want, 1e-4)
    close(slope, wanted, 1e-4)


@pytest.mark.sample(one_in=6)
@pytest.mark.skipif(bool(load_kernels()), reason="the kernels are not built")
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", KERNELS)
def test_pixels_of_large_images_are_made_of_those_near_them(method, antialias, rng):
    # rows in lanes of vectors, the last ones unused; colours; many lanes; one long row
    shapes = ((501, 200), 1, 301), ((3, 400, 200, 3), 2, 150), ((2, 100, 800), 1, 222)
    if method == "linear" and antialias:
        shapes += (((2, 70000), 1, 140000),)
    for shape, axis, size in shapes:
        dtype = np.float64 if axis == 2 else np.float32
        x = rng.normal(size=shape).astype(dtype)
        wanted = (*shape[:axis], size, *shape[axis + 1 :])
        ct = rng.normal(size=wanted).astype(dtype)

        def run(x, ct, wanted=wanted):
            y, back = weft.vjp(lambda x: resize(x, wanted, method, antialias), x)
            if len(wanted) != 3:
                return y, back(ct)[0]
            return vmap(lambda x: resize(x, wanted[1:], method, antialias))(x), back(ct)[0]

        found = []
        for native in (True, False):
            with weft.enable_x64(True), weft.config.scope(native=native):
                found.append(jit(run)(x, ct))
                assert ("weft_resample" in jit(run).lower(x, ct).as_text()) == native
        close(found[0][0], found[1][0], 3e-4)  # without the kernel places are rounded
        close(found[0][1], found[1][1], 3e-4)
        if x.shape[axis] < 1000:
            weights = resampled(np.eye(x.shape[axis]), size, method, antialias)
            want = np.moveaxis(np.tensordot(weights, x, (1, axis)), 0, axis)
            close(found[0][0], want, 1e-5)


def test_large_images_are_staged_alike_on_every_platform(rng):
    x = rng.normal(size=(500, 700))
    fun, texts = lambda x: resize(x, (500, 300), "linear"), set()
    with weft.enable_x64(True):
        for native in (False, True):
            with weft.config.scope(native=native):
                texts.add(str(weft.make_jaxpr(fun)(x)))
        traced, want = jit(fun).trace(x), jit(fun)(x)
    assert len(texts) == 1 and "resize_axis" in texts.pop()
    compiled = traced.lower().compile()  # outside of the scope that it was staged in
    with weft.enable_x64(True):
        np.testing.assert_array_equal(compiled(x), want)


def test_bicubic_is_pytorchs():
    # torch.nn.functional.interpolate(mode="bicubic", align_corners=False) of 0..5 to 4
    x = np.arange(6.0, dtype=np.float32)
    got = resize(x, (4,), "cubic-pytorch", antialias=False)
    close(got, [0.19140625, 1.703125, 3.296875, 4.8085938])
    close(resize(x, (4,), "bicubic-pytorch"), resize(x, (4,), "cubic"))
    close(resize(x[:1], (3,), "cubic-pytorch", antialias=False), [0, 0, 0])


def test_area_is_the_mean_of_what_a_pixel_covers(rng):
    x = rng.normal(size=(6, 4)).astype(np.float32)
    close(resize(x, (3, 2), "area"), x.reshape(3, 2, 2, 2).mean((1, 3)))
    close(resize(np.arange(6.0), (4,), "area"), np.array([1 / 3, 5 / 3, 10 / 3, 14 / 3]))


@pytest.mark.parametrize("size", [1, 3, 4, 6, 9, 13])
def test_nearest(size):
    x = np.arange(6, dtype=np.int16)
    want = x[np.floor((np.arange(size) + 0.5) * 6 / size).astype(int)]
    for options in ({}, {"antialias": False}):
        got = resize(x, (size,), "nearest", **options)
        assert got.dtype == np.int16
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("method", KERNELS)
def test_scale_and_translate(method, rng):
    x = rng.normal(size=(6, 2)).astype(np.float32)
    for scale, move in ((1.0, 1.5), (0.6, 0.5), (1.7, -2.0)):
        args = np.array([scale], np.float32), np.array([move], np.float32)
        want = np.apply_along_axis(resampled, 0, x, 8, method, scale=scale, move=move)
        close(scale_and_translate(x, (8, 2), (-2,), *args, method), want, 1e-4)
    both = scale_and_translate(x, (6, 2), (1, 0), jnp.ones(2), jnp.array([1.0, 0.0]), method)
    close(both[:, 1], x[:, 0])
    assert not np.any(both[:, 0])


def test_derivatives_and_batches(rng):
    x = rng.normal(size=(3, 6)).astype(np.float32)
    for method in ("linear", "cubic", "lanczos3", "area", "cubic-pytorch"):
        f = lambda x, method=method: resize(x, (4,), method)
        squares = lambda x, f=f: jnp.sum(f(x) ** 2)
        every = jit(lambda x, f=f, g=squares: (jacfwd(f)(x[0]), f(x[0]), vmap(f)(x), grad(g)(x[0])))
        matrix, one, mapped, slope = map(np.asarray, every(x))
        close(one, matrix @ x[0])
        close(mapped, x @ matrix.T)
        close(slope, 2 * matrix.T @ one)
    g = lambda s, t: scale_and_translate(x[0], (5,), (0,), s, t, "cubic")
    at = np.array([0.8], np.float32), np.array([0.3], np.float32)
    for i in range(2):
        moved = [
            [v + h * (k == i) for k, v in enumerate(at)]
            for h in (np.float32(1e-3), np.float32(-1e-3))
        ]
        slope = (g(*moved[0]) - g(*moved[1])) / 2e-3
        np.testing.assert_allclose(jacfwd(g, i)(*at)[:, 0], slope, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float16, jnp.bfloat16, np.complex64])
def test_dtypes(dtype):
    x = (np.arange(8) % 3).astype(dtype)
    wide = x.astype(np.complex64 if dtype == np.complex64 else np.float32)
    got = resize(x, (5,), "linear")
    assert got.dtype == (np.float32 if np.dtype(dtype).kind in "bu" else dtype)
    close(got.astype(wide.dtype), resize(wide, (5,), "linear"), 1e-2)
    assert resize(x, (8,), "linear").dtype == got.dtype
    with weft.enable_x64(True):
        y = np.arange(6.0)
        close(resize(y, (4,), "lanczos3"), resampled(y, 4, "lanczos3"), 1e-14)


def test_names():
    assert ResizeMethod.from_string("tricubic") is ResizeMethod.CUBIC
    x = np.arange(6.0)
    np.testing.assert_array_equal(resize(x, (4,), ResizeMethod.LINEAR), resize(x, (4,), "triangle"))
    assert resize(x, (0,), "linear").shape == (0,)
    assert resize(np.float32(2), (), "cubic") == 2


ONE = np.ones(1, np.float32)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: resize(x, (4, 4), "linear"), ShapeError,
         r"resize: shape must have a size for each axis of image; got \(4, 4\) for f32\[6\]"),
        (lambda x: resize(x, (4,), "best"), ValueError, "method must be one of nearest, .*'best'"),
        (lambda x: resize(x, (-1,), "linear"), ShapeError, "must not be negative"),
        (lambda x: resize(x[:0], (3,), "linear"), ShapeError, "image must have pixels along"),
        (lambda x: resize([1.0], (3,), "linear"), DtypeError, "got a list"),
        (lambda x: scale_and_translate(x, (4,), (0,), ONE, ONE, "nearest"), ValueError, "nearest"),
        (lambda x: scale_and_translate(x, (4,), (0,), ONE[0], ONE, "area"), ShapeError,
         "scale must be a vector of a number for each of spatial_dims, 1; got f32"),
        (lambda x: scale_and_translate(x, (4,), (1,), ONE, ONE, "area"), ShapeError, "axis must"),
        (lambda x: scale_and_translate(x[None], (4, 4), (0, 0), ONE, ONE, "area"), ShapeError,
         "spatial_dims must be distinct axes"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(np.ones(6, np.float32))
