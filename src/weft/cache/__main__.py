"""`weft cache`, also `python -m weft.cache`: show what the cache on disk holds, or clear it.

The figures come from `weft.cache`; only their printing is here.
"""

import argparse
import sys
from collections.abc import Sequence

from weft.cache import clear, stats

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`; return its exit status, 1 for the path of no cache."""
    parser = argparse.ArgumentParser(
        prog="weft cache",
        description="Show or clear the compiled programs that weft keeps on disk.",
        epilog="WEFT_CACHE_DIR moves the cache or turns it off; WEFT_CACHE_MAX_BYTES bounds it.",
    )
    parser.add_argument("command", nargs="?", choices=["show", "clear"], default="show")
    parser.add_argument("--path", action="store_true", help="print only where it is")
    args = parser.parse_args(argv)
    before = stats()
    if args.path:
        print(before.directory or "off")
        return int(before.directory is None)
    if args.command == "clear":
        print(f"removed {clear()} entries, {readable(before.bytes)}")
        return 0
    rows = {
        "path": before.directory or "none",
        "state": f"off: {before.problem}" if before.problem else "on",
        "entries": str(before.entries),
        "bytes": f"{before.bytes} ({readable(before.bytes)})",
        "limit": f"{before.max_bytes} ({readable(before.max_bytes)})",
    }
    for name, value in rows.items():
        print(f"{name:8}{value}")
    return 0


def readable(count: int) -> str:
    """Return `count` bytes as people say it."""
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.4g} {unit}"


if __name__ == "__main__":
    sys.exit(main())
