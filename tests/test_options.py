"""Options: values from the environment and from flags, and the page that lists them."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import weft
from weft.options import (
    GUARDS,
    OPTIONS,
    Option,
    config,
    read_context,
    read_variables,
    trace_context,
)
from weft.options.flags import FLAGS, VARIABLES

ROOT = pathlib.Path(__file__).parents[1]

WORDS = {"true": True, "on": True, "y": True, "1": True, "": False, "0": False, "FALSE": False}


def good_and_bad(option):
    """Texts that an option takes, with their values, and texts that it refuses."""
    if isinstance(option.default, bool):
        more = {c: c for c in option.choices or () if isinstance(c, str)}
        return WORDS | more, ["maybe", "2", "None", "tru", "-1", " "]
    if isinstance(option.default, int):
        return {"3": 3, "-1": -1}, ["x", "1.5", "", "0x1"]
    if isinstance(option.default, float):
        return {"3": 3.0, "1e-3": 1e-3}, ["x", ""]
    if option.name in GUARDS:
        return {"allow": "allow", "LOG": "LOG"}, ["x", ""]
    if option.name == "jax_logging_level":
        return {"INFO": "INFO"}, ["info!", ""]
    if option.choices is not None:
        return {c: c for c in option.choices if c is not None}, ["x", "None", ""]
    return {"any text": "any text"}, []


ALL = [*OPTIONS, *(Option(name, default, "") for name, default in FLAGS.items())]


@pytest.mark.parametrize("option", ALL, ids=[o.name for o in ALL])
def test_every_variable_is_read_or_refused_by_name(option):
    good, bad = good_and_bad(option)
    for prefix in ("WEFT_", "JAX_"):
        variable = prefix + option.name.removeprefix("jax_").upper()
        for text, value in good.items():
            assert read_variables({variable: text}) == {option.name: value}
        for text in bad:
            with pytest.raises(ValueError, match=rf"^config: {variable} must be .*; got ") as info:
                read_variables({variable: text})
            assert str(info.value).endswith(f"; got {text!r}.")


def test_a_variable_with_our_prefix_overrides_one_of_jax():
    assert read_variables({"WEFT_ENABLE_X64": "1", "JAX_ENABLE_X64": "0"}) == {"enable_x64": True}


def test_misspelt_variables_are_told_and_those_of_others_are_not():
    text = r"^config: variables WEFT_\.\.\. must be of docs/options.md; got %s\.%s$"
    for given, hint in (
        ("WEFT_NUM_THREAD", " Hint: WEFT_NUM_THREADS."),
        ("WEFT_CACHE_DIRS", " Hint: WEFT_CACHE_DIR."),
        ("WEFT_ZZZ", ""),
    ):
        with pytest.warns(UserWarning, match=text % (given, hint.replace(".", r"\."))):
            assert read_variables({given: "2"}) == {}
    assert (
        read_variables(dict.fromkeys(("JAX_NUM_THREAD", "WEFT_TEST_ALL", "WEFT", *VARIABLES), "x"))
        == {}
    )


def test_a_process_with_a_bad_variable_ends_at_the_import():
    run = subprocess.run(
        [sys.executable, "-c", "import weft"],
        env=os.environ | {"WEFT_NUM_THREADS": "x", "WEFT_NUM_THREAD": "2"},
        capture_output=True,
        text=True,
    )
    lines = run.stderr.splitlines()
    assert lines[-1] == "ValueError: config: WEFT_NUM_THREADS must be an integer; got 'x'."
    assert run.stderr.count("  File ") <= 3 and run.stderr.count("Hint: WEFT_NUM_THREADS.") == 1
    assert lines[0].startswith("<string>:1: UserWarning: config: ")


def test_flags_are_read_as_variables_are(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", "--jax_enable_x64=maybe"])
    with pytest.raises(ValueError, match="^config: --jax_enable_x64 must be 1 or true, or 0 or"):
        config.parse_flags_with_absl()
    with pytest.raises(ValueError, match="^config: jax_logging_level must be one of .*; got 'x'"):
        config.update("jax_logging_level", "x")


def load_tool():
    """Load tools/make_options.py, which is not in a package."""
    spec = importlib.util.spec_from_file_location(
        "make_options", ROOT / "tools" / "make_options.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_options_is_as_written_from_them():
    tool = load_tool()
    assert tool.PAGE.read_text() == tool.write_page(), "run tools/make_options.py"


def test_the_page_names_every_variable_that_the_package_reads():
    tool = load_tool()
    told = {
        name for rows in tool.VARIABLES.values() for names in rows for name in names.split(", ")
    }
    options = {f"WEFT_{option.name.upper()}" for option in OPTIONS}
    assert not told & options
    read, named = set(), set()
    for file in [*(ROOT / "src" / "weft").rglob("*.py"), ROOT / "hatch_build.py"]:
        text = file.read_text()
        named |= set(re.findall(r"\bWEFT_[A-Z0-9_]*[A-Z0-9]\b", text))
        read |= set(re.findall(r"environ(?:\.get|\.setdefault)?[\[(]\s*\"([A-Z_]+)\"", text))
    others = {"WEFT_NAME", "WEFT_COMPLEX", "WEFT_CBLAS"}  # of a docstring, and of sources in C
    assert named - others <= told | options
    clusters = {name for name in read if name.split("_")[0] in ("SLURM", "OMPI", "PMIX", "PMI")}
    assert read <= told | options | tool.READ_ONLY | clusters | {"TPU_WORKER_HOSTNAMES"}
    assert {name for name in told if name[:5] == "WEFT_"} == VARIABLES


# --- options in the keys of programs --------------------------------------------------------------

TRACED = [o for o in OPTIONS if o.traced]
OTHERS = {"default_device": "cpu", "default_matmul_precision": "highest", "passes": "cse_jaxpr"}


def other_value(option):
    """Return a value of an option that it does not have now."""
    now = config.read(option.name)
    if option.choices is None and isinstance(now, bool):
        return not now
    known = option.choices or ()
    return OTHERS.get(option.name) or next((c for c in known if c != now), 3)


@pytest.mark.parametrize("option", TRACED, ids=[o.name for o in TRACED])
def test_each_option_of_programs_is_in_their_keys(option):
    name, now, other = option.name, config.read(option.name), other_value(option)
    before = trace_context()
    with config.scope(**{name: other}):
        within = trace_context()
        assert within != before and hash(within) != hash(before)
        assert read_context(within)[name] == other == config.read(name)
        with config.scope(**{name: now}):
            assert trace_context() != within and read_context(trace_context())[name] == now
        assert trace_context() == within
    assert trace_context() == before and read_context(before)[name] == now
    try:
        config.update(name, other)
        assert trace_context() != before and read_context(trace_context())[name] == other
    finally:
        config.update(name, now)
    assert trace_context() == before


@pytest.mark.parametrize("name", ["random_seed_offset", "enable_x64"])
def test_calls_in_c_see_each_change_of_an_option(name):
    traced = []

    @weft.jit
    def fun(x):
        traced.append(config.read(name))
        return x

    x, now, other = np.float32(1), config.read(name), int(not config.read(name))
    for _ in range(3):
        fun(x)
        with config.scope(**{name: other}):
            fun(x)
            with config.scope(legacy_prng_key="warn"):
                fun(x)
    assert traced == [now, other, other]


def test_blocks_may_end_in_any_order():
    before = trace_context()
    first, second = config.scope(check_bounds=False), config.scope(random_seed_offset=3)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    found = read_context(trace_context())
    assert found["check_bounds"] == config.check_bounds
    assert found["random_seed_offset"] == config.random_seed_offset == 3
    second.__exit__(None, None, None)
    assert trace_context() == before


def test_a_block_in_one_thread_and_a_change_in_another():
    now, seen = config.legacy_prng_key, []

    def look():
        with config.scope(random_seed_offset=3):
            entered.set()
            changed.wait()
            seen.append(read_context(trace_context()))
            seen.append((config.legacy_prng_key, config.random_seed_offset))

    entered, changed = threading.Event(), threading.Event()
    thread = threading.Thread(target=look)
    thread.start()
    entered.wait()
    try:
        config.update("legacy_prng_key", "warn")
        changed.set()
        thread.join()
    finally:
        config.update("legacy_prng_key", now)
    found, read = seen
    assert (found["legacy_prng_key"], found["random_seed_offset"]) == read == ("warn", 3)


def test_threads_that_set_options_lose_no_change():
    values = {"random_seed_offset": (3, 0), "legacy_prng_key": ("warn", "allow")}
    before, interval = trace_context(), sys.getswitchinterval()

    def change(name):
        for _ in range(200):
            for value in values[name]:
                config.update(name, value)

    threads = [threading.Thread(target=change, args=(name,)) for name in values]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert trace_context() == before
