"""The command `weft`: its tools, and one line where the command line is wrong."""

import os
import pathlib
import subprocess
import sys
import tomllib

import pytest

import weft
from weft.__main__ import HELP, TOOLS, main

ROOT = pathlib.Path(__file__).parents[1]


def test_version_help_and_environment(capsys):
    for flag in ("--version", "-V"):
        assert main([flag]) == 0
        assert capsys.readouterr().out == f"weft {weft.__version__}\n"
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == HELP + "\n"
    assert main([]) == 2
    assert capsys.readouterr().err == HELP + "\n"
    assert all(f"weft {tool}" in HELP for tool in (*TOOLS, "env"))
    assert main(["env"]) == 0
    assert capsys.readouterr().out.startswith("weft: ")


@pytest.mark.parametrize(
    "args, said",
    [
        (["scrpt.py"], "there must be a file 'scrpt.py'; got none. Hint: script.py."),
        (["cahce"], "there must be a file 'cahce'; got none. Hint: cache."),
        (["zzz/none.py"], "there must be a file 'zzz/none.py'; got none. Hint: weft --help."),
        (["--flag"], "the first argument must be a script, -m, -c or a tool; got '--flag'."),
        (["-m"], "-m must be followed by a module. Hint: weft --help."),
        (["-c"], "-c must be followed by code. Hint: weft --help."),
        (["env", "more"], "env takes no arguments; got 'more'. Hint: weft --help."),
        (["--version", "3"], "--version takes no arguments; got '3'. Hint: weft --help."),
    ],
)
def test_a_wrong_command_line_is_one_line(args, said, capsys, tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"weft: {said}") and err.count("\n") == 1


def test_a_reader_may_stop_reading():
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run(
        [sys.executable, "-m", "weft", "env"], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert run.returncode == 0 and not run.stderr


def test_programs_and_tools_run_from_the_console_script(tmp_path):
    """The script that pip writes has its own folder first on the path."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert declared == {"weft": "weft.__main__:main"}
    console = tmp_path / "bin" / "weft"
    console.parent.mkdir()
    console.write_text("import sys\nfrom weft.__main__ import main\nsys.exit(main())\n")
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "broken.py").write_text("import nosuch_dependency\n")

    def run(*args):
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, str(console), *args]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)

    code = "import sys, jax, helper; print(jax.__weft__, sys.argv)"
    assert run("-c", code, "a").stdout == "True ['-c', 'a']\n"
    absent = run("-m", "nosuch.module")
    assert absent.returncode == 2
    assert absent.stderr == (
        "weft: there must be a module 'nosuch.module'; got none on sys.path. Hint: weft --help.\n"
    )
    unexplained = run("explain", "scrpt.py")  # no report of a program that did not run
    assert (unexplained.returncode, unexplained.stdout) == (2, "")
    assert (
        unexplained.stderr
        == "weft: there must be a file 'scrpt.py'; got none. Hint: weft --help.\n"
    )
    broken = run("-m", "package.broken")
    assert "Traceback" in broken.stderr and "nosuch_dependency" in broken.stderr
    shown = run("cache", "--path")
    assert shown.returncode == int(shown.stdout == "off\n")
    assert "usage: weft cache" in run("cache", "--help").stdout
