"""Check the built site: every link within it leads to a page, and to a place that is on the page.

usage: python tools/site/check.py [folder]
"""

import re
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

HTML = Path(__file__).resolve().parents[2] / "build" / "site" / "html"


def find_broken_links(folder: Path) -> tuple[int, list[str]]:
    """Return the number of links that were followed, and the broken ones."""
    pages = {
        page: page.read_text()
        for page in sorted(folder.rglob("*.html"))
        if "_static" not in page.parts
    }
    places = {
        page: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for page, text in pages.items()
    }
    count, broken = 0, []
    for page, text in pages.items():
        for link in set(re.findall(r'\b(?:href|src)="([^"]+)"', text)):
            if re.match(r"[a-z]+:|//", link):
                continue
            count += 1
            path, fragment = urldefrag(re.sub(r"\?[^#]*", "", link))
            target = (page.parent / unquote(path)).resolve() if path else page
            lost = fragment and target in places and unquote(fragment) not in places[target]
            if not target.exists() or (lost and fragment != "top"):
                broken.append(f"{page.relative_to(folder)}: {link}")
    return count, broken


if __name__ == "__main__":
    count, broken = find_broken_links(Path(sys.argv[1]) if sys.argv[1:] else HTML)
    print(*broken, f"{count} links, {len(broken)} broken", sep="\n")
    sys.exit(bool(broken))
