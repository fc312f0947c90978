"""Keys used twice: which programs are refused, eagerly and traced, and what the errors name."""

import inspect
import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import debug_key_reuse, jit, lax, nn, random
from weft.control.jit import jit_p
from weft.core.primitive import Primitive
from weft.errors import KeyReuseError

X = jnp.arange(3)
YES = jnp.array(True)


def both(key):
    random.bits(key)
    return random.bits(key)


def split_then_bits(key):
    random.split(key)
    return random.bits(key)


def view(key):
    random.bits(key.reshape(1)[0])
    return random.bits(key)


def same_element(key):
    ks = random.split(key, 3)
    random.bits(ks[0])
    return random.bits(ks[0])


def unpacked(key):
    a, b, _ = random.split(key, 3)
    random.bits(a)
    random.bits(b)
    return random.bits(a)


def element_then_all(key):
    ks = random.split(key, 3)
    random.bits(ks[1])
    return weft.vmap(random.bits)(ks)


def all_then_element(key):
    ks = random.split(key, 3)
    weft.vmap(random.bits)(ks)
    return random.bits(ks[1])


def one_for_all_rows_then_again(key):
    weft.vmap(lambda x, k: random.bits(k, dtype=np.uint32) + x, (0, None))(X, key)
    return random.bits(key)


def stacked_twice(key):
    words = random.key_data(key)
    return weft.vmap(random.bits)(jnp.stack([words, words]))


def const_of_scan(key):
    return lax.scan(lambda c, x: (c, random.bits(key)), 0, X)


def carry_of_scan(key):
    return lax.scan(lambda k, x: (k, random.bits(k)), key, X)


def swapped_carry_of_scan(key):
    def body(pair, x):
        a, b = pair
        return (b, a), random.bits(a)

    return lax.scan(body, tuple(random.split(key)), X)


def xs_of_scan_then_element(key):
    ks = random.split(key, 3)
    lax.scan(lambda c, k: (c, random.bits(k)), 0, ks)
    return random.bits(ks[2])


def stacked_by_scan(key):
    def body(k, x):
        k, sub = random.split(k)
        random.bits(sub)
        return k, sub

    _, used = lax.scan(body, key, X)
    return random.bits(used[1])


def cond_then_again(key):
    lax.cond(YES, random.bits, lambda k: jnp.uint32(0), key)
    return random.bits(key)


def used_in_a_branch_that_gives_it_back(key):
    def use(k):
        random.bits(k)
        return k

    return random.bits(lax.cond(YES, use, lambda k: random.split(k)[0], key))


def const_of_while(key):
    return lax.while_loop(lambda i: i < 3, lambda i: i + 1 + 0 * random.randint(key, (), 0, 2), 0)


def while_condition(key):
    return lax.while_loop(lambda k: random.uniform(k) < 0.1, lambda k: random.split(k)[0], key)


def jitted_twice(key):
    f = weft.jit(lambda k: random.bits(k))
    f(key)
    return f(key)


def jitted_hands_on(key):
    k, _ = weft.jit(lambda k: (k, random.bits(k)))(key)
    return random.bits(k)


def remat_of_a_fault(key):
    f = lambda x: jnp.sin(x * random.normal(key)) * random.normal(key)
    return weft.grad(weft.checkpoint(f))(1.0)


def custom_rule(key):
    f = weft.custom_jvp(lambda k: random.bits(k))
    f.defjvp(lambda primals, tangents: (f(*primals), f(*primals)))
    f(key)
    return f(key)


def functions_here():
    return [f for f in globals().values() if getattr(f, "__module__", "") == __name__]


WRONG = functions_here()[:-1]


def fold_in_each_time(key):
    return [random.bits(random.fold_in(key, i)) for i in range(3)]


def fold_in_of_a_used_key(key):
    random.bits(key)
    return random.fold_in(key, 1)


def elements(key):
    a, b, c = random.split(key, 3)
    return random.bits(a), random.bits(b), random.bits(c)


def clones(key):
    other = random.clone(key)
    random.bits(key)
    return random.bits(other), random.bits(random.clone(key))


def one_for_all_rows(key):
    return weft.vmap(lambda x, k: x * random.normal(k), (0, None))(jnp.ones(3), key)


def scan_that_splits(key):
    def body(k, x):
        k, sub = random.split(k)
        return k, random.bits(sub)

    return lax.scan(body, key, X)


def scan_that_folds(key):
    return lax.scan(lambda k, x: (k, random.bits(random.fold_in(k, x))), key, X)


def scan_of_one_turn(key):
    return lax.scan(lambda c, x: (c, random.bits(key)), 0, X[:1])


def each_branch(key):
    return lax.cond(YES, random.bits, lambda k: random.bits(k) + 1, key)


def split_in_one_branch_and_given_on_by_the_other(key):
    def body(k, x):
        done = random.bernoulli(random.fold_in(k, x))
        return lax.cond(done, lambda k: random.split(k)[0], lambda k: k, k), x

    return lax.scan(body, key, X)


def while_that_splits(key):
    def body(state):
        k, total = state
        k, sub = random.split(k)
        return k, total + random.uniform(sub)

    return lax.while_loop(lambda state: state[1] < 1, body, (key, 0.0))


def gradients(key):
    return weft.grad(lambda x: x * random.normal(key))(1.0)


def remat(key):
    return weft.value_and_grad(weft.checkpoint(lambda x: jnp.sin(x * random.normal(key))))(1.0)


def rejection(key):
    a, b, c = random.split(key, 3)
    return random.gamma(a, 2.0), random.poisson(b, 3.0), random.permutation(c, 5)


def from_one_seed(key):
    seed = random.bits(key)
    ks = [random.fold_in(random.key(i, impl="unsafe_rbg"), seed) for i in range(2)]
    return [random.bits(k) for k in ks]


RIGHT = functions_here()[len(WRONG) + 1 :]
HOWS = [lambda f: f, weft.jit]


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("how", HOWS, ids=["eager", "jit"])
@pytest.mark.parametrize("f", WRONG, ids=lambda f: f.__name__)
def test_reuse_is_refused(f, how):
    with debug_key_reuse(), pytest.raises(KeyReuseError, match="random: a key must be used once"):
        how(f)(random.key(0))
    how(f)(random.key(0))  # and only there


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("how", HOWS, ids=["eager", "jit"])
@pytest.mark.parametrize("f", RIGHT, ids=lambda f: f.__name__)
def test_one_use_is_allowed(f, how):
    with debug_key_reuse():
        how(f)(random.key(0))


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_other_generators_and_raw_words(impl):
    for key in (random.key(0, impl=impl), random.PRNGKey(0)):
        with debug_key_reuse():
            elements(key)
            with pytest.raises(KeyReuseError):
                random.bits(key)


def message(f, *args):
    with debug_key_reuse(), pytest.raises(KeyReuseError) as error:
        f(*args)
    return str(error.value)


def line(f, text):
    rows, start = inspect.getsourcelines(f)
    at = next(i for i, row in enumerate(rows) if text in row)
    return f"test_key_reuse.py:{start + at}"


@pytest.mark.parametrize("how", HOWS, ids=["eager", "jit"])
def test_the_error_names_both_uses(how):
    def f(key):
        x = random.normal(key)
        return x + random.uniform(key)

    assert message(how(f), random.key(0)) == (
        "random: a key must be used once; got one used by "
        f"`random.normal(key)` at {line(f, 'normal')} and again by "
        f"`random.uniform(key)` at {line(f, 'uniform')}. "
        "Hint: key, subkey = random.split(key), and use the subkey."
    )


@pytest.mark.parametrize("how", HOWS, ids=["eager", "jit"])
def test_of_several_uses_the_one_of_the_first_key_is_named(how):
    """By its place among the keys, whenever it was; where all are used at once, too."""

    def f(key):
        keys = random.split(key, 4)
        second = random.normal(keys[1])
        first = random.uniform(keys[0])
        other = random.bits(keys[3])
        return second + first + other + weft.vmap(random.normal)(keys)

    found = message(how(f), random.key(0))
    assert f"used by `random.uniform(keys[0])` at {line(f, 'first =')} and again by" in found
    assert "second" not in found and line(f, "other =") not in found


@pytest.mark.parametrize(
    ("i", "text"), [(0, "# of the left"), (1, "# of the right"), (2, "random.normal(a[2])")]
)
def test_what_a_branch_gives_was_used_as_in_the_first_that_used_it(i, text):
    def f(key):
        keys = random.split(key, 6)
        a, b = keys[:3], keys[3:]

        def left():
            random.normal(a[2])
            random.normal(a[0])  # of the left
            return a

        def right():
            random.uniform(b[2])
            random.uniform(b[1])  # of the right
            return b

        return random.bits(lax.switch(jnp.int32(0), [left, right])[i])

    assert f"at {line(f, text)}" in message(weft.jit(f), random.key(0))


def test_programs_that_are_kept_name_the_line_that_calls_them():
    def f(key):
        random.normal(random.clone(key))
        first = random.normal(key)
        return first + random.normal(key)

    found = message(f, random.key(0))
    assert line(f, "first = ") in found and line(f, "return") in found


def test_calls_of_one_function_are_told_apart_by_where_they_are():
    draw = weft.jit(lambda k: random.normal(k))

    def f(key):
        x = draw(key)
        return x, draw(key)

    this = test_calls_of_one_function_are_told_apart_by_where_they_are
    inner = f"`random.normal(k)` at {line(this, 'draw =')}"
    found = message(f, random.key(0))
    assert f"{inner} from `draw(key)` at {line(f, 'x =')} and again by {inner}" in found
    assert f"from `draw(key)` at {line(f, 'return')}." in found


def test_a_loop_is_named():
    found = message(const_of_scan, random.key(0))
    assert re.search(r"in each turn of a loop by `random.bits\(key\)` at .* from `lax.scan", found)
    assert "twice among the keys of `weft.vmap(random.bits)" in message(
        stacked_twice, random.key(0)
    )


def test_a_refused_call_uses_nothing_up():
    a, b = random.split(random.key(0))
    f = weft.jit(lambda a, b: (random.bits(a), both(b)))
    with debug_key_reuse():
        with pytest.raises(KeyReuseError):
            f(a, b)
        random.bits(a)
        random.bits(b)


def test_programs_of_primitives_that_say_nothing_are_looked_into():
    class Each(Primitive):
        """A program applied to the first row of its operand."""

        name = "each"
        memoize_type = False

        def abstract_eval(self, x, *, jaxpr):
            return jaxpr.out_avals

        def impl(self, x, *, jaxpr):
            return jit_p.impl(x[0], jaxpr=jaxpr, name="each")

        def lower(self, hlo, x, *, jaxpr):
            return [hlo.constant(0, a) for a in jaxpr.out_avals]

    each = Each()
    program = weft.make_jaxpr(random.bits)(random.PRNGKey(0)).jaxpr

    def f(words):
        each.apply(words, jaxpr=program)
        return random.bits(words[1])

    with debug_key_reuse(), pytest.raises(KeyReuseError):
        weft.jit(f)(random.key_data(random.split(random.key(0))))


def test_lowering_looks_too_and_the_numbers_are_the_same():
    with debug_key_reuse():
        with pytest.raises(KeyReuseError):
            weft.jit(both).lower(random.key(0))
        inside = weft.jit(elements)(random.key(0))
    assert inside == weft.jit(elements)(random.key(0))


def test_nothing_is_looked_at_when_it_is_off(monkeypatch):
    def forbidden(*args):
        raise AssertionError("a walk")

    monkeypatch.setattr(weft.watch.key_reuse.Walk, "run", forbidden)
    key = random.key(5)
    f = weft.jit(lambda k: random.bits(k))
    assert f(key) == f(key) == random.bits(key)
    assert random.clone(key) is key


ONES, SHAPE = jnp.ones(4), (3,)
# Calls of every sampler, by all of its ways: bounds that are near, far, or of both kinds.
DRAWS = {
    "ball": lambda k: random.ball(k, 3, shape=SHAPE),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, SHAPE),
    "beta": lambda k: random.beta(k, 0.01 * ONES, 3.0),
    "binomial": lambda k: random.binomial(k, 1e6 * ONES, jnp.array([1e-6, 0.3, 0.9, 0.5])),
    "bits": lambda k: random.bits(k, SHAPE, "uint8"),
    "categorical": lambda k: random.categorical(k, ONES, shape=SHAPE),
    "categorical_apart": lambda k: random.categorical(k, ONES, shape=SHAPE, replace=False),
    "cauchy": lambda k: random.cauchy(k, SHAPE),
    "chisquare": lambda k: random.chisquare(k, ONES),
    "choice": lambda k: random.choice(k, 5, SHAPE),
    "choice_apart": lambda k: random.choice(k, 5, SHAPE, replace=False),
    "choice_p": lambda k: random.choice(k, 4, SHAPE, p=ONES / 4),
    "choice_p_apart": lambda k: random.choice(k, 4, SHAPE, p=ONES / 4, replace=False),
    "dirichlet": lambda k: random.dirichlet(k, ONES, SHAPE),
    "double_sided_maxwell": lambda k: random.double_sided_maxwell(k, 0.0, 1.0, SHAPE),
    "exponential": lambda k: random.exponential(k, SHAPE),
    "f": lambda k: random.f(k, 2.0, 3.0, SHAPE),
    "fold_in": lambda k: random.fold_in(k, 3),
    "gamma": lambda k: random.gamma(k, 0.01 * ONES),
    "generalized_normal": lambda k: random.generalized_normal(k, 2.0, SHAPE),
    "geometric": lambda k: random.geometric(k, 0.3, SHAPE),
    "gumbel": lambda k: random.gumbel(k, SHAPE, mode="high"),
    "laplace": lambda k: random.laplace(k, SHAPE),
    "loggamma": lambda k: random.loggamma(k, ONES),
    "logistic": lambda k: random.logistic(k, SHAPE),
    "lognormal": lambda k: random.lognormal(k, shape=SHAPE),
    "maxwell": lambda k: random.maxwell(k, SHAPE),
    "multinomial": lambda k: random.multinomial(k, 10, ONES / 4),
    "multivariate_normal": lambda k: random.multivariate_normal(k, ONES, jnp.eye(4), SHAPE),
    "normal": lambda k: random.normal(k, SHAPE, complex),
    "orthogonal": lambda k: random.orthogonal(k, 3),
    "pareto": lambda k: random.pareto(k, 2.0, SHAPE),
    "permutation": lambda k: random.permutation(k, jnp.ones((3, 4)), 1, independent=True),
    "poisson": lambda k: random.poisson(k, jnp.array([0.1, 30.0, 1e7])),
    "rademacher": lambda k: random.rademacher(k, SHAPE),
    "randint": lambda k: random.randint(k, SHAPE, 0, 200, "uint8"),
    "rayleigh": lambda k: random.rayleigh(k, 2.0, SHAPE),
    "split": lambda k: random.split(k, 3),
    "t": lambda k: random.t(k, 2.0, SHAPE),
    "triangular": lambda k: random.triangular(k, 0.0, 1.0, 2.0, SHAPE),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 1.0, SHAPE),
    "truncated_far": lambda k: random.truncated_normal(k, 5.0, 9.0, SHAPE),
    "truncated_both": lambda k: random.truncated_normal(k, jnp.array([0.0, 5.0]), 9.0),
    "uniform": lambda k: random.uniform(k, SHAPE, minval=2 * jnp.ones(3), maxval=3.0),
    "wald": lambda k: random.wald(k, 2.0, SHAPE),
    "weibull_min": lambda k: random.weibull_min(k, 2.0, 3.0, SHAPE),
    "glorot_normal": lambda k: nn.initializers.glorot_normal()(k, (4, 4)),
    "init_truncated": lambda k: nn.initializers.truncated_normal()(k, (4, 4)),
    "init_orthogonal": lambda k: nn.initializers.orthogonal()(k, (4, 4)),
}
NO_DRAWS = {"Key", "PRNGKey", "clone", "key", "key_data", "key_dtype", "key_impl", "wrap_key_data"}


@pytest.mark.parametrize("name", DRAWS)
def test_samplers_use_their_key_once(name):
    """Nothing is compiled, which takes half a second for each."""
    with debug_key_reuse():
        jit(DRAWS[name]).lower(random.key(0))


@pytest.mark.sample(one_in=5)
@pytest.mark.parametrize("name", DRAWS)
def test_samplers_use_their_key_once_eagerly(name, caplog):
    with debug_key_reuse():
        DRAWS[name](random.key(0))
    assert not caplog.records


def test_programs_are_searched_without_compiling_them():
    with debug_key_reuse(), pytest.raises(KeyReuseError, match="one used by `random.bits"):
        jit(both).lower(random.key(0))


def test_every_sampler_is_in_the_table():
    assert set(random.__all__) - NO_DRAWS <= set(DRAWS)


def test_a_clone_in_a_program_is_no_mistake(caplog):
    jit(lambda k: random.normal(k) + random.normal(random.clone(k)))(random.key(0))
    assert not caplog.records


def test_the_names_of_jax():
    with weft.config.scope(jax_debug_key_reuse=True), pytest.raises(KeyReuseError):
        both(random.key(0))
    with debug_key_reuse(False):
        both(random.key(0))


def test_a_program_that_uses_a_key_twice_is_told_of_once(caplog):
    def noisy(key):
        return random.normal(key) + random.uniform(key)

    with weft.config.scope(enable_compilation_cache=False):
        with weft.config.scope(hints=False):
            jit(lambda key: noisy(key))(random.key(0))
        assert not caplog.records
        for _ in range(2):
            jit(lambda key: noisy(key))(random.key(0))
        jit(lambda key: random.normal(random.split(key)[0]))(random.key(0))
    (said,) = caplog.records
    assert "one used by `random.normal(key)` at test_key_reuse.py" in said.getMessage()
