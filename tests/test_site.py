"""The site: the reference lists every public name, and what pages refer to is there."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import json
import pathlib
import re
import sys

import pytest

import weft
from tests.test_house import public_modules

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


sys.path.append(str(ROOT / "tools" / "site"))  # its files import each other


def load_tool(name):
    """Load a file of tools/site/, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference, charts = load_tool("reference"), load_tool("charts")
notebooks, words = load_tool("notebooks"), load_tool("words")


def listed_names():
    for module in public_modules().values():
        for name in module.__all__:
            if name[:2] != "__" and not reference.is_module(getattr(module, name)):
                yield f"{module.__name__}.{name}"


def test_the_reference_is_of_every_public_name():
    assert set(reference.public_modules()) == set(public_modules())
    described = [
        f"{name}.{key}"
        for name, module in reference.public_modules().items()
        for keys in reference.group_names(name, reference.public_names(module)).values()
        for key in keys
    ]
    assert sorted(described) == sorted(listed_names())


@pytest.mark.slow
def test_pages_describe_every_public_name(tmp_path):
    """Each has an entry on its page, and the examples run."""
    count = reference.write_pages(tmp_path)
    pages = {page.stem: page.read_text() for page in tmp_path.glob("*.md")}
    own_pages = {page.stem: page.read_text() for page in tmp_path.glob("names/*.md")}
    assert len({stem.lower() for stem in own_pages}) == len(own_pages)  # disks that ignore case
    missing = []
    for full in listed_names():
        module, _, name = full.rpartition(".")
        entry = re.compile(rf"^:+{{py:\w+}} {re.escape(name)}(?=[(\n])", re.M)
        own = [text for stem, text in pages.items() if stem.partition("-")[0] == module]
        own.append(own_pages.get(full, ""))
        missing += [full] * (not any(map(entry.search, own)))
    assert not missing and count == len(list(listed_names()))


def test_modules_that_are_called_are_described_as_functions_are():
    for name in ("weft.explain", "weft.explain.numerics"):
        text = reference.describe_module(name, importlib.import_module(name))
        assert "Return" in text and "\nArgs:\n" not in text


def test_an_entry_has_signature_parameters_example_and_counterpart():
    entry = reference.describe("weft.numpy.sum", weft.numpy.sum, run=False)
    assert entry.startswith("::::::{py:function} sum(a")
    assert "- `promote_integers`: True, the default, adds" in entry
    assert "```pycon\n>>> " in entry and ">>> jnp.sum(" in entry
    assert "[numpy.sum](https://numpy.org/" in entry
    assert "The same as {py:obj}`weft.numpy.abs`." in reference.describe(
        "weft.numpy.absolute", weft.numpy.absolute, run=False
    )


def test_docstrings_become_markdown():
    doc = "\n".join(["Not `more *than*` |x| < y_z::", "", "    x = 1", "", ">>> 1", "1"])
    text = reference.convert_docstring(doc, "weft")
    assert text == (
        "Not `more *than*` \\|x\\| \\< y\\_z:\n\n```python\nx = 1\n```\n\n```pycon\n>>> 1\n1\n```"
    )
    assert reference.convert_text("`jit`, `jnp.sum`", "weft") == (
        "{py:obj}`jit <weft.jit>`, {py:obj}`jnp.sum <weft.numpy.sum>`"
    )


def test_examples_are_of_names_that_exist_and_print():
    assert not set(reference.read_examples()) - reference.all_names()
    assert reference.run_example("x = 2\nx + 1") == [">>> x = 2", ">>> x + 1", "3"]


def test_the_chart_of_the_readme_is_of_the_benchmarks():
    """`python tools/site/charts.py` draws it again."""
    assert (DOCS / "headline.svg").read_text() == charts.headline() + "\n"


def test_every_table_of_the_benchmarks_is_a_chart():
    text = (DOCS / "benchmarks.md").read_text()
    page = charts.draw_page(text)
    ratios = len(re.findall(r"^\| \S+/\S+ \|.*\| [\d.]+x \|", text, re.M))
    assert page.count("<rect") == ratios > 50
    assert len(charts.read_rows(text)) == ratios


def test_every_chart_is_labelled_in_words():
    """A case whose label is its own name is one that reads well: `op/median`."""
    found = charts.read_rows((DOCS / "benchmarks.md").read_text())
    labels = {case: words.label(case) for case in found}
    assert not [label for label in labels.values() if "_" in label.replace("shard_map", "")]
    assert max(map(len, labels.values())) <= 42
    assert {case.partition("/")[0] for case in found} <= set(words.GROUPS)


def test_every_example_has_its_run_in_the_gallery():
    """`python tools/make_gallery.py NAME` makes it."""
    names = re.findall(r"^\| `make example-(\w+)`", (ROOT / "examples/README.md").read_text(), re.M)
    gallery = DOCS / "gallery"
    assert {p.stem for p in gallery.glob("*.txt")} == set(names)
    assert {p.stem.rpartition("-")[0] for p in gallery.glob("*.png")} == set(names)
    assert all(p.stat().st_size < 150_000 for p in gallery.iterdir())


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=lambda p: p.stem)
def test_tutorials_quote_what_is_in_the_programs(page):
    quotes = re.findall(r"```{literalinclude} (/\S+)\n((?::.*\n)*)", page.read_text())
    assert len(quotes) > 3
    for file, options in quotes:
        file = (DOCS if file.startswith("/gallery") else ROOT) / file[1:]
        text = file.read_text()
        for name in re.findall(r":pyobject: (\w+)", options):
            assert name in {getattr(node, "name", "") for node in ast.parse(text).body}
        for line in re.findall(r':(?:start|end)-at: "(.*)"', options):
            assert line in text


def anchors_of(page: pathlib.Path) -> set[str]:
    """The places of a page, as headings give them."""
    heads = re.findall(r"^#+ (.+)", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_pages_and_places(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    found = re.findall(r"\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"", text)
    for link in map("".join, found):
        path, _, place = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = page.parent / path if path else page
        made = path.startswith("../gallery/") and path.endswith(".md")  # when the site is built
        assert made or target.exists(), link
        assert not place or place in anchors_of(target), link


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path, monkeypatch):
    pytest.importorskip("sphinx")
    pytest.importorskip("pydata_sphinx_theme")
    build, check = load_tool("build"), load_tool("check")
    monkeypatch.setattr(build, "BUILD", tmp_path)
    monkeypatch.setattr(build, "SOURCE", tmp_path / "source")
    monkeypatch.setattr(sys, "argv", ["build.py"])
    assert build.main() == 0
    count, broken = check.find_broken_links(tmp_path / "html")
    assert count > 10_000 and not broken


def test_every_public_function_has_an_example():
    """In its docstring or in examples.txt, where the names that are given one exist."""
    examples = reference.read_examples()
    missing = []
    for full in set(listed_names()):
        module, _, name = full.rpartition(".")
        x = getattr(importlib.import_module(module), name)
        own = inspect.isfunction(x) and x.__module__.startswith("weft.")
        if own and reference.find_homes().get(id(x), full) == full and full not in examples:
            missing += [full] * (">>>" not in (inspect.getdoc(x) or ""))
    assert not missing, f"tools/site/examples.txt has no example of {', '.join(sorted(missing))}"
    unknown = set(examples) - set(listed_names())
    assert not unknown, f"tools/site/examples.txt names {', '.join(sorted(unknown))}"


def guide_pages():
    """The pages that the site lists as its guide, in their order."""
    lists = re.findall(r'^GUIDE \+?= "(.*)"$', (ROOT / "tools/site/build.py").read_text(), re.M)
    return [DOCS / f"{name}.md" for name in "".join(lists).split()]


def test_the_start_of_the_guide_links_each_page_and_says_what_it_is_good_for():
    start, *others = pages = guide_pages()
    assert set((DOCS / "guide").glob("*.md")) < set(pages)
    rows = re.findall(r"^\| \[.+?\]\((.+?)\) \| (.+) \|$", start.read_text(), re.M)
    assert sorted((start.parent / link).resolve() for link, _ in rows) == sorted(others)
    assert all(re.search(r"\bAfter (it|this page)\b", p.read_text()[:900]) for p in pages)


@pytest.mark.parametrize(
    "page", [p for p in guide_pages() if ">>> " in p.read_text()], ids=lambda p: p.stem
)
def test_notebooks_hold_the_code_of_pages(page):
    text = page.read_text()
    cells = json.loads(notebooks.make_notebook(text))["cells"]
    code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    for source in code:
        compile(source, page.name, "exec")
    examples = doctest.DocTestParser().get_examples(text)
    assert "\n".join(code).count("\n") + 1 == sum(e.source.count("\n") for e in examples)
    raising = sum("tags" in cell["metadata"] for cell in cells)
    assert raising == sum(e.exc_msg is not None for e in examples)


def test_a_notebook_runs():
    scope = {}
    cells = json.loads(notebooks.make_notebook((DOCS / "guide" / "jit.md").read_text()))["cells"]
    for cell in cells:
        if cell["cell_type"] == "code" and not cell["metadata"]:
            exec(cell["source"], scope)
    assert scope["count"] == 4


@pytest.mark.parametrize("name", ["digits", "export", "foreign", "tensor_parallel"])
def test_programs_are_notebooks_that_need_nothing_else(name):
    """Each file that a program imports or names is written by a cell before those that need it."""
    text = notebooks.make_program_notebook(ROOT / "examples" / f"{name}.py", name)
    cells = [c["source"] for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    written = [cell.split()[1] for cell in cells if cell.startswith("%%writefile")]
    present = {path.stem for path in (ROOT / "examples").glob("*.py")}
    for cell in cells:
        source = cell.split("\n", 1)[1] if cell.startswith("%%") else cell
        if cell.startswith("%%writefile") and not cell.split()[1].endswith(".py"):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module in present:
                assert f"{node.module}.py" in written
    program = (ROOT / "examples" / f"{name}.py").read_text()
    functions = re.findall(r"^def (\w+)", program, re.M)
    assert all(any(f"def {function}(" in cell for cell in cells) for function in functions)
