"""The command `weft`, also `python -m weft`: run programs that say `import jax` on weft, and tools.

`weft explain` and `weft cache` are the programs `weft.explain` and `weft.cache`, which this file
runs without importing them.
"""

import difflib
import importlib.util
import os
import runpy
import sys
import types
from collections.abc import Callable

import weft
from weft.compat import install

HELP = """\
usage: weft (script.py | -m module | -c code) [args]
       weft (explain | cache | env) [args]

Run a program that says `import jax` on weft:
  weft script.py [args]   a file; ./cache runs a file that has the name of a tool
  weft -m module [args]   a module, such as: weft -m pytest tests
  weft -c code [args]     a line of Python

Tools:
  weft explain script.py [args]      run a program, and report the time that each line took
                                     (also: -m module, -c code); see docs/explain.md
  weft cache [show | clear] [--path] show or clear the compiled programs on disk; see docs/cache.md
  weft env                           print versions, devices, kernels and settings for a bug report

  -h, --help     print this text
  -V, --version  print the version

docs/options.md lists the environment variables and the options."""
TOOLS = {"cache": "weft.cache", "explain": "weft.explain"}
# The first arguments that have a text printed, and what makes the text.
PRINTED: dict[str, Callable[[], object]] = {
    "env": lambda: weft.print_environment_info(return_string=True),
    **dict.fromkeys(("-V", "--version"), lambda: f"weft {weft.__version__}"),
    **dict.fromkeys(("-h", "--help"), lambda: HELP),
}


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv`; return its exit status, 2 for a command line that is wrong."""
    args = sys.argv[1:] if argv is None else argv
    first, rest = (args[0], args[1:]) if args else ("", [])
    if first in PRINTED:
        if rest:
            refuse(f"{first} takes no arguments; got {' '.join(rest)!r}")
        run_tool(lambda: print(PRINTED[first]()))
    elif first in TOOLS or first == "--explain":
        sys.argv = [f"weft {first}", *rest]
        module = TOOLS[first.removeprefix("--")]
        run_tool(lambda: runpy.run_module(module, run_name="__main__", alter_sys=True))
    elif not args:
        print(HELP, file=sys.stderr)
        return 2
    else:
        find_program(args)()
    return 0


def run_tool(run: Callable[[], object]) -> None:
    """Run a tool, and end in silence if what reads its output, such as `head`, has read enough."""
    try:
        run()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def find_program(args: list[str]) -> Callable[[], object]:
    """Return the call that runs what the arguments name as `__main__`, with `jax` meaning weft.

    Raises SystemExit with one line of text if the arguments name nothing that can be run.
    """
    flag, rest = args[0], args[1:]
    if flag in ("-m", "-c"):
        if not rest:
            refuse(f"{flag} must be followed by {'a module' if flag == '-m' else 'code'}")
        set_first_path(os.getcwd() if flag == "-m" else "")
        install()
        if flag == "-m":
            check_module(rest[0])
            sys.argv = rest
            return lambda: runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        sys.argv = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        return lambda: exec(compile(rest[0], "<string>", "exec"), vars(main))
    path = os.path.abspath(flag)
    check_script(flag)
    install()
    sys.argv = args
    set_first_path(os.path.dirname(path))
    return lambda: runpy.run_path(path, run_name="__main__")


def set_first_path(folder: str) -> None:
    """Have imports look first where Python itself would have them look for this program."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def check_script(name: str) -> None:
    """Refuse a script that is not there, with the name that may have been meant."""
    if os.path.exists(name):
        return
    if name[:1] == "-":
        refuse(f"the first argument must be a script, -m, -c or a tool; got {name!r}")
    folder = os.path.dirname(name)
    try:
        files = [os.path.join(folder, f) for f in os.listdir(folder or ".") if f.endswith(".py")]
    except OSError:
        files = []
    meant = difflib.get_close_matches(name, [*files, *TOOLS, "env"], 1)
    refuse(f"there must be a file {name!r}; got none", meant)


def check_module(name: str) -> None:
    """Refuse a module that is not there. An error within a package that is there is the user's."""
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if not error.name or not f"{name}.".startswith(f"{error.name}."):
            raise
        found = None
    except ValueError:  # such as an empty name
        found = None
    if found is None:
        refuse(f"there must be a module {name!r}; got none on sys.path")


def refuse(why: str, meant: list[str] | None = None) -> None:
    """End the process with status 2 and one line that says why."""
    hint = f" Hint: {meant[0]}." if meant else " Hint: weft --help."
    print(f"weft: {why}.{hint}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    sys.exit(main())
