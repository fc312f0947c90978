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
    """Return the output of a program in a new process, with the folder `path` among packages."""
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
    for module in (plugins, client):
        monkeypatch.setattr(module, "find_plugins", dict)
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


def test_a_platform_that_nobody_has():
    program = "import weft\ntry:\n    weft.devices()\nexcept RuntimeError as e:\n    print(e)"
    out, _ = run(program, JAX_PLATFORM_NAME="gpu", JAX_PLATFORMS="cpu")
    assert out.startswith("weft: platform_name must be one of cpu; got 'gpu' (Unknown backend).")


def test_memory_options_of_a_gpu(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5")
    options = plugins.make_gpu_options("cuda")
    assert options["preallocate"] is False and options["memory_fraction"] == 0.5
    assert options["platform_name"] == "cuda"


def test_what_a_program_is_written_for():
    first = weft.devices()[0]
    assert client.platform_of(first) == {"gpu": "cuda"}.get(first.platform, first.platform)
    assert client.platform_of(weft.devices("cpu")[0]) == "cpu"
    assert client.devices_of("cpu") == tuple(weft.devices("cpu"))
    assert client.client() in client.clients()


# --- a fake GPU: the calls that jaxlib would get --------------------------------------------------


class Engine:
    """A replacement of jaxlib: records calls, and returns their names."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args, **options: self.calls.append((name, *args, options)) or name

    def make_mpi_collectives(self):
        return self


KERNELS = """
told = []
def register_custom_type(*args): told.append(args)
def register_custom_call_target(*args): told.append(args)
def ffi_types(): return {"state": 1}
def ffi_handlers(): return [("solve", 2)]
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A replacement without plugins, in a process that has only the plugins of `tmp_path`."""
    engine = Engine()
    for module in (plugins, client):
        monkeypatch.setattr(module, "_jax", engine)
    monkeypatch.setattr("jaxlib._profiler.register_plugin_profiler", engine.profile)
    for name in [n for n in sys.modules if n.startswith("jax_cuda13_plugin")]:
        monkeypatch.delitem(sys.modules, name)  # a real one, of a machine with a GPU
    for name in ("_REGISTRIES", "_WAITING"):
        monkeypatch.setattr(plugins, name, {})
    monkeypatch.setattr(client, "_process_group", [])
    monkeypatch.setattr(client, "find_plugins", lambda: known)
    monkeypatch.syspath_prepend(tmp_path)
    distribution(tmp_path, "a", "jax_plugins.xla_cuda13", "xla_cuda_plugin.so")
    distribution(tmp_path, "b", "jax_plugins.abacus", "libpjrt_abacus.so")
    known = {p.platform: p for p in list_installed_plugins([str(tmp_path)])}
    home = tmp_path / "jax_cuda13_plugin"
    home.mkdir()
    (home / "__init__.py").touch()  # comes before a real one, unlike a folder only
    (home / "cuda_plugin_extension.py").write_text(KERNELS)
    (home / "_solver.py").write_text("def registrations(): return {'qr': 3}")
    # Without LAPACK's functions these would call null pointers.
    (home / "_hybrid.py").write_text(
        "def registrations(): return known\nknown = {}\ndef initialize(): known['eig'] = 4"
    )
    yield engine
    plugins.load_plugin.cache_clear()
    for name in [n for n in sys.modules if n.startswith("jax_cuda13_plugin")]:
        del sys.modules[name]


def test_the_plugin_of_a_gpu_is_loaded_once_with_its_kernels(engine, monkeypatch):
    told = []
    plugins.register_on_gpu("cuda", lambda *given: told.append(given[1]))
    plugins.register_on_gpu("rocm", lambda *given: told.append("rocm"))
    group = client.ProcessGroup("joined", 1, 2, local_devices=(3,), partition=0)
    monkeypatch.setattr(client, "_process_group", [group])
    with weft.config.scope(cuda_visible_devices="0,2"):
        assert client.make_client("cuda") == "get_c_api_client"
    monkeypatch.setattr(client, "_process_group", [client.ProcessGroup("joined", 1, 2)])
    client.make_client("cuda"), client.make_client("abacus")
    cuda, abacus = (client.find_plugins()[name] for name in ("cuda", "abacus"))
    plain = plugins.make_gpu_options("cuda")
    assert plain["platform_name"] == "cuda"
    each, place = {"distributed_client": "joined"}, {"node_id": 1, "num_nodes": 2}
    assert engine.calls == [
        ("load_pjrt_plugin", "cuda", cuda.library, {}),
        ("profile", "load_pjrt_plugin", {}),
        ("initialize_pjrt_plugin", "cuda", {}),
        (
            "get_c_api_client",
            "cuda",
            {**plain, **place, "visible_devices": [3], "partition_index": 0},
            each,
        ),
        ("get_c_api_client", "cuda", {**plain, **place}, each),
        ("load_pjrt_plugin", "abacus", abacus.library, {}),
        ("profile", "load_pjrt_plugin", {}),
        ("initialize_pjrt_plugin", "abacus", {}),
        ("get_c_api_client", "abacus", {}, each),
    ]
    extension = sys.modules["jax_cuda13_plugin.cuda_plugin_extension"]
    handle, cuda_name = "load_pjrt_plugin", "CUDA"
    assert extension.told == [
        (handle, "state", 1),
        (handle, "solve", 2, cuda_name, 1),
        (handle, "qr", 3, cuda_name, 1),
        (handle, "eig", 4, cuda_name, 1),
    ]
    plugins.register_on_gpu("cuda", lambda *given: told.append(given))
    assert told == [handle, (extension, handle)]
    with pytest.raises(RuntimeError) as info:
        plugins.load_plugin(Plugin("cuda", "/nowhere.so", "the environment"))
    assert str(info.value) == "there is no library /nowhere.so, which the environment names"
    with weft.config.scope(cuda_visible_devices="0,2"):
        monkeypatch.setattr(client, "_process_group", [])
        client.make_client("cuda")
    assert engine.calls[-1] == (
        "get_c_api_client",
        "cuda",
        {**plain, "visible_devices": [0, 2]},
        {},
    )


def test_a_gpu_without_kernels(engine, tmp_path):
    (tmp_path / "jax_cuda13_plugin/cuda_plugin_extension.py").unlink()
    plugins.load_plugin(client.find_plugins()["cuda"])
    assert not plugins._REGISTRIES and len(engine.calls) == 3


def test_cpu_clients_of_several_processes(engine, monkeypatch):
    monkeypatch.setattr(client, "_process_group", [client.ProcessGroup("joined", 1, 2)])
    made = {}
    for kind in ("gloo", "mpi", None):
        with weft.config.scope(cpu_collectives_implementation=kind, num_cpu_devices=3):
            client.make_cpu_client()
        made[kind] = engine.calls.pop()[1]
    place = {"distributed_client": "joined", "node_id": 1, "num_nodes": 2}
    for kind, found in made.items():
        assert {k: found[k] for k in place} == place
        assert found["num_devices"] == 3 and found["asynchronous"] is True
        ways = {"gloo": "make_gloo_tcp_collectives", "mpi": engine}
        assert found["collectives"] == ways.get(kind)
    assert [call[0] for call in engine.calls] == ["make_gloo_tcp_collectives", "Init"]


def test_which_clients_are_made_and_which_not(engine, monkeypatch, caplog):
    make = client.make_clients.__wrapped__
    monkeypatch.setattr(client, "FACTORIES", {"mine": (1, lambda: "a client")})
    with weft.config.scope(platforms="mine, other"):
        assert make() == ({"mine": "a client"}, {"other": NO_PLUGIN})
    assert caplog.messages == [
        "weft: platform other is not used, for its devices could not be had: "
        f"{NO_PLUGIN}. Going on with those of 'mine, other' that there are: mine."
    ]
    monkeypatch.setattr(client, "has_hardware", lambda name: False)
    assert list(make().clients) == ["mine", "cpu"]
    with weft.config.scope(platforms="tpu,other"), pytest.raises(RuntimeError) as info:
        make()
    assert str(info.value) == (
        "weft: the platforms asked for must have devices; got platforms='tpu,other' "
        f"(tpu: {NO_PLUGIN}; other: {NO_PLUGIN}). Hint: pip install libtpu."
    )


NO_PLUGIN = "no installed package has a plugin for it (there are: abacus, cpu, cuda)"


def test_the_tools_of_cuda_in_a_package(tmp_path, monkeypatch):
    find = plugins.find_cuda_tools.__wrapped__
    monkeypatch.setattr(sys, "path", ["/nowhere", str(tmp_path)])
    assert find() is None
    for place in ("nvidia/cuda_nvcc/bin/ptxas", "nvidia/cu13/nvvm"):
        (tmp_path / place).mkdir(parents=True)
        assert find() == str(tmp_path.joinpath(*place.split("/")[:2]))


def test_hardware_by_its_files(monkeypatch):
    monkeypatch.setattr(os.path, "exists", lambda path: path in ("/dev/nvidia0", "/dev/kfd"))
    monkeypatch.setattr(sys, "platform", "linux")
    names = ("cuda", "rocm", "tpu", "abacus")
    assert [plugins.has_hardware(name) for name in names] == [True, True, False, None]
    monkeypatch.setattr(sys, "platform", "darwin")
    assert [plugins.has_hardware(name) for name in names] == [None] * 4


def test_the_environments_plugin_comes_first(monkeypatch, tmp_path):
    distribution(tmp_path, "a", "jax_plugins.xla_cuda13", "xla_cuda_plugin.so")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "cuda:/mine.so")
    assert [p.library for p in plugins.find_plugins().values()] == ["/mine.so"]
