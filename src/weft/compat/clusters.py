"""The names of `jax._src.clusters`: how a process finds its place among others.

Each class is one detector of parallel/clusters.py. Libraries ask whether its environment is
present, and derive classes that override one of the answers.
"""

from __future__ import annotations

import os

from weft.parallel.clusters import DETECTORS, Place
from weft.util import list_public

__all__ = [
    "ClusterEnv", "GceTpuCluster", "GkeTpuCluster", "K8sCluster", "OmpiCluster", "SlurmCluster",
    "TpuCluster",
]  # fmt: skip
__dir__ = list_public(__name__)


class ClusterEnv:
    """A kind of cluster. `name` is the name of its detector."""

    name = ""

    @classmethod
    def find_place(cls) -> Place | None:
        """Return the place of this process as the environment says it, or None."""
        return DETECTORS[cls.name](os.environ) if cls.name else None

    @classmethod
    def is_env_present(cls) -> bool:
        """Return True if this process runs in the cluster."""
        return cls.find_place() is not None

    @classmethod
    def get_coordinator_address(
        cls, timeout_secs: int | None = None, override_coordinator_port: str | None = None
    ) -> str | None:
        """Return the address of the coordinator, host:port."""
        address = (cls.find_place() or Place()).address
        if address and override_coordinator_port:
            return f"{address.rpartition(':')[0]}:{override_coordinator_port}"
        return address

    @classmethod
    def get_process_count(cls) -> int | None:
        """Return the number of processes."""
        return (cls.find_place() or Place()).size

    @classmethod
    def get_process_id(cls) -> int | None:
        """Return the number of this process."""
        return (cls.find_place() or Place()).rank

    @classmethod
    def get_local_process_id(cls) -> int | None:
        """Return the number of this process on its host."""
        return next(iter((cls.find_place() or Place()).local_devices or ()), None)


class SlurmCluster(ClusterEnv):
    """A step of Slurm."""

    name = "slurm"


class OmpiCluster(ClusterEnv):
    """Processes started by Open MPI's mpirun."""

    name = "ompi"


class TpuCluster(ClusterEnv):
    """Workers of a TPU pod slice."""

    name = "tpu"


class K8sCluster(ClusterEnv):
    """Pods of an indexed job of Kubernetes."""

    name = "k8s"


GceTpuCluster = GkeTpuCluster = TpuCluster
