"""Facts of primitives: each declares its cost, or why it is unknown."""

from tests.primitives.test_conformance import all_primitives
from weft.core.facts import Cost

# Primitives of unknown cost, by the folder or the file of their class or by their name, and why.
UNKNOWN = {
    "control. padding.": "hold programs, or call the host",
    "parallel.": "talk to devices",
    "cpu.": "written by passes for a platform, and hold programs or call kernels",
    "primitives.collective primitives.varying primitives.reshard": "talk to devices",
    "api.ffi_call export. extend. experimental.": "of users, or hold programs",
    "primitives.refs primitives.checks primitives.sink primitives.effects": "have effects",
    "create_token after_all": "have no values",
    "optimization_barrier keep": "keep the compiler from computing operands again",
}


def test_every_primitive_says_what_it_costs():
    for prim in all_primitives().values():
        assert isinstance(prim.cost, Cost), prim
        home = type(prim).__module__.removeprefix("weft.")
        listed = [k for keys in UNKNOWN for k in keys.split()]
        excused = any(home.startswith(k) if "." in k else prim.name == k for k in listed)
        if not excused:
            assert prim.cost is not Cost.UNKNOWN, prim
