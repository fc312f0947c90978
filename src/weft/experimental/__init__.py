"""Modules whose interface may still change, under the names of `jax.experimental`."""

from weft.util import import_lazily

MODULES = (
    "buffer_callback checkify compilation_cache custom_partitioning fused hijax jet key_reuse "
    "layout mesh_utils multihost_utils ode optimizers pjit profiler random rnn scheduling_groups "
    "serialize_executable shard_map sparse stax topologies xla_metadata"
)
HOMES = {"weft.api.callbacks": "io_callback", "weft.api.mutable": "cur_qdd"} | {
    f"{__name__}.{m}": "" for m in MODULES.split()
}
__getattr__, __dir__ = import_lazily(__name__, HOMES)
