"""The programs of JAX's README of 2020, from top to bottom, `jax` read as `weft`.

The blocks stand as they were printed, minus signs put back; they run in this order in one
namespace, and each test checks what its block made or printed. Where a block only shows speed or
dummy data it is smaller, and says so. What is expected comes from the README or NumPy, and where
that says so from JAX 0.10.2 run beside it.
"""

import contextlib
import io

import numpy
import pytest
import scipy.special

import weft
from weft.tree_util import tree_structure

BLOCKS = {}

BLOCKS["opening"] = """
import weft.numpy as np
from weft import grad, jit, vmap

def predict(params, inputs):
  for W, b in params:
    outputs = np.dot(inputs, W) + b
    inputs = np.tanh(outputs)
  return outputs

def logprob_fun(params, inputs, targets):
  preds = predict(params, inputs)
  return np.sum((preds - targets)**2)

grad_fun = jit(grad(logprob_fun))  # compiled gradient evaluation function
perex_grads = jit(vmap(grad_fun, in_axes=(None, 0, 0)))  # fast per-example grads
"""

# The README prints np.dot(x, x.T) / 2 of all rows; these are the rows whose values it shows.
BLOCKS["matrix product"] = """
import weft.numpy as np
from weft import random
key = random.PRNGKey(0)
x = random.normal(key, (5000, 5000))[:3]
print(np.dot(x, x.T) / 2)  # fast!
print(np.dot(x, x.T) / 2)  # even faster!
"""

BLOCKS["logistic regression"] = """
from weft import grad, jit
import weft.numpy as np

def sigmoid(x):
  return 0.5 * (np.tanh(x / 2.) + 1)

# Outputs probability of a label being true according to logistic model.
def logistic_predictions(weights, inputs):
  return sigmoid(np.dot(inputs, weights))

# Training loss is the negative log-likelihood of the training labels.
def loss(weights, inputs, targets):
  preds = logistic_predictions(weights, inputs)
  label_logprobs = np.log(preds) * targets + np.log(1 - preds) * (1 - targets)
  return -np.sum(label_logprobs)

# Build a toy dataset.
inputs = np.array([[0.52, 1.12, 0.77],
                   [0.88, -1.08, 0.15],
                   [0.52, 0.06, -1.30],
                   [0.74, -2.49, 1.39]])
targets = np.array([True, True, False, True])

# Define a compiled function that returns gradients of the training loss
training_gradient_fun = jit(grad(loss))

# Optimize weights using gradient descent.
weights = np.array([0.0, 0.0, 0.0])
print("Initial loss: {:0.2f}".format(loss(weights, inputs, targets)))
for i in range(100):
  weights -= 0.1 * training_gradient_fun(weights, inputs, targets)

print("Trained loss: {:0.2f}".format(loss(weights, inputs, targets)))
"""

BLOCKS["grad"] = """
from weft import grad
import weft.numpy as np

def tanh(x):  # Define a function
  y = np.exp(-2.0 * x)
  return (1.0 - y) / (1.0 + y)

grad_tanh = grad(tanh)  # Obtain its gradient function
print(grad_tanh(1.0))   # Evaluate it at x = 1.0
# prints 0.41997434161402603
"""

BLOCKS["hessian"] = """
from weft import jit, jacfwd, jacrev
def hessian(fun):
  return jit(jacfwd(jacrev(fun)))
"""

BLOCKS["control flow"] = """
def abs_val(x):
  if x > 0:
    return x
  else:
    return -x

abs_val_grad = grad(abs_val)
print(abs_val_grad(1.0))   # prints 1.0
print(abs_val_grad(-1.0))  # prints -1.0 (abs_val is re-evaluated)
"""

# 5000 rows and columns in the README, to show the speed of a fused kernel.
BLOCKS["jit"] = """
import weft.numpy as np
from weft import jit

def slow_f(x):
  # Element-wise ops see a large benefit from fusion
  return x * x + x * 2.0

x = np.ones((500, 500))
fast_f = jit(slow_f)
"""

# The README leaves params and input_batch to the reader.
BLOCKS["vmap"] = """
keys = random.split(random.PRNGKey(1), 3)
params = [(random.normal(k, (4, 4)), np.arange(4.0)) for k in keys[:2]]
input_batch = random.normal(keys[2], (5, 4))

def predict(params, input_vec):
  assert input_vec.ndim == 1
  for W, b in params:
    output_vec = np.dot(W, input_vec) + b  # `input_vec` on the right-hand side!
    input_vec = np.tanh(output_vec)
  return output_vec

from functools import partial
predictions_of_loop = np.stack(list(map(partial(predict, params), input_batch)))

from weft import vmap
predictions = vmap(partial(predict, params))(input_batch)
# or, alternatively
predictions_of_in_axes = vmap(predict, in_axes=(None, 0))(params, input_batch)
"""

# The loss is the logistic regression's, and its weights are the params.
BLOCKS["gradients of each example"] = """
per_example_gradients = vmap(partial(grad(loss), weights))(inputs, targets)
"""

BLOCKS["random numbers"] = """
import weft.random as random
key = random.PRNGKey(0)
print(random.normal(key, shape=(3,)))  # [ 1.81608593 -0.48262325  0.33988902]
print(random.normal(key, shape=(3,)))  # [ 1.81608593 -0.48262325  0.33988902]

key = random.PRNGKey(0)
key, subkey = random.split(key)
print(random.normal(subkey, shape=(3,)))  # [ 1.1378783  -1.22095478 -0.59153646]
key, subkey = random.split(key)
print(random.normal(subkey, shape=(3,)))  # [-0.06607265  0.16676566  1.17800343]
"""

# The dummy batches are of 128 images in the README; of 8 here and below.
BLOCKS["stax"] = """
import weft.numpy as np
from weft import random
from weft.experimental import stax
from weft.experimental.stax import Conv, Dense, MaxPool, Relu, Flatten, LogSoftmax

# Use stax to set up network initialization and evaluation functions
net_init, net_apply = stax.serial(
    Conv(32, (3, 3), padding='SAME'), Relu,
    Conv(64, (3, 3), padding='SAME'), Relu,
    MaxPool((2, 2)), Flatten,
    Dense(128), Relu,
    Dense(10), LogSoftmax,
)

# Initialize parameters, not committing to a batch shape
rng = random.PRNGKey(0)
in_shape = (1, 28, 28, 1)
out_shape, net_params = net_init(rng, in_shape)

# Apply network to dummy inputs
inputs = np.zeros((8, 28, 28, 1))
predictions = net_apply(net_params, inputs)
"""

BLOCKS["optimizers"] = """
from weft.experimental import optimizers
from weft import jit, grad

# Define a simple squared-error loss
def loss(params, batch):
  inputs, targets = batch
  predictions = net_apply(params, inputs)
  return np.sum((predictions - targets)**2)

# Use optimizers to set optimizer initialization and update functions
opt_init, opt_update, get_params = optimizers.momentum(step_size=1e-3, mass=0.9)

# Define a compiled update step
@jit
def step(i, opt_state, batch):
  params = get_params(opt_state)
  g = grad(loss)(params, batch)
  return opt_update(i, g, opt_state)

# Dummy input data stream
data_generator = ((np.zeros((8, 28, 28, 1)), np.zeros((8, 10)))
                  for _ in range(10))

# Optimize parameters in a loop
opt_state = opt_init(net_params)
for i in range(10):
  opt_state = step(i, opt_state, next(data_generator))
net_params = get_params(opt_state)
"""


class Run:
    """The blocks that have run: the output of each, and the names after it."""

    def __init__(self):
        self.namespace, self.printed, self.after = {}, {}, {}

    def until(self, name):
        """Run the blocks up to `name` that have not run; its names, and the lines it printed."""
        for block, source in BLOCKS.items():
            if block not in self.after:
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(source, f"README: {block}", "exec"), self.namespace)
                self.printed[block] = out.getvalue().splitlines()
                self.after[block] = dict(self.namespace)
            if block == name:
                return self.after[name], self.printed[name]
        raise KeyError(name)


@pytest.fixture(scope="module")
def readme():
    return Run()


def numbers(lines):
    """The numbers that lines of printed arrays hold."""
    return [float(word) for word in " ".join(lines).replace("[", " ").replace("]", " ").split()]


close = lambda a, b, rtol=2e-5, atol=1e-6: numpy.testing.assert_allclose(a, b, rtol, atol)


def test_opening(readme):
    names, _ = readme.until("opening")
    rng = numpy.random.default_rng(0)
    shapes = ((3, 4), (4, 2))
    params = [(rng.normal(size=s), rng.normal(size=s[1:])) for s in shapes]
    inputs, targets = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    (w1, b1), (w2, b2) = params
    hidden = numpy.tanh(inputs @ w1 + b1)
    d2 = 2 * (hidden @ w2 + b2 - targets)
    d1 = d2 @ w2.T * (1 - hidden**2)
    expected = [
        (numpy.einsum("ni,nj->nij", inputs, d1), d1),
        (numpy.einsum("ni,nj->nij", hidden, d2), d2),
    ]
    each = names["perex_grads"](params, inputs, targets)
    whole = names["grad_fun"](params, inputs, targets)
    for layer in range(2):
        for k in range(2):
            close(each[layer][k], expected[layer][k], rtol=1e-4, atol=1e-5)
            close(whole[layer][k], expected[layer][k].sum(0), rtol=1e-4, atol=1e-5)


def test_matrix_product(readme):
    _, printed = readme.until("matrix product")
    assert printed[:3] == printed[3:]
    # Sums of 5000 products in float32, in any order; those beside the diagonal are of size 35.
    close(numbers(printed[:1]), [2.52727051e03, 8.15895557e00, -8.53276134e-01], 3e-6, 1e-3)


def test_logistic_regression(readme):
    names, printed = readme.until("logistic regression")
    inputs = numpy.array(
        [[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]]
    )
    targets, weights = numpy.array([1, 1, 0, 1]), numpy.zeros(3)
    for _ in range(100):
        weights -= 0.1 * inputs.T @ (scipy.special.expit(inputs @ weights) - targets)
    trained = -scipy.special.log_expit((2 * targets - 1) * (inputs @ weights)).sum()
    assert printed == [f"Initial loss: {4 * numpy.log(2):.2f}", f"Trained loss: {trained:.2f}"]
    close(names["weights"], weights, rtol=1e-4)


def test_grad(readme):
    names, printed = readme.until("grad")
    close(float(printed[0]), 0.41997434161402603, rtol=1e-6)
    with weft.enable_x64(True):
        close(names["grad_tanh"](1.0), 0.41997434161402603, rtol=1e-15, atol=0)
        third = weft.grad(weft.grad(names["grad_tanh"]))(1.0)  # "to any order"
    t = numpy.tanh(1.0)
    close(third, (1 - t**2) * (6 * t**2 - 2), rtol=1e-13)


def test_hessian(readme):
    names, _ = readme.until("hessian")
    x = numpy.array([0.5, -1.0, 2.0], numpy.float32)
    found = names["hessian"](lambda x: x[0] ** 3 * x[1] + weft.numpy.sin(x[2]))(x)
    expected = [[6 * x[0] * x[1], 3 * x[0] ** 2, 0], [3 * x[0] ** 2, 0, 0], [0, 0, -numpy.sin(2.0)]]
    close(found, expected)


def test_control_flow(readme):
    _, printed = readme.until("control flow")
    assert printed == ["1.0", "-1.0"]


def test_jit(readme):
    names, _ = readme.until("jit")
    assert names["fast_f"](names["x"]).shape == (500, 500)
    assert (names["fast_f"](names["x"]) == 3).all() and (names["slow_f"](names["x"]) == 3).all()


def test_vmap(readme):
    names, _ = readme.until("vmap")
    x = numpy.asarray(names["input_batch"], numpy.float64)
    for w, b in names["params"]:
        out = x @ numpy.float64(w).T + numpy.float64(b)
        x = numpy.tanh(out)
    for name in ("predictions", "predictions_of_loop", "predictions_of_in_axes"):
        close(names[name], out, rtol=1e-4, atol=1e-5)


def test_gradients_of_each_example(readme):
    names, _ = readme.until("gradients of each example")
    inputs, weights = numpy.float64(names["inputs"]), numpy.float64(names["weights"])
    residuals = scipy.special.expit(inputs @ weights) - [1, 1, 0, 1]
    close(names["per_example_gradients"], inputs * residuals[:, None])


def test_random_numbers(readme):
    _, printed = readme.until("random numbers")
    expected = [
        [1.81608593, -0.48262325, 0.33988902],
        [1.81608593, -0.48262325, 0.33988902],
        [1.1378783, -1.22095478, -0.59153646],
        [-0.06607265, 0.16676566, 1.17800343],
    ]
    close([numbers([line]) for line in printed], expected, rtol=1e-6)


def test_stax(readme):
    names, _ = readme.until("stax")
    assert names["out_shape"] == (1, 10)
    shapes = [tuple(a.shape for a in layer) for layer in names["net_params"] if layer]
    assert shapes == [
        ((3, 3, 1, 32), (1, 1, 1, 32)),
        ((3, 3, 32, 64), (1, 1, 1, 64)),
        ((27 * 27 * 64, 128), (128,)),
        ((128, 10), (10,)),
    ]
    predictions = numpy.asarray(names["predictions"])
    assert predictions.shape == (8, 10)
    close(numpy.exp(predictions).sum(1), numpy.ones(8))
    assert (predictions == predictions[0]).all()


def test_optimizers(readme):
    before = readme.until("stax")[0]["net_params"]
    names, _ = readme.until("optimizers")
    after = names["net_params"]
    assert tree_structure(after) == tree_structure(before)
    zeros = names["np"].zeros((8, 28, 28, 1)), names["np"].zeros((8, 10))
    least = 8 * 10 * numpy.log(10) ** 2  # of ten equal probabilities
    first, last = (float(names["loss"](params, zeros)) for params in (before, after))
    assert least < last < first
    close([first, last], [424.2261962890625, 424.1625061035156], rtol=1e-6)  # from JAX 0.10.2
    assert (before[0][0] == after[0][0]).all()  # no image, no gradient of the first filters
    assert not (before[8][1] == after[8][1]).all()
    assert list(names["data_generator"]) == []


def test_what_is_supported(readme):
    np = readme.until("opening")[0]["np"]
    host = numpy.arange(6 * 2 * 4.0).reshape(6, 2, 4)
    A = np.array(host)
    x, y = 1.5, 2.5
    assert (A[[5, 1, 3], :, 2:4] == host[[5, 1, 3], :, 2:4]).all()
    assert np.sum(np.array([x, y])) == 4
    assert A[0].astype("int32").dtype == A[0].astype(np.int32).dtype == numpy.int32
    assert np.add(1, np.array([2], np.float32)).dtype == numpy.float32
    assert weft.jit(lambda A: A * 2 if A.shape[0] > 2 else A)(A)[1, 0, 0] == 16
    assert [a.shape for a in A] == [(2, 4)] * 6
    host[0, 0], host[1] = 7, host[1] + 3
    B = weft.ops.index_update(A, weft.ops.index[0, 0], 7)
    B = weft.ops.index_add(B, weft.ops.index[1], 3)
    assert (host == B).all() and A[0, 0, 1] == 1
    i = np.array(2)
    piece = weft.jit(lambda A, i: weft.lax.dynamic_slice(A, (i, 0, 0), (2, 2, 4)))(A, i)
    assert (piece == A[2:4]).all()


def test_loud_errors(readme):
    np = readme.until("opening")[0]["np"]
    A, x = np.arange(6.0).reshape(3, 2), np.array(1.0)

    def assign(A):
        A[0, 0] = 1.0

    with pytest.raises(weft.errors.MutationError, match=r"x = x\.at\[0, 0\]\.set\(value\)"):
        assign(A)
    with pytest.raises(TypeError, match=r"got a list. Hint: jnp.array"):
        np.sum([x, x])
    with pytest.raises(weft.errors.TracerBoolConversionError, match="jnp.where"):
        weft.jit(lambda x: x if x > 0 else -x)(x)
    with pytest.raises(IndexError, match="lax.dynamic_slice"):
        weft.jit(lambda A, i: A[i : i + 2])(A, 1)
    with pytest.raises(weft.errors.NonConcreteBooleanIndexError, match="where"):
        weft.jit(lambda A, b: A[b])(A, A > 1)
