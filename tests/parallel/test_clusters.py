"""The rank of a process, from clusters and environment variables."""

import zlib

import pytest

from weft.parallel.clusters import Place, detect_cluster, read_variables

SLURM = {"SLURM_JOB_ID": "70000", "SLURM_NTASKS": "6", "SLURM_PROCID": "4", "SLURM_LOCALID": "1"}


OMPI = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, Place()),
        (
            {**SLURM, "SLURM_STEP_NODELIST": "node[007-009,12],other"},
            Place("node007:61808", 6, 4, (1,)),
        ),
        ({**SLURM, "SLURM_STEP_NODELIST": "big-1,big-2"}, Place("big-1:61808", 6, 4, (1,))),
        ({**SLURM, "SLURM_STEP_NODELIST": "alone"}, Place("alone:61808", 6, 4, (1,))),
        (
            {**OMPI, "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911"},
            Place("10.96.0.1:61440", 4, 3, (1,)),
        ),
        (OMPI, Place(None, 4, 3, (1,))),
        (
            {**OMPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "PMIX_NAMESPACE": "job-1"},
            Place(f"127.0.0.1:{61440 + zlib.crc32(b'job-1') % 4096}", 4, 3, (1,)),
        ),
        ({"PMI_SIZE": "2", "PMI_RANK": "1"}, Place(None, 2, 1)),
        (
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "5"},
            Place(None, None, 5),
        ),
        ({"TPU_WORKER_HOSTNAMES": "t0,t1", "TPU_WORKER_ID": "1"}, Place("t0:8476", 2, 1)),
        ({"TPU_WORKER_HOSTNAMES": "t0", "TPU_WORKER_ID": "0"}, Place()),
        ({"TPU_WORKER_HOSTNAMES": "t0,t1"}, Place()),
    ],
)
def test_clusters_are_known_by_their_variables(environ, place):
    assert detect_cluster(None, environ) == place
    assert detect_cluster("deactivate", environ) == Place()


def test_a_cluster_by_name():
    both = {**SLURM, "SLURM_STEP_NODELIST": "alone", **OMPI}
    assert detect_cluster(None, both).size == 6 and detect_cluster("ompi", both).size == 4
    with pytest.raises(RuntimeError, match=r"environment must be that of slurm; got none"):
        detect_cluster("slurm", OMPI)
    with pytest.raises(ValueError, match=r"must be one of slurm, ompi, .*; got 'abacus'\."):
        detect_cluster("abacus", {})
    with pytest.raises(ValueError, match=r"SLURM_JOB_ID must be an integer; got 'x'\."):
        detect_cluster(None, {"SLURM_JOB_ID": "x"})


def test_variables_come_before_clusters():
    environ = {
        "JAX_COORDINATOR_ADDRESS": "a",
        "JAX_COORDINATOR_PORT": "12",
        "JAX_NUM_PROCESSES": "3",
        "WEFT_NUM_PROCESSES": "4",
        "JAX_PROCESS_ID": "1",
        "JAX_LOCAL_DEVICE_IDS": "0,2",
    }
    assert read_variables(environ) == Place("a:12", 4, 1, (0, 2))
    assert Place(size=9).fill(read_variables(environ)).size == 9
