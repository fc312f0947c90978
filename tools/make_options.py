"""Write docs/options.md: every option of `weft.config`, and every environment variable.

The options come from src/weft/options; the table below has the variables that belong to no option.
tests/test_options.py checks that the page is the output of this file, and the table complete.
"""

from __future__ import annotations

import sys
from pathlib import Path

from weft.options import OPTIONS, Option
from weft.options.flags import FLAGS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "options.md"

# By group: variable -> its effect.
VARIABLES: dict[str, dict[str, str]] = {
    "The cache on disk ([cache.md](cache.md))": {
        "WEFT_CACHE_DIR": "The folder of compiled programs; `off`, `0` or nothing turns the cache "
        "off. Default: `weft` in the user's folder of caches.",
        "WEFT_CACHE_MAX_BYTES": "The size that the cache may have, in bytes. Default: 1 GiB.",
        "HOME, XDG_CACHE_HOME, LOCALAPPDATA": "Where the user's folder of caches is.",
    },
    "CPUs": {
        "NPROC": "The number of threads of XLA's pool. `WEFT_NUM_THREADS` sets it.",
        "XLA_FLAGS": "Options of XLA, as `--xla_dump_to=folder`. They come before the ones that "
        "weft chooses for a program.",
        "WEFT_KERNELS": "A folder with a library of kernels in C++ in place of the installed one.",
        "TF_CPP_MIN_LOG_LEVEL": "The least level of XLA's log lines that are printed. Default: 3.",
    },
    "GPUs, TPUs and other accelerators ([distributed.md](distributed.md))": {
        "PJRT_NAMES_AND_LIBRARY_PATHS": "Plugins as `name:path,name:path`, before installed ones.",
        "TPU_LIBRARY_PATH": "The library for TPUs, in place of the package `libtpu`.",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "`false`: take memory of a GPU when it is needed, and not "
        "most of it at the start.",
        "XLA_PYTHON_CLIENT_MEM_FRACTION": "The part of a GPU's memory that may be used.",
        "XLA_PYTHON_CLIENT_ALLOCATOR": "`default`, `platform`, `bfc` or `cuda_async`.",
    },
    "Many processes ([distributed.md](distributed.md)); `JAX_` and the same name work, too, except "
    "for the last three": {
        "WEFT_COORDINATOR_ADDRESS": "`host:port` of the process that the others join.",
        "WEFT_COORDINATOR_PORT": "The port, if the address has none.",
        "WEFT_NUM_PROCESSES": "The number of processes.",
        "WEFT_PROCESS_ID": "The number of this process, from 0.",
        "WEFT_LOCAL_DEVICE_IDS": "The devices of this process, as `0,1`.",
        "WEFT_COORDINATOR_BIND_ADDRESS": "The address that the coordinator listens at.",
        "WEFT_COORDINATOR_SECRET": "A secret without which no process may join.",
        "WEFT_COORDINATOR_SECRET_FILE": "A file with the secret, which only its owner may read.",
    },
    "Programs that say `import jax`": {
        "WEFT_AS_JAX": "`1`: `import jax` means weft in every Python that starts. `weft script.py` "
        "sets it for the processes that a script starts."
    },
    "Building from source": {
        "WEFT_BUILD": "`quick`: compile the kernels in half the time, with -O1 and without the "
        "loops for AVX-512; `none`: leave the kernels out; or the platform of a wheel (`make "
        "wheels`).",
        "CXX": "The compiler of C++. Default: `c++` or `g++`.",
        "CXXFLAGS": "Further options of the compiler.",
    },
}
# Set by the system, and read to know what machine this is.
READ_ONLY = {"PROCESSOR_IDENTIFIER"}

HEAD = """# Options and environment variables

<!-- Written by tools/make_options.py from weft.options. -->

An option is set in one of four ways:

```python
weft.config.update("enable_x64", True)  # for all threads; also: weft.config.enable_x64 = True
with weft.config.scope(enable_x64=True):  # in this thread, until the block ends
    ...
```

```sh
WEFT_ENABLE_X64=1 python script.py     # for the process; JAX_ENABLE_X64=1 works as well
python script.py --jax_enable_x64=1    # if the script calls config.parse_flags_with_absl()
```

A truth value in the environment is `1`, `true`, `on`, `yes` or `0`, `false`, `off`, `no`, in any
case. `weft env` prints the options and variables that are set. The `JAX_` variable of an option
counts only if there is no `WEFT_` variable.

## Options

| option | variable | default | values | what it does |
|---|---|---|---|---|
"""


def describe_values(option: Option) -> str:
    """Return the values that an option takes."""
    if option.choices is not None:
        if len(option.choices) > 10:
            return f"`{option.choices[1]!r}` and {len(option.choices) - 1} more"
        return ", ".join(f"`{choice!r}`" for choice in option.choices)
    if isinstance(option.default, bool):
        return "`True`, `False`"
    kinds = option.kinds or (type(option.default),)
    return " or ".join("a path" if k.__name__ == "PathLike" else k.__name__ for k in kinds)


def write_page() -> str:
    """Return the page."""
    escape = lambda text: text.replace("|", "\\|")
    lines = [HEAD.rstrip("\n")]
    for o in sorted(OPTIONS, key=lambda o: o.name):
        cells = (f"`{o.name}`", f"`WEFT_{o.name.upper()}`", f"`{o.default!r}`", describe_values(o))
        lines.append("| " + " | ".join(map(escape, (*cells, o.doc))) + " |")
    lines += ["", "## Environment variables"]
    for group, rows in VARIABLES.items():
        lines += ["", f"### {group}", "", "| variable | what it does |", "|---|---|"]
        lines += [f"| `{name}` | {escape(doc)} |" for name, doc in rows.items()]
    lines += [
        "",
        "Slurm, Open MPI, MPICH, Kubernetes and TPU pods describe a group of processes by",
        "variables of their own, which `distributed.initialize` reads.",
        "",
        "## Flags of JAX without a meaning here",
        "",
        f"`weft.config` accepts {len(FLAGS)} more flags of JAX, so that programs that set them",
        "run. Some of them have the effect that they have in JAX (transfer guards, the level of",
        "log lines). The others are stored and have no effect, as the logger `weft.config` says at",
        "the level DEBUG.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(write_page())
    print(f"wrote {PAGE}", file=sys.stderr)
