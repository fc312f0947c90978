"""The configuration of Sphinx: the theme, the extensions, and the treatment of pages of docs/."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import sources
from docutils import nodes
from sphinx import addnodes

import weft

project = "weft"
author = copyright = "The weft authors"
version = release = weft.__version__
extensions = ["myst_parser", "sphinx.ext.linkcode", "sphinx_copybutton", "sphinx_design"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a page of errors begins sections where it likes
linkcode_resolve = sources.link_source
python_maximum_signature_line_length = 120
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False
exclude_patterns = ["README.md"]
nitpicky = False
linkcheck_ignore = ["https?://"]  # links within the site are checked; others change under it

# Examples are sessions; only the input is copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
highlight_language = "text"

html_theme = "pydata_sphinx_theme"
html_title = "weft"
templates_path = [str(Path(__file__).parent / "templates")]
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["weft.css"]
html_js_files = ["versions.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "weft"},
    "navbar_align": "left",
    "navbar_end": ["versions", "theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_version_warning_banner": False,
    "pygments_light_style": "friendly",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "benchmarks": [], "source/**": [], "reference/names/**": []}


def mark_sessions(app: object, docname: str, source: list[str]) -> None:
    """A block of Python that begins with a prompt is a session; its last line is not empty."""
    source[0] = re.sub(r"```python\n(?=>>> )", "```pycon\n", source[0]).replace(
        "\n\n```\n", "\n```\n"
    )


def unlink_bool(app: object, doctree: nodes.document) -> None:
    """Signatures mean Python's bool, not weft.numpy's."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link["reftarget"] == "bool":
            link.replace_self(addnodes.desc_sig_name("", "bool"))


def setup(app: object) -> None:
    """Called by Sphinx."""
    app.connect("source-read", mark_sessions)
    app.connect("doctree-read", unlink_bool)
    app.connect("doctree-resolved", sources.relocate_links)
    app.connect("html-collect-pages", sources.collect_pages)
