"""Platforms: plugins are found in installed packages, chosen by options, and failures are told."""

import os
import subprocess
import sys

import pytest

import weft
from weft.mesh import client, plugins
from weft.mesh.plugins import (
    Plugin,
    list_environment_plugins,
    list_installed_plugins,
    platform_of_module,
)


def distribution(root, name, module, library, entry=True):
    """An installed package as pip leaves it, with a library that is none."""
    home = root.joinpath(*module.split("."))
    home.mkdir(parents=True)
    (home / "__init__.py").write_text("raise ImportError('a plugin module must not be run')")
    (home / library).write_bytes(b"not a library")
    info = root / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    if entry:
        short = module.rpartition(".")[2]
        text = f"[console_scripts]\nx = y:z\n\n[jax_plugins]\n{short} = {module}\n"
        (info / "entry_points.txt").write_text(text)
    return str(home / library)


def run(program, path=None, **environment):
    """What a program prints in a process of its own, with the folder `path` among the packages."""
    paths = [*([str(path)] if path else []), os.environ.get("PYTHONPATH", "")]
    inherited = {k: v for k, v in os.environ.items() if "PLATFORM" not in k}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        env={**inherited, "PYTHONPATH": os.pathsep.join(paths), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_plugins_are_found_in_installed_packages(tmp_path):
    cuda = distribution(tmp_path, "a", "jax_plugins.xla_cuda13", "xla_cuda_plugin.so")
    metal = distribution(tmp_path, "b", "jax_plugins.metal_plugin", "pjrt_plugin_metal_14.dylib")
    far = distribution(tmp_path, "c", "abacus.beads", "libpjrt_abacus.so")
    tpu = distribution(tmp_path, "d", "libtpu", "libtpu.so", entry=False)
    (tmp_path / "jax_plugins" / "empty").mkdir()
    found = {p.platform: p.library for p in list_installed_plugins([str(tmp_path), "/nowhere"])}
    assert found == {"cuda": cuda, "metal": metal, "beads": far, "tpu": tpu}


def test_the_newer_of_two_plugins_for_a_platform_comes_first(tmp_path):
    distribution(tmp_path, "a", "jax_plugins.xla_cuda12", "xla_cuda_plugin.so")
    newer = distribution(tmp_path, "b", "jax_plugins.xla_cuda13", "xla_cuda_plugin.so")
    first, second = list_installed_plugins([str(tmp_path)])
    assert first.library == newer and second.platform == first.platform == "cuda"


@pytest.mark.parametrize(
    ("module", "name"),
    [("xla_cuda12", "cuda"), ("xla_rocm7", "rocm"), ("metal_plugin", "metal"), ("tpu", "tpu")],
)
def test_a_module_tells_its_platform(module, name):
    assert platform_of_module(module) == name


def test_plugins_that_the_environment_names():
    variable = "PJRT_NAMES_AND_LIBRARY_PATHS"
    assert [
        *list_environment_plugins({variable: "a:/x/a.so, b:/x/b.so", "TPU_LIBRARY_PATH": "/t.so"})
    ] == [
        Plugin("a", "/x/a.so", variable),
        Plugin("b", "/x/b.so", variable),
        Plugin("tpu", "/t.so", "TPU_LIBRARY_PATH"),
    ]
    with pytest.raises(RuntimeError, match=r"must be name:path, .* got 'a'\."):
        list(list_environment_plugins({variable: "a"}))


USE = """
import weft
print(weft.devices()[0].platform, weft.numpy.add(1, 2))
for platform in ("cpu", "gpu"):
    try:
        print(weft.devices(platform))
    except RuntimeError as error:
        print(error)
"""


def test_a_broken_plugin_is_told_of_and_cpu_goes_on(tmp_path):
    library = distribution(tmp_path, "a", "jax_plugins.xla_cuda13", "xla_cuda_plugin.so")
    out, err = run(USE, tmp_path, JAX_PLATFORMS="cuda,cpu")
    first, second, third = out.splitlines()
    assert first == "cpu 3" and second == "[CpuDevice(id=0)]"
    assert third.startswith("devices: the platform must be one of cpu; got 'gpu' (cuda: ")
    assert "weft: platform cuda is not used, for its devices could not be had" in err
    assert library in err and "invalid ELF header" in err or "file too short" in err
    assert err.count("is not used") == 1


def test_a_plugin_for_what_the_machine_has_not_is_left_alone(tmp_path, monkeypatch):
    distribution(tmp_path, "a", "jax_plugins.xla_rocm7", "xla_rocm_plugin.so")
    found = {p.platform: p for p in list_installed_plugins([str(tmp_path)])}
    monkeypatch.setattr(client, "find_plugins", lambda: found)
    monkeypatch.setattr(client, "has_hardware", lambda name: False)
    assert client.choose_platforms([]) == ["cpu"]
    monkeypatch.setattr(client, "has_hardware", lambda name: name == "rocm")
    assert client.choose_platforms([]) == ["rocm", "cpu"]
    assert client.choose_platforms(["gpu", "cpu", "gpu"]) == ["rocm", "cpu"]


def test_a_gpu_without_a_plugin_is_told_of(monkeypatch, caplog):
    monkeypatch.setattr(client, "find_plugins", dict)
    monkeypatch.setattr(client, "has_hardware", lambda name: name == "cuda")
    assert client.choose_platforms([]) == ["cpu"]
    assert "seems to have devices of platform cuda" in caplog.text
    assert "pip install" in caplog.text


def test_platforms_come_in_order_of_preference(monkeypatch):
    found = dict.fromkeys(("rocm", "abacus", "cuda", "tpu"))
    monkeypatch.setattr(client, "find_plugins", lambda: found)
    monkeypatch.setattr(client, "has_hardware", lambda name: None)
    assert client.choose_platforms([]) == ["abacus", "tpu", "cuda", "rocm", "cpu"]
    assert client.choose_platforms(["cpu", "tpu"]) == ["cpu", "tpu"]


@pytest.mark.parametrize(
    ("found", "names", "chosen"),
    [
        (["cuda", "tpu"], ["gpu"], ["cuda"]),
        (["rocm"], ["gpu", "cpu"], ["rocm", "cpu"]),
        (["rocm", "cuda"], ["cpu", "gpu", "cuda"], ["cpu", "cuda", "rocm"]),
        ([], ["gpu"], ["cuda"]),
        ([], ["cpu", "mine", "cpu"], ["cpu", "mine"]),
    ],
)
def test_platforms_by_name(monkeypatch, found, names, chosen):
    monkeypatch.setattr(client, "find_plugins", lambda: dict.fromkeys(found))
    assert client.choose_platforms(names) == chosen


def test_a_platform_that_nobody_has(tmp_path):
    program = "import weft\ntry:\n    weft.devices()\nexcept RuntimeError as e:\n    print(e)"
    out, _ = run(program, WEFT_PLATFORMS="abacus")
    assert out.startswith(
        "weft: the platforms asked for must have devices; got platforms='abacus' (abacus: no "
        "installed package has a plugin for it (there are: cpu"
    )
    out, _ = run("import weft\nweft.config.update('jax_platforms', 'tpu')\n" + program[12:])
    assert out.endswith("Hint: pip install libtpu.\n")
    out, _ = run(program, JAX_PLATFORM_NAME="gpu")
    assert out.startswith("weft: platform_name must be one of cpu; got 'gpu' (Unknown backend).")
    assert run(program, JAX_PLATFORM_NAME="cpu")[0] == ""


def test_memory_options_of_a_gpu(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5")
    options = plugins.make_gpu_options("cuda")
    assert options["preallocate"] is False and options["memory_fraction"] == 0.5
    assert options["platform_name"] == "cuda"


def test_what_a_program_is_written_for():
    assert client.platform_of(weft.devices()[0]) == "cpu"
    assert client.devices_of("cpu") == tuple(weft.devices())
    assert client.clients() == (client.client(),)
