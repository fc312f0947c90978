"""Clusters as libraries ask for them: by classes of JAX."""

import os

from weft.compat import clusters


def test_places_of_processes(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("SLURM", "OMPI", "TPU"))]:
        monkeypatch.delenv(name)
    assert not clusters.SlurmCluster.is_env_present() and not clusters.ClusterEnv.is_env_present()
    assert clusters.TpuCluster.get_process_id() is clusters.K8sCluster.get_process_count() is None
    step = {"JOB_ID": 7, "STEP_NODELIST": "node[3-5],b", "NTASKS": 4, "PROCID": 2, "LOCALID": 1}
    for name, value in step.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))

    class Own(clusters.SlurmCluster):
        """A cluster of a library, which derives from JAX's."""

    assert Own.is_env_present() and Own.get_coordinator_address() == "node3:61447"
    assert Own.get_coordinator_address(None, "80") == "node3:80"
    assert (Own.get_process_count(), Own.get_process_id(), Own.get_local_process_id()) == (4, 2, 1)
