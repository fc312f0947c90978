"""Run the programs of examples/ and store their output and pictures in docs/gallery/, for the site.

Pictures are made small: 900 pixels wide, 48 colours. With `--from FOLDER`, a run is taken from
FOLDER/NAME (pictures and out.txt) instead.

usage: python tools/make_gallery.py [--from FOLDER] [name ...]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "docs" / "gallery"


def list_examples() -> list[str]:
    """The programs that examples/README.md lists, in its order."""
    text = (ROOT / "examples" / "README.md").read_text()
    return re.findall(r"^\| `make example-(\w+)`", text, re.M)


def run_program(name: str, folder: Path) -> str:
    """Run a program with its defaults; return its output."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--out", str(folder)]
    done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{name}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def keep_run(name: str, output: str, folder: Path) -> None:
    """Put the output and the pictures of a run into the gallery."""
    for old in (p for p in GALLERY.glob(f"{name}-*.png")):
        old.unlink()
    drawn = re.findall(r"^picture: .*?([^/]+\.png)$", output, re.M)
    for i, picture in enumerate(drawn, 1):
        with Image.open(folder / picture) as image:
            image = image.convert("RGB")
            image.thumbnail((900, 1200), Image.Resampling.LANCZOS)
            image.quantize(48).save(GALLERY / f"{name}-{i}.png", optimize=True)
    kept = [line for line in output.split("\n") if not line.startswith("picture: ")]
    (GALLERY / f"{name}.txt").write_text("\n".join(kept).strip() + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--from", dest="source", type=Path)
    args = parser.parse_args()
    GALLERY.mkdir(exist_ok=True)
    for name in args.names or list_examples():
        with tempfile.TemporaryDirectory() as made:
            folder = args.source / name if args.source else Path(made)
            done = (folder / "out.txt").read_text() if args.source else run_program(name, folder)
            keep_run(name, done, folder)
    size = sum(p.stat().st_size for p in GALLERY.iterdir())
    print(f"{len(list(GALLERY.glob('*.png')))} pictures, {size / 1000:.0f} kB in all")


if __name__ == "__main__":
    main()
