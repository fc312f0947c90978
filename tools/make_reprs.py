"""Write reprs.json, what JAX prints, and members.json, the names of its arrays, for test_array.py.

Run it where JAX is installed: `PYTHONPATH=tests/xla python tools/make_reprs.py`.
"""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
from repr_cases import arrays, texts

GOLDEN = Path(__file__).parents[1] / "tests/xla/golden"

made = texts(arrays(jax.device_put, jnp.full))
made["jax"] = jax.__version__
(GOLDEN / "reprs.json").write_text(json.dumps(made, indent=0) + "\n")

# What has no counterpart: the layout of Python objects, and what begins with one underscore.
names = [n for n in vars(jax.Array) if not n.startswith("_") or n.endswith("__")]
names = sorted(set(names) - {"__slots__", "__weakref__", "__doc__"})
(GOLDEN / "members.json").write_text(json.dumps(names, indent=0) + "\n")
