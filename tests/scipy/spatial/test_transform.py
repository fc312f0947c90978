import numpy as np
import pytest
from scipy.spatial import transform as theirs

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import grad, jacfwd, jacrev, jit, vmap
from weft.errors import DtypeError, ShapeError
from weft.scipy.spatial import transform
from weft.scipy.spatial.transform import Rotation, Slerp

UNIT = np.array([0, 0, 0, 1], np.float32)
HALF_TURNS = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0.6, 0, 0.8, 0]]
SEQUENCES = ["xyz", "zxy", "XYZ", "ZYX", "YXZ", "zxz", "ZXZ", "xyx", "YZY"]


@pytest.fixture(scope="module")
def quats():
    rng = np.random.default_rng(0)
    small = np.array([1e-4, -2e-4, 3e-4, 1])
    return np.concatenate(
        [rng.normal(size=(9, 4)), [UNIT, -UNIT, small], HALF_TURNS], dtype=np.float32
    )


def close(got, want, tol=2e-6):
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def same_rotation(got, want, tol=2e-6):
    """Compare quaternions; q and -q are one rotation."""
    got, want = np.asarray(got), np.asarray(want)
    sign = np.sign(np.sum(got * want, -1, keepdims=True))
    close(got * sign, want, tol)


def test_doctests():
    check_examples(transform)


FORMS = {
    "quat": lambda r: r.as_quat(canonical=True),
    "scalar first": lambda r: r.as_quat(scalar_first=True),
    "matrix": lambda r: r.as_matrix(),
    "rotvec": lambda r: r.as_rotvec(),
    "degrees": lambda r: r.as_rotvec(degrees=True) / 57,
    "mrp": lambda r: r.as_mrp(),
    "magnitude": lambda r: r.magnitude(),
    "apply": lambda r: r.apply(np.array([1.0, -2.0, 0.5], np.float32)),
    "back": lambda r: r.apply(np.array([1.0, -2.0, 0.5], np.float32), inverse=True),
    "inv": lambda r: r.inv().as_matrix(),
    "product": lambda r: (r * r[3]).as_matrix(),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("form", FORMS)
def test_forms_are_scipys(form, quats):
    want = FORMS[form](theirs.Rotation.from_quat(quats))
    mine = Rotation.from_quat(quats)
    got = FORMS[form](mine)
    assert got.dtype == np.float32
    close(got, want, 1e-5)
    close(vmap(FORMS[form])(mine[:, None])[:, 0] if form != "product" else got, want, 1e-5)
    if form != "product":
        close(jit(FORMS[form])(mine[1]), want[1], 1e-5)


@pytest.mark.parametrize(
    "form, make", [("matrix", "from_matrix"), ("rotvec", "from_rotvec"), ("mrp", "from_mrp")]
)
def test_forms_lead_back(form, make, quats):
    values = np.asarray(FORMS[form](theirs.Rotation.from_quat(quats)), np.float32)
    got = getattr(Rotation, make)(values)
    same_rotation(got.quat, theirs.Rotation.from_quat(quats).as_quat(), 1e-5)
    same_rotation(getattr(Rotation, make)(values[0]).quat, got.quat[0])


@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler_angles(seq, quats):
    regular = quats[:9]
    want = theirs.Rotation.from_quat(regular).as_euler(seq, degrees=True)
    got = Rotation.from_quat(regular).as_euler(seq, degrees=True)
    close(got, want, 1e-4)
    same_rotation(Rotation.from_euler(seq, got, degrees=True).quat, normal(regular), 1e-5)
    close(
        Rotation.from_euler(seq, got[0] / 57).quat,
        theirs.Rotation.from_euler(seq, want[0] / 57).as_quat(),
        1e-5,
    )


def normal(q):
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler_angles_where_two_axes_fall_together(seq):
    middle = (0, np.pi) if seq[0] == seq[2] else (np.pi / 2, -np.pi / 2)
    angles = np.array([[0.3, m, 0.5] for m in middle])
    r = theirs.Rotation.from_euler(seq, angles)
    got = Rotation.from_quat(r.as_quat().astype(np.float32))
    found = got.as_euler(seq)
    assert not np.any(found[:, 2])
    same_rotation(Rotation.from_euler(seq, found).quat, r.as_quat(), 1e-5)
    assert np.all(np.isfinite(jacrev(lambda q: Rotation(q).as_euler(seq))(got.quat[0])))


@pytest.mark.parametrize("seq, shapes", [("z", [(), (1,), (4, 1)]), ("ZX", [(2,), (4, 2)])])
def test_angles_of_fewer_axes(seq, shapes, rng):
    for shape in shapes:
        angles = rng.normal(size=shape).astype(np.float32)
        want = theirs.Rotation.from_euler(seq, angles).as_quat()
        got = Rotation.from_euler(seq, angles).quat
        assert got.shape == want.shape
        close(got, want)


def test_stacks(quats):
    r = Rotation.from_quat(quats)
    assert len(r) == len(quats) and not r.single and r[0].single and bool(r[0])
    assert [np.asarray(x.quat).tolist() for x in r] == np.asarray(r.quat).tolist()
    assert Rotation.concatenate([r[0], r, r[2:4]]).quat.shape == (len(quats) + 3, 4)
    assert Rotation.identity().quat.tolist() == [0, 0, 0, 1]
    assert Rotation.identity(2, jnp.float16).quat.dtype == jnp.float16
    assert Rotation.identity(2).quat.shape == (2, 4)
    assert weft.tree.leaves(r)[0] is r.quat
    close(jit(lambda r: r * r.inv())(r).magnitude(), np.zeros(len(quats)), 1e-5)
    grid = Rotation.from_quat(quats[:6].reshape(2, 3, 4)).apply(np.ones((3, 3), np.float32))
    close(grid[1], Rotation.from_quat(quats[3:6]).apply(np.ones(3, np.float32)))


def test_mean(quats):
    weights = np.arange(1.0, 10, dtype=np.float32)
    r, s = Rotation.from_quat(quats[:9]), theirs.Rotation.from_quat(quats[:9])
    same_rotation(r.mean().quat, s.mean().as_quat(), 1e-5)
    same_rotation(r.mean(weights).quat, s.mean(weights).as_quat(), 1e-5)


@pytest.mark.parametrize("times", [0.0, 0.25, [0.5, 1.0, 3.0], [1.2]])
def test_slerp(times, quats):
    knots = np.array([0.0, 1.0, 3.0], np.float32)
    want = theirs.Slerp(knots, theirs.Rotation.from_quat(quats[:3]))(times).as_quat()
    s = Slerp.init(knots, Rotation.from_quat(quats[:3]))
    got = s(jnp.array(times)).quat
    assert got.shape == want.shape
    same_rotation(got, want, 1e-5)
    same_rotation(jit(lambda s, t: s(t).quat)(s, jnp.array(times)), want, 1e-5)


DERIVATIVES = {
    "rotvec": lambda v: Rotation.from_rotvec(v).as_rotvec(),
    "matrix": lambda v: Rotation.from_matrix(Rotation.from_rotvec(v).as_matrix()).as_rotvec(),
    "mrp": lambda v: Rotation.from_mrp(Rotation.from_rotvec(v).as_mrp()).as_rotvec(),
    "euler": lambda v: Rotation.from_euler("XYZ", Rotation.from_rotvec(v).as_euler("XYZ"))
    .inv().inv().as_rotvec(),
}  # fmt: skip


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_there_and_back_has_the_derivative_of_nothing(name):
    forward, reverse = (jit(jac(DERIVATIVES[name])) for jac in (jacfwd, jacrev))
    for v in (np.zeros(3), np.full(3, 1e-3), np.array([0.3, -0.2, 0.5]), np.array([0, 0, 2.5])):
        v = v.astype(np.float32)
        close(forward(v), np.eye(3), 1e-5)
        close(reverse(v), np.eye(3), 1e-5)
    close(jit(jacfwd(jacrev(DERIVATIVES["rotvec"])))(np.zeros(3, np.float32)), np.zeros((3, 3, 3)))


def test_derivatives_exist_at_the_identity():
    for form in ("matrix", "rotvec", "mrp", "magnitude", "apply"):
        f = lambda q, form=form: FORMS[form](Rotation.from_quat(q))
        assert np.all(np.isfinite(jacrev(f)(UNIT)))
    velocity = jacfwd(lambda t: Rotation.from_rotvec(t * jnp.array([0.0, 0, 2])).as_matrix())(0.0)
    close(velocity, [[0, -2, 0], [2, 0, 0], [0, 0, 0]])
    assert grad(lambda q: Rotation.from_quat(q).magnitude())(UNIT).tolist() == [0, 0, 0, 0]


def test_dtypes(quats):
    for dtype in (jnp.float16, jnp.bfloat16):
        r = Rotation.from_quat(quats.astype(dtype))
        assert {r.as_rotvec().dtype, r.as_matrix().dtype, r.as_euler("xyz").dtype} == {
            np.dtype(dtype)
        }
    close(Rotation.from_quat(np.array([0, 0, 3, 4])).quat, [0, 0, 0.6, 0.8])
    with weft.enable_x64(True):
        r = theirs.Rotation.from_rotvec([1e-5, 2e-3, -0.03])
        close(Rotation.from_quat(r.as_quat()).as_rotvec(), r.as_rotvec(), 1e-15)
        v = np.array([[1e-3, 2e-2, -0.02], [0.018, 0.019, 0.02]])
        close(Rotation.from_rotvec(v).quat, theirs.Rotation.from_rotvec(v).as_quat(), 1e-15)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda r: Rotation.from_quat(np.ones(3)), ShapeError,
         r"Rotation.from_quat: the last axes must be of sizes 4; got f32\[3\]"),
        (lambda r: Rotation.from_quat([0, 0, 0, 1.0]), DtypeError, "from_quat: .* got a list"),
        (lambda r: Rotation.from_matrix(np.ones((3, 2))), ShapeError, "sizes 3, 3; got"),
        (lambda r: Rotation.from_euler("xyX", np.ones(3)), ValueError, "seq must be 1 or 2 or 3"),
        (lambda r: Rotation.from_euler("xx", np.ones(2)), ValueError, "after itself; got 'xx'"),
        (lambda r: Rotation.from_euler("xyz", np.ones(2)), ShapeError, "sizes 3; got f32"),
        (lambda r: r.as_euler("xy"), ValueError, "seq must be 3 axes .*; got 'xy'"),
        (lambda r: r.apply(np.ones((5, 3))), ShapeError, "vectors must be as many as rotations"),
        (lambda r: r[0][0], TypeError, "needs a stack of rotations; got a single one"),
        (lambda r: len(r[0]), TypeError, "needs a stack of rotations; got a single one"),
        (lambda r: r[0].mean(), TypeError, "needs a stack of rotations; got a single one"),
        (lambda r: r.mean(np.ones(5)), ShapeError, "weights must be a number for each rotation"),
        (lambda r: Rotation.random(0), NotImplementedError, "Hint: Rotation.from_quat"),
        (lambda r: Slerp.init(np.arange(3.0), r[0]), ValueError, "a stack of two or more"),
        (lambda r: Slerp.init(np.arange(4.0), r), ShapeError, "one for each rotation, 3"),
        (lambda r: Slerp.init(-np.arange(3.0), r), ValueError, "must strictly ascend"),
        (lambda r: Slerp.init(np.arange(3.0), r)(np.ones((2, 2))), ShapeError, "or a vector"),
    ],
)  # fmt: skip
def test_errors(call, error, message, quats):
    with pytest.raises(error, match=message):
        call(Rotation.from_quat(quats[:3]))
