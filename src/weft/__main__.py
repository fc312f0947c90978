"""Run a program that says `import jax` on weft: `python -m weft script.py args`.

Also `python -m weft -m module args` and `python -m weft -c code args`, as with `python` itself.
With `--explain` first, what the program cost is printed when it ends: docs/explain.md.
"""

import os
import runpy
import sys
import types

from weft.compat import install

USAGE = "usage: python -m weft [--explain] (script.py | -m module | -c code) [args]"


def run_program(args: list[str]) -> None:
    """Run what the arguments name as `__main__`, with `jax` meaning weft."""
    flag, rest = (args[0], args[1:]) if args else ("--help", [])
    if flag in ("-h", "--help") or (flag in ("-m", "-c") and not rest):
        raise SystemExit(USAGE)
    install()
    if flag == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif flag == "-c":
        sys.argv = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    else:
        sys.argv = args
        sys.path[0] = os.path.dirname(os.path.abspath(flag))
        runpy.run_path(os.path.abspath(flag), run_name="__main__")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--explain"] and arguments[1:]:
        from weft.explain.script import explain_program  # other programs do without it

        explain_program(lambda: run_program(arguments[1:]), " ".join(arguments[1:]))
    else:
        run_program([] if arguments == ["--explain"] else arguments)
