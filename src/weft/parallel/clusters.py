"""The rank of this process in a group, as Slurm, MPI, Kubernetes or a TPU pod sets it.

Each detector only reads the environment. distributed.py uses the answer.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

Environment = Mapping[str, str]


class Place(NamedTuple):
    """The known facts about this process and its group."""

    address: str | None = None  # of the coordinator, host:port
    size: int | None = None
    rank: int | None = None
    local_devices: tuple[int, ...] | None = None

    def fill(self, other: Place) -> Place:
        """Fill in values that are not known here from another place."""
        return self._replace(
            **{n: x for n, x in other._asdict().items() if getattr(self, n) is None}
        )


def choose_port(job: int) -> int:
    """A port that all processes of a job agree on, of the last 4096."""
    return 65536 - 2**12 + job % 2**12


def read_number(environ: Environment, name: str) -> int | None:
    """A variable that holds an integer."""
    text = environ.get(name)
    if text is None or text.strip() == "":
        return None
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"distributed.initialize: {name} must be an integer; got {text!r}."
        ) from None


def read_numbers(environ: Environment, name: str) -> tuple[int, ...] | None:
    """A variable that holds integers with commas between."""
    texts = environ.get(name)
    found = [read_number({name: text}, name) for text in texts.split(",")] if texts else []
    return tuple([n for n in found if n is not None]) if texts else None


def read_variables(environ: Environment) -> Place:
    """Read WEFT_COORDINATOR_ADDRESS, WEFT_NUM_PROCESSES and so on, or the same with JAX_."""
    known: dict[str, str] = {}
    for prefix in ("JAX_", "WEFT_"):
        known |= {
            n.removeprefix(prefix): x for n, x in environ.items() if n.startswith(prefix) and x
        }
    address = known.get("COORDINATOR_ADDRESS")
    if address and "COORDINATOR_PORT" in known and not re.search(r":\d+$", address):
        address = f"{address}:{known['COORDINATOR_PORT']}"
    return Place(
        address,
        read_number(known, "NUM_PROCESSES"),
        read_number(known, "PROCESS_ID"),
        read_numbers(known, "LOCAL_DEVICE_IDS"),
    )


def read_secret(environ: Environment) -> bytes:
    """The secret that processes need to join; empty where none is set.

    It is in WEFT_COORDINATOR_SECRET, or in the file that WEFT_COORDINATOR_SECRET_FILE names, which
    must be one that only its owner may read or write.
    """
    op = "distributed.initialize"
    text, path = (environ.get(f"WEFT_COORDINATOR_SECRET{more}") for more in ("", "_FILE"))
    if text is not None and path is not None:
        raise ValueError(
            f"{op}: the secret must be given once; got WEFT_COORDINATOR_SECRET and "
            "WEFT_COORDINATOR_SECRET_FILE."
        )
    if path is not None:
        with open(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & 0o077:
                raise ValueError(
                    f"{op}: the file of the secret must be its owner's alone; got mode "
                    f"{mode & 0o777:o} of {path}. Hint: chmod 600 {path}."
                )
            text = file.read()
    if text is not None and not text.strip():
        raise ValueError(f"{op}: the secret must not be empty; got {path or 'an empty variable'}.")
    return (text or "").strip().encode()


def slurm(environ: Environment) -> Place | None:
    """A step of Slurm; each process uses the one GPU that has its local number."""
    job, nodes = read_number(environ, "SLURM_JOB_ID"), environ.get("SLURM_STEP_NODELIST")
    if job is None or not nodes or "SLURM_PROCID" not in environ:
        return None
    local = read_number(environ, "SLURM_LOCALID")
    return Place(
        f"{first_node(nodes)}:{choose_port(job)}",
        read_number(environ, "SLURM_NTASKS"),
        read_number(environ, "SLURM_PROCID"),
        None if local is None else (local,),
    )


def first_node(nodes: str) -> str:
    """The first host of Slurm's list: node001 of `node[001-015,020],other`."""
    match = re.match(r"([^,\[]+)(?:\[(\w+))?", nodes)
    return nodes if match is None else match[1] + (match[2] or "")


def open_mpi(environ: Environment) -> Place | None:
    """Processes started by Open MPI's mpirun; where it does not say its address, on one host."""
    size, local_size = (
        read_number(environ, f"OMPI_COMM_WORLD_{n}") for n in ("SIZE", "LOCAL_SIZE")
    )
    if size is None:
        return None
    address = None
    job, _, uri = environ.get("OMPI_MCA_orte_hnp_uri", "").partition(";")
    hosts = re.search(r"tcp://\[?([^,:\]]+)", uri)
    if hosts:
        address = f"{hosts[1]}:{choose_port(int(job.split('.')[0]))}"
    elif size == local_size:
        job = environ.get("PMIX_NAMESPACE", "")
        address = f"127.0.0.1:{choose_port(zlib.crc32(job.encode()))}"
    local = read_number(environ, "OMPI_COMM_WORLD_LOCAL_RANK")
    rank = read_number(environ, "OMPI_COMM_WORLD_RANK")
    return Place(address, size, rank, None if local is None else (local,))


def pmi(environ: Environment) -> Place | None:
    """Processes started by MPICH's mpiexec; the coordinator's address must be given."""
    size, rank = read_number(environ, "PMI_SIZE"), read_number(environ, "PMI_RANK")
    if size is None or rank is None:
        return None
    address = None
    if size == read_number(environ, "MPI_LOCALNRANKS"):
        job = environ.get("PMI_PORT", "")
        address = f"127.0.0.1:{choose_port(zlib.crc32(job.encode()))}" if job else None
    return Place(address, size, rank)


def kubernetes(environ: Environment) -> Place | None:
    """A pod of an indexed job; the number of pods and the address are variables to be set."""
    rank = read_number(environ, "JOB_COMPLETION_INDEX")
    if "KUBERNETES_SERVICE_HOST" not in environ or rank is None:
        return None
    return Place(rank=rank)


def tpu_pod(environ: Environment) -> Place | None:
    """A worker of a TPU pod slice."""
    hosts = [h for h in environ.get("TPU_WORKER_HOSTNAMES", "").split(",") if h]
    rank = read_number(environ, "TPU_WORKER_ID")
    if len(hosts) < 2 or rank is None:
        return None
    return Place(f"{hosts[0]}:8476", len(hosts), rank)


DETECTORS: dict[str, Callable[[Environment], Place | None]] = {
    "slurm": slurm,
    "ompi": open_mpi,
    "pmi": pmi,
    "tpu": tpu_pod,
    "k8s": kubernetes,
}


def detect_cluster(method: str | None, environ: Environment) -> Place:
    """Find the cluster that started the processes: the one that `method` names, or the first."""
    if method == "deactivate":
        return Place()
    if method is not None and method.lower() not in DETECTORS:
        raise ValueError(
            f"distributed.initialize: cluster_detection_method must be one of "
            f"{', '.join(DETECTORS)}, deactivate; got {method!r}."
        )
    names = [method.lower()] if method else list(DETECTORS)
    found = (DETECTORS[name](environ) for name in names)
    place = next((p for p in found if p is not None), None)
    if place is None and method:
        raise RuntimeError(
            f"distributed.initialize: the environment must be that of {method}; got none of its "
            "variables."
        )
    return place or Place()
