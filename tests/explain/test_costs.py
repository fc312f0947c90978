"""The attribution of costs to lines, in programs with known costs."""

import pathlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import weft
from tests.docstrings import check_examples
from weft import lax
from weft import numpy as jnp
from weft.core.source import source_line
from weft.errors import TracerError
from weft.explain import subject as subjects
from weft.explain.costs import Kernel, Work
from weft.explain.machine import Peaks
from weft.explain.memory import Live, Residual
from weft.explain.origins import NOWHERE, Place
from weft.explain.page import STYLE
from weft.explain.report import Report
from weft.explain.subject import Phase, Subject, cache_note
from weft.explain.tables import Table, bytes_text, count_text, seconds_text
from weft.watch import events

GOLDEN = pathlib.Path(__file__).with_name("report.txt")


def works(report):
    """Costs by the text of the line, after the mark in it."""
    return {place.text.partition("# ")[2]: work for place, work in report.lines}


def layers(w, x):
    h = jnp.log(x)  # log
    h = h @ w  # product
    h = jnp.exp(h) * 2  # exp
    return jnp.sum(h)  # sum


@pytest.fixture(scope="module")
def report():
    w, x = jnp.ones((256, 512)), jnp.ones((128, 256))
    return weft.explain(weft.jit(weft.value_and_grad(layers)), runs=2)(w, x)


def test_flops_of_a_product_by_line(report):
    found = works(report)
    # the product, and its transpose in w
    assert found["product"].flops == 2 * (2 * 128 * 256 * 512)
    assert found["log"].transcendentals == 128 * 256
    assert found["product"].flops > 0.95 * sum(work.flops for work in found.values())
    times = [work.seconds for _, work in report.lines]
    assert times == sorted(times, reverse=True)


def test_forward_and_backward_apart(report):
    found = works(report)
    assert found["product"].forward > 0 and found["product"].backward > 0
    assert found["log"].forward > 0 and found["log"].backward == 0  # x is not differentiated


def test_times_add_up(report):
    total = sum(work.seconds for _, work in report.lines)
    assert total == pytest.approx(report.attributed) and total <= report.wall
    assert sum(k.seconds for k in report.kernels) == pytest.approx(total)
    assert [p.name for p in report.phases] == ["tracing", "lowering", "compiling", "running"]


def test_arrays_kept_for_the_backward_pass(report):
    kept = {(r.source, str(r.aval), r.bytes) for r in report.residuals if not r.is_argument}
    # of x, its sine; of exp(h), itself: times two, once more
    assert ("log", "f32[128,256]", 128 * 256 * 4) in kept
    assert {source for source, *_ in kept} <= {"log", "exp", "mul"}


def test_memory_at_the_peak(report):
    live = {x.source.partition(" of ")[0]: x for x in report.live}
    assert live["argument `w`"].bytes == 256 * 512 * 4
    assert report.memory["arguments"] == (256 * 512 + 128 * 256) * 4
    assert report.memory["live"] >= report.memory["arguments"] + report.memory["results"]


def test_the_report_as_text_and_page(report, tmp_path):
    text = str(report)
    assert text.startswith("explain layers\n\nStages\n") and "h = h @ w  # product" in text
    assert "(not attributed)" in text and "This machine at best" in text
    report.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>") and "h = h @ w  # product" in page
    assert "src=" not in page and "href=" not in page
    assert report._repr_html_().startswith("<iframe srcdoc=")


def turn(xs):
    return lax.map(lambda x: jnp.dot(x, x), xs)  # dot


@pytest.mark.parametrize("how", [weft.explain, weft.explain.compile])
def test_turns_of_a_loop_that_runs_as_one_kernel_count(how):
    found = works(how(turn)(jnp.ones((30, 20))))["dot"]
    assert 30 * 2 * 20 <= found.flops < 1.1 * 30 * 2 * 20


def test_how_often_instructions_run():
    def f(x):
        y = lax.scan(lambda c, _: (jnp.sort(c @ x), None), x, None, length=3)[0]
        return lax.while_loop(lambda y: y[0, 0] < 9, lambda y: y @ x, y)

    report = weft.explain(f, runs=1)(jnp.ones((40, 40)))
    sorts = {"sort", "call of weft_sort"}  # with the kernels in C++ and without
    assert {k.runs for k in report.kernels if k.kind in sorts} == {3}
    (product,) = [k for k in report.kernels if k.flops >= 2 * 40**3]
    assert product.runs == 3  # the while has not run
    assert not [k.name for k in report.kernels if k.runs > 1 and NOWHERE in k.places]


def test_what_checkpoint_computes_again_is_backward():
    f = weft.checkpoint(lambda x: jnp.sum(jnp.sin(x) * x))
    subject = Subject(weft.grad(f), (jnp.ones(8),), {})
    found = {subject.attribution.origin(i)[1:] for i in subject.module.by_id.values()}
    assert (True, "cos") in found and (True, "mul") in found


def chain(x):
    y = jnp.exp(x)  # first
    y = y * 3  # second
    return y + x  # third


def broken(x):
    y = jnp.exp(x)  # first
    y = (y * 3) @ x  # second
    return y + x  # third


def kernels_of(f):
    report = weft.explain.compile(f)(jnp.ones((64, 64)))
    assert sum(work.bytes for _, work in report.lines) == sum(k.bytes for k in report.kernels)
    return [{p.text.partition("# ")[2] for p in k.places} for k in report.kernels]


def test_what_is_fused_and_what_prevents_it():
    assert kernels_of(chain) == [{"first", "second", "third"}]
    (kernel,) = weft.explain.compile(chain)(jnp.ones((64, 64))).kernels
    assert kernel.bytes == 2 * 64 * 64 * 4  # in and out
    found = kernels_of(broken)
    assert {"first", "second"} in found and not any({"first", "third"} <= k for k in found)


def accumulate(x):
    y = jnp.cumsum(x)  # cumsum
    return weft.random.permutation(weft.random.key(0), y)  # shuffle


def test_what_lowerings_write_counts_for_the_line_of_their_operation():
    report = weft.explain.compile(weft.jit(accumulate))(jnp.ones(50))
    assert {*works(report)} == {"cumsum", "shuffle"}


def step(x):
    calls = np.float32(2)
    y = weft.pure_callback(lambda x: x * calls, weft.typeof(x), x)  # host
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.cos(c[1])), (0, y))[1]


def test_calls_of_the_host_and_transfers():
    report = weft.explain(step, runs=1)(np.ones(64, np.float32))
    (call,) = [k for k in report.kernels if k.kind == "host call"]
    assert [p.text.partition("# ")[2] for p in call.places] == ["host"]
    assert call.moved == 64 * 4 + 4 and report.host_bytes == 256  # with the number of the run
    assert "Calls of the host" in str(report) and "256 B of arguments are NumPy's" in str(report)


def test_why_it_is_traced_again_and_whether_it_is_compiled():
    f = weft.jit(lambda x: x * 5)
    weft.explain.memory(f)(jnp.ones(2))  # makes a program of its own
    first = weft.explain.compile(f)(jnp.ones(2))
    assert first.phases[0].note == "the first time"
    assert "kept since an earlier call" in str(weft.explain.compile(f)(jnp.ones(2)))
    again = weft.explain.compile(f)(jnp.ones(3))
    assert again.phases[0].note.startswith("again: argument `x` was f32[2], is f32[3].")
    with weft.config.scope(enable_compilation_cache=False):
        off = weft.explain.compile(f)(jnp.ones(4))
    assert off.phases[2].note == "compiled: the disk cache is off (enable_compilation_cache)"


def test_donated_arguments_stay():
    x = jnp.ones(8)
    report = weft.explain(weft.jit(lambda x, n: x + n, donate_argnums=0, static_argnums=1))(x, 2)
    assert not x.is_deleted() and report.memory["results"] == 0


def test_what_is_explained_is_a_function():
    for op in ("explain", "explain.memory", "explain.compile", "numerics"):
        reports = {"explain": weft.explain, "numerics": weft.explain.numerics}
        report = reports.get(op) or getattr(weft.explain, op.partition(".")[2])
        with pytest.raises(TypeError, match=rf"^{op}: needs a function; got 3 of type int"):
            report(3)
    with pytest.raises(TracerError, match="explain: must be called with values; got a traced f32"):
        weft.grad(weft.explain(jnp.sin))(1.0)


def test_examples():
    assert check_examples(weft.explain) >= 6


def test_quantities():
    assert [bytes_text(x) for x in (0, 999, 1000, 12345678)] == ["0 B", "999 B", "1 kB", "12.3 MB"]
    assert [bytes_text(x) for x in (5.99, 2.82, 1234.5)] == ["6 B", "3 B", "1.23 kB"]
    assert [seconds_text(x) for x in (0, 2.5e-7, 0.0123, 61)] == ["", "250 ns", "12.3 ms", "61 s"]
    assert [seconds_text(x) for x in (5e-17, 2e-12)] == ["0 ns", "0.002 ns"]
    assert [count_text(x) for x in (0, 3, 999.96e3)] == ["", "3", "1 M"]
    table = Table("t", ("n", "source"), [("1", "x" * 60), ("22", "y")], numbers=1)
    assert str(table).splitlines() == ["t", "   n  source", f"   1  {'x' * 45}...", "  22  y"]


def made_up_report(file):
    """Return a report with one of each: near and far lines, bounds of all kinds, arguments."""
    report = Report("step", [Phase("trace", 0.0021), Phase("compile", 0, "kept"), Phase("run", 1)])
    place = lambda line: Place(file, line)
    fast, slow = Work(2e-3, 0, 4e6, 0, 1e3, {"dot": None}), Work(1e-3, 5e-3, 2e5, 0, 6e9)
    report.lines = [(place(2), slow), (place(11), fast), (place(30), Work(0, 1e-4, 0, 9e6))]
    report.lines.append((NOWHERE, Work(0, 0, 10, 0, 0)))
    kinds = ["fusion", "collective sum", "host call", *["copy"] * 19]
    report.kernels = [
        Kernel(1e-3 / (i + 1), 0, 100.0 * i, 0, i, {"a": None, "b": None}, f"k{i}", kind, i + 0.5,
               {place(2): None, place(11): None}, 5000 * i)
        for i, kind in enumerate(kinds)
    ]  # fmt: skip
    report.wall, report.attributed, report.peaks = 10e-3, 8.1e-3, Peaks(2e9, 1e9, 1e12)
    report.profiled, report.runs, slow.spread = 15e-3, (3, 30), (0.58, 0.615)
    avals = [weft.ShapeDtypeStruct(shape, "float32") for shape in ((3,), (500, 2), (64,))]
    avals = [weft.make_jaxpr(lambda x: x)(a).in_avals[0] for a in avals]
    report.residuals = [
        Residual(aval, source, made, place(11), source == "x")
        for aval, source, made in zip(avals, ("sin", "x", "<cos>"), (place(2), NOWHERE, place(3)))
    ]
    report.live = [Live("f32[3]", n, f"array {n}", place(n % 7)) for n in (9000, 500, 10, 9)]
    report.memory, report.host_bytes = {"arguments": 12, "temporary": 4096}, 123456
    return report


def test_a_report_in_full(tmp_path, monkeypatch):
    """In the terminal and as a page, with the profile and without one."""
    (tmp_path / "model.py").write_text("".join(f"x{i} = {i} < 1\n" for i in range(1, 32)))
    monkeypatch.chdir(tmp_path)
    report, costs = made_up_report(str(tmp_path / "model.py")), Report("costs")
    costs.lines = [(p, Work(flops=w.flops, operations=w.operations)) for p, w in report.lines]
    costs.kernels = [Kernel(flops=3.0, kind="fusion"), Kernel(bytes=7.0)]
    pages = [r.to_html().replace(STYLE, "") for r in (report, costs)]
    found = "\n\n".join([str(report), str(costs), *pages])
    assert found == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("near, busy", [(2, True), (3, False)])
def test_a_busy_machine_is_named(tmp_path, near, busy):
    report = made_up_report(str(tmp_path / "model.py"))
    report.runs = near, 30
    note = report.line_table().note
    assert f"Means of {near} of 30 runs" in note
    assert ("Other work seems to have delayed the rest" in note) == busy
    assert ("no share differed by more than 3.5 points" in note) != busy


def test_figures_are_proportional_to_the_turns_of_a_loop():
    def f(xs):
        return lax.map(lambda x: jnp.sin(x) @ x, xs)  # each

    few, many = (works(weft.explain.compile(f)(jnp.ones((n, 20))))["each"] for n in (30, 60))
    for name in ("flops", "transcendentals", "bytes"):
        assert getattr(few, name) >= 30 * 20
        assert getattr(many, name) == pytest.approx(2 * getattr(few, name), rel=0.1)


def test_nothing_listens_after_a_report():
    before = [*events._events], [*events._durations]
    weft.explain.compile(turn)(jnp.ones((30, 20)))
    assert ([*events._events], [*events._durations]) == before


def test_where_an_executable_came_from(monkeypatch, tmp_path):
    new, near = [events.COMPILE], [events.COMPILE, events.CACHE_HIT]
    hit = [*near, events.CACHE_RETRIEVAL]
    monkeypatch.setattr(subjects, "default_directory", lambda: None)
    on, off = dict(compilation_cache_dir=str(tmp_path)), dict(compilation_cache_dir=None)
    for how, happened, again, told in [
        (on, [], False, "kept in memory since an earlier call"),
        (on, near, False, "found in memory, as an equal program"),
        (on, hit, False, "loaded from the disk cache"),
        (on | dict(enable_compilation_cache=False), new, False,
         "compiled: the disk cache is off (enable_compilation_cache)"),
        (off, new, False, "compiled: the disk cache is off (WEFT_CACHE_DIR)"),
        (on, new, False, "compiled: this program is not in the disk cache; it is new, or the cache "
         "has it of another machine, jaxlib or XLA_FLAGS"),
        (on, new, True, "compiled: this program is not in the disk cache; it was traced for other "
         "arguments, or the cache has it of another machine, jaxlib or XLA_FLAGS"),
    ]:  # fmt: skip
        with weft.config.scope(**how):
            assert cache_note(happened, again) == told


def test_cells_of_a_notebook_are_called_by_their_numbers(monkeypatch):
    """IPython's names are used in reports, errors and jaxprs. Other files have their own names."""
    cells = {"/tmp/ipykernel_1/42.py": ("Cell", "In[6]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=cells.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    scope = {"jnp": jnp}
    exec(compile("\nf = lambda x: jnp.sin(x)", "/tmp/ipykernel_1/42.py", "exec"), scope)
    report = weft.explain.compile(scope["f"])(jnp.ones(3))
    assert [str(place) for place, _ in report.lines] == ["Cell In[6], line 2"]
    (eqn,) = weft.make_jaxpr(scope["f"])(1.0).jaxpr.eqns
    assert source_line(eqn.source) == "Cell In[6], line 2"
    assert str(Place("/a/model.py", 3)) == "model.py:3"
