"""Check that the sources are those of a release: the first step of `make release`.

The version stands in src/weft/__init__.py. The newest dated section of CHANGELOG.md and
CITATION.cff must have the same version and date, and with `--clean` every file must be committed.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECTION = re.compile(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)$", re.M)
KINDS = ("You can", "Changed", "You must", "Fixed")


def read_version() -> str:
    """Return the version of the package."""
    text = (ROOT / "src" / "weft" / "__init__.py").read_text()
    return re.findall(r'^__version__ = "(.+)"$', text, re.M)[0]


def list_problems() -> list[str]:
    """Return what keeps the sources from being those of a release."""
    problems = []
    version = read_version()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    sections = SECTION.findall(changelog)
    newest, date = sections[0] if sections else ("", "")
    if newest != version:
        problems.append(f"CHANGELOG.md: the newest section must be of {version}; got {newest!r}.")
    if sections != sorted(sections, key=lambda s: [*map(int, s[0].split("."))], reverse=True):
        problems.append("CHANGELOG.md: sections must go from the newest version to the oldest.")
    odd = set(re.findall(r"^### (.+)$", changelog, re.M)) - {*KINDS}
    if odd:
        problems.append(f"CHANGELOG.md: headings must be {', '.join(KINDS)}; got {sorted(odd)}.")
    unreleased = re.search(r"^## Unreleased\n(.*?)^## ", changelog, re.M | re.S)
    if unreleased is None or unreleased[1].strip():
        problems.append("CHANGELOG.md: lines under Unreleased must move to the release.")
    citation = (ROOT / "CITATION.cff").read_text()
    for field, value in (("version", version), ("date-released", date)):
        if not re.search(rf"^{field}: {re.escape(value)}$", citation, re.M):
            problems.append(f"CITATION.cff: {field} must be {value}.")
    return problems


def list_changes() -> list[str]:
    """Return the files that are not committed."""
    command = ["git", "status", "--porcelain"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [f"git: {line} must be committed." for line in shown.stdout.splitlines()]


if __name__ == "__main__":
    found = list_problems() + (list_changes() if "--clean" in sys.argv else [])
    print(*found or [f"weft {read_version()}: the sources are those of a release."], sep="\n")
    sys.exit(bool(found))
