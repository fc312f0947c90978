"""Build the site of the documentation: `make docs` runs this.

Pages of docs/ are copied. The reference (reference.py), charts in place of the tables of benchmarks
(charts.py), a gallery of examples/ from make_gallery.py, and lists of pages are added. Sphinx's
input is written to build/site/source. Each version of the site is a folder of build/site/html,
beside versions.json, which the pages read.

usage: python tools/site/build.py [--no-reference] [--url https://where.the/site/will/lie]
"""

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

import charts
import notebooks
import reference
from PIL import Image, ImageOps
from sphinx.cmd.build import main as run_sphinx

import weft

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "site"
SOURCE = BUILD / "source"

# The lists of pages, in their order. A page of docs/ that no list names is a how-to page.
GUIDE = "guide/first-steps guide/arrays guide/sharp-bits guide/jit guide/autodiff "
GUIDE += "guide/vectorization guide/control-flow random guide/pytrees guide/training debugging "
GUIDE += "guide/memory guide/performance guide/saving distributed guide/primitives "
GUIDE += "guide/interpreter guide/pytorch coming-from-jax"
TUTORIALS = "tour tutorials/digits tutorials/transformer tutorials/hmc tutorials/gp "
TUTORIALS += "reading-a-program slow-step large-step"
HOW_TO = "cache references sparse sparse-derivatives sizes-that-vary memory-limit explain numerics "
HOW_TO += "security options versions"
NOTES = "errors jaxpr special derivatives coverage ecosystem programs scale"
ELSEWHERE = "benchmarks index"

# The part of an example's pictures that its card shows: the number of the picture, and left, top,
# right and bottom as shares of it. The whole first picture where nothing is said.
LEFT, RIGHT = (0, 0, 0.5, 1), (0.5, 0, 1, 1)
THUMBNAILS = {
    "digits": (2, (0, 0, 0.5, 1)),
    "in_place": (1, RIGHT),
    "logistic": (2, RIGHT),
    "mnist_stax": (1, (0.685, 0.1, 1, 0.9)),
    "vae": (2, (0.7, 0, 1, 1)),
    "maml": (1, (0, 0, 0.35, 0.52)),
    "score": (1, (0.75, 0.5, 1, 1)),
    "ode_fit": (1, RIGHT),
    "ragged": (1, RIGHT),
    "private": (1, LEFT),
    "hmc": (1, (0.66, 0, 1, 1)),
    "gp": (1, (0, 0, 0.5, 0.5)),
    "export": (1, (0, 0, 0.4, 1)),
    "foreign": (1, LEFT),
    "sparse": (1, LEFT),
    "sparse_newton": (1, (0, 0, 0.33, 1)),
    "data_parallel": (1, LEFT),
    "advi": (1, RIGHT),
    "kernel_lsq": (1, LEFT),
    "recursion": (1, LEFT),
    "resnet": (1, LEFT),
    "tensor_parallel": (1, LEFT),
}


def copy_pages() -> None:
    """docs/ and the pages beside it, with links that hold on the site."""
    shutil.copytree(ROOT / "docs", SOURCE, dirs_exist_ok=True)
    shutil.copytree(
        ROOT / "examples",
        SOURCE / "examples",
        ignore=shutil.ignore_patterns("out", "__pycache__", "*.md"),
    )
    for name in ("CHANGELOG", "CONTRIBUTING"):
        text = (ROOT / f"{name}.md").read_text().replace("](docs/", "](")
        (SOURCE / f"{name.lower()}.md").write_text(text)
    page = SOURCE / "versions.md"
    page.write_text(page.read_text().replace("](../CHANGELOG.md", "](changelog.md"))
    for page in SOURCE.glob("*.md"):  # the site lists the examples in its gallery
        page.write_text(page.read_text().replace("](../examples/README.md)", "](gallery.md)"))
    page = SOURCE / "benchmarks.md"
    page.write_text(charts.draw_page(page.read_text()))


def write_notebooks() -> None:
    """Each page of the guide that has examples as a notebook, with a link to it below the title."""
    folder = SOURCE / "notebooks"
    for name in GUIDE.split():
        page = SOURCE / f"{name}.md"
        text = page.read_text()
        if ">>> " not in text:
            continue
        file, examples = f"guide-{page.stem}.ipynb", text
        if name == "distributed":  # its examples need several devices
            first = '```python\n>>> import weft\n>>> weft.config.update("num_cpu_devices", 8)\n'
            examples = text.replace("```python\n", first, 1)
        (folder / file).write_text(notebooks.make_notebook(examples))
        title, rest = text.split("\n", 1)
        link = f"{{download}}`This page as a notebook </notebooks/{file}>`"
        page.write_text(f"{title}\n\n{link}\n{rest}")


def title_of(page: str) -> tuple[str, str]:
    """The title of a page, and its first sentence; none of a note that begins with its status."""
    text = (SOURCE / f"{page}.md").read_text()
    title = re.search(r"^# (.+)", text, re.M)[1]
    paragraphs = [p for p in re.split(r"\n\n", text) if re.match(r"[\w`*]", p)]
    first = paragraphs[0] if paragraphs and not paragraphs[0].startswith("Status:") else ""
    first = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", first)
    first = re.sub(r"\s+", " ", first)
    return title, re.split(r"(?<=[.?:])\s", first)[0].rstrip(":")


def write_list(page: str, title: str, said: str, parts: dict[str, list[str]]) -> None:
    """A page that lists others, in parts with titles."""
    text = [f"# {title}\n\n{said}\n"]
    for name, pages in parts.items():
        text.append(f"## {name}\n" if name else "")
        for p in pages:
            link, sentence = title_of(p)
            text.append(f"- [{link}]({p}.md)" + (f": {sentence}" if sentence else ""))
        listed = "\n".join(f"/{p}" for p in pages)
        text.append(f"\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{listed}\n```\n")
    (SOURCE / f"{page}.md").write_text("\n".join(text))


def write_lists() -> None:
    """The lists of the guide, of tutorials, of how-to pages and of design notes."""
    said = (
        "A topic a page, from the first array to a transformation of your own. Every example runs."
    )
    write_list("guide", "Guide", said, {"": GUIDE.split()})
    known = {
        *GUIDE.split(),
        *TUTORIALS.split(),
        *HOW_TO.split(),
        *NOTES.split(),
        *ELSEWHERE.split(),
    }
    others = sorted(p.stem for p in (ROOT / "docs").glob("*.md") if p.stem not in known)
    said = "What they print was printed by runs. Code is of programs in `examples/`, or a test."
    write_list("tutorials", "Tutorials", said, {"": TUTORIALS.split()})
    write_list("how-to", "How to", "", {"": [*HOW_TO.split(), *others], "In full": NOTES.split()})
    notes = sorted(f"design/{p.stem}" for p in (ROOT / "docs" / "design").glob("*.md"))
    said = "Why weft is as it is: one decision a note, and what was tried instead."
    parts = {"": ["contributing", "changelog"], "Notes": notes}
    write_list("design", "Design", said, parts)


def read_examples() -> list[tuple[str, str, str, str]]:
    """Return the rows of examples/README.md: (name, title, purpose, result)."""
    text = (ROOT / "examples" / "README.md").read_text()
    rows = re.findall(
        r"^\| `make example-(\w+)`.*?\| \*\*(.+?)\*\*: (.+?) \| (.+?) \| [\d.]+ \|$", text, re.M
    )
    return [
        (name, title, shows[0].upper() + shows[1:], result) for name, title, shows, result in rows
    ]


def draw_thumbnail(name: str) -> str:
    """Cut the most telling part out of a picture of an example; return the file's name."""
    number, box = THUMBNAILS.get(name, (1, (0, 0, 1, 1)))
    with Image.open(ROOT / "docs" / "gallery" / f"{name}-{number}.png") as picture:
        left, top, right, bottom = box
        size = (left * picture.width, top * picture.height)
        size += (right * picture.width, bottom * picture.height)
        part = picture.convert("RGB").crop(size)
    part = ImageOps.pad(part, (480, 480), Image.Resampling.LANCZOS, color="white")
    part.quantize(64).save(SOURCE / "gallery" / f"{name}-small.png", optimize=True)
    return f"{name}-small.png"


def write_example(name: str, title: str, shows: str, result: str) -> None:
    """The page of an example: pictures, output, program; and the program as a notebook."""
    program = ROOT / "examples" / f"{name}.py"
    notebook = SOURCE / "notebooks" / f"{name}.ipynb"
    notebook.write_text(notebooks.make_program_notebook(program, title))
    pictures = sorted((ROOT / "docs" / "gallery").glob(f"{name}-*.png"))
    if not pictures:
        sys.exit(f"no picture of {name}: run python tools/make_gallery.py {name}")
    shown = "\n\n".join(f"![{title}](/gallery/{p.name})" for p in pictures)
    text = (
        f"# {title}\n\n{{download}}`This program as a notebook </notebooks/{name}.ipynb>`\n\n"
        f"{shows}.\n\n**Result:** {result}.\n\n"
        f"```sh\nmake example-{name}\n```\n\n{shown}\n\n"
        f"## What it prints\n\n```{{literalinclude}} /gallery/{name}.txt\n:language: text\n"
        "```\n\n"
        f"## The program\n\n```{{literalinclude}} /examples/{name}.py\n:language: python\n```\n"
    )
    (SOURCE / "gallery" / f"{name}.md").write_text(text)


def write_gallery() -> None:
    """A page with a card for each example, and a page of each."""
    cards, names = [], []
    for name, title, shows, result in read_examples():
        write_example(name, title, shows, result)
        names.append(f"gallery/{name}")
        cards.append(
            f":::{{grid-item-card}} {title}\n:link: /gallery/{name}\n:link-type: doc\n"
            f":img-top: /gallery/{draw_thumbnail(name)}\n"
            f":img-alt: a picture that the program draws\n\n{shows}\n:::"
        )
    grid = (
        "::::{grid} 1 2 2 3\n:gutter: 3\n:class-container: gallery\n\n"
        + "\n\n".join(cards)
        + "\n::::"
    )
    listed = "\n".join(f"/{name}" for name in names)
    (SOURCE / "gallery.md").write_text(
        "# Gallery\n\nPrograms that read from top to bottom, each run by one command, and what "
        f"they draw.\n\n{grid}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    )


def write_index() -> None:
    """The first page: index.md of this folder, with the chart of the README drawn in it."""
    rows = charts.read_rows((ROOT / "docs" / "benchmarks.md").read_text())
    shown = {case: rows[case] | {"goal": None} for case in charts.HEADLINES}
    chart = charts.draw_bars(shown, charts.HEADLINES)
    text = (HERE / "index.md").read_text().replace("<!-- chart -->", chart)
    (SOURCE / "index.md").write_text(text)


def list_versions(html: Path) -> None:
    """Write which versions are in the folder, and make its first page lead to this one."""
    found = sorted((p.name for p in html.iterdir() if (p / "index.html").exists()), reverse=True)
    # A script, not JSON: pages opened from a disk may load scripts alone.
    (html / "versions.js").write_text(f"window.weftVersions = {json.dumps(found)};\n")
    here = f"{weft.__version__}/index.html"
    (html / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>weft</title>'
        f'<meta http-equiv="refresh" content="0; url={here}"><a href="{here}">weft</a>\n'
    )


def write_llms_text(html: Path) -> None:
    """llms.txt, a list of the pages for language models, and each page as Markdown beside it."""
    version = weft.__version__
    text = ["# weft\n"]
    text.append("> Composable transformations of Python and NumPy programs, compiled by XLA.\n")
    parts = {"Guide": GUIDE, "Tutorials": TUTORIALS, "How to": HOW_TO, "In full": NOTES}
    for title, pages in parts.items():
        text.append(f"## {title}\n")
        for page in pages.split():
            shutil.copy(SOURCE / f"{page}.md", html / version / f"{page}.md")
            name, said = title_of(page)
            text.append(f"- [{name}]({version}/{page}.md)" + (f": {said}" if said else ""))
        text.append("")
    (html / "llms.txt").write_text("\n".join(text))


def write_sitemap(html: Path, url: str) -> None:
    """sitemap.xml and robots.txt, whose addresses begin with `url`."""
    pages = sorted(p.relative_to(html).as_posix() for p in html.rglob("*.html"))
    listed = "\n".join(f"<url><loc>{url.rstrip('/')}/{page}</loc></url>" for page in pages)
    (html / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{listed}\n</urlset>\n'
    )
    (html / "robots.txt").write_text(f"Sitemap: {url.rstrip('/')}/sitemap.xml\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--no-reference", action="store_true", help="do not run its examples")
    parser.add_argument("--url", help="where the site will lie; writes sitemap.xml")
    args = parser.parse_args()
    shutil.rmtree(SOURCE, ignore_errors=True)
    copy_pages()
    (SOURCE / "notebooks").mkdir()
    count = reference.write_pages(SOURCE / "reference", run=not args.no_reference)
    write_gallery()
    write_lists()
    write_notebooks()
    write_index()
    html = BUILD / "html"
    out = html / weft.__version__
    options = ["-W", "--keep-going", "-q", "-d", str(BUILD / "doctrees"), "-c", str(HERE)]
    status = run_sphinx([*options, "-b", "html", str(SOURCE), str(out)])
    if status == 0:
        list_versions(html)
        write_llms_text(html)
        shutil.copy(HERE / "404.html", html)
        if args.url:
            write_sitemap(html, args.url)
        print(f"{count} public names, {len(list(out.rglob('*.html')))} pages: {html}/index.html")
    return status


if __name__ == "__main__":
    sys.exit(main())
