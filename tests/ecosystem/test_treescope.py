"""treescope as its documentation shows it: trees and arrays as text and as HTML."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import treescope
from public_names import find_unused


@dataclasses.dataclass
class Point:
    x: jax.Array
    y: object


TREES = {
    "array": jnp.arange(12.0).reshape(3, 4),
    "scalar": jnp.float32(2.0),
    "bool": jnp.array([True, False]),
    "bfloat16": jnp.ones((2, 2), jnp.bfloat16),
    "key": jax.random.key(0),
    "keys": jax.random.split(jax.random.key(0), 3),
    "large": jnp.zeros((200, 300)),
    "nan": jnp.array([1.0, jnp.nan, jnp.inf]),
    "tree": {"a": [jnp.ones(2), None, "text"], "b": (1, 2.0)},
    "dataclass": Point(jnp.ones(3), {"k": 1}),
    "struct": jax.ShapeDtypeStruct((2, 3), jnp.float32),
    "sharding": jax.sharding.PartitionSpec("x", None),
    "mesh": jax.make_mesh((1,), ("x",)),
    "function": jax.jit(jnp.sin),
    "dtype": jnp.float32,
    "numpy": np.arange(3),
    "treedef": jax.tree.structure([1, 2]),
}


@pytest.mark.parametrize("name", TREES)
def test_render(name):
    tree = TREES[name]
    assert treescope.render_to_text(tree)
    with treescope.active_autovisualizer.set_scoped(treescope.ArrayAutovisualizer()):
        page = treescope.render_to_html(tree)
    assert "<" in page and len(page) > 100


SETTINGS = (
    treescope.active_autovisualizer, treescope.active_expansion_strategy,
    treescope.active_renderer, treescope.abbreviation_threshold,
    treescope.roundtrip_abbreviation_threshold, treescope.default_diverging_colormap,
    treescope.default_sequential_colormap, treescope.default_magic_autovisualizer,
)  # fmt: skip


def test_arrays_drawn():
    for draw in (
        treescope.render_array(jnp.arange(12.0).reshape(3, 4), truncate=True),
        treescope.render_array(jax.random.normal(jax.random.key(0), (5, 6, 2)), columns=[1]),
        treescope.render_array(jnp.array([[True, False]])),
        treescope.render_array(jnp.arange(4), valid_mask=jnp.array([1, 1, 0, 1], bool)),
        treescope.integer_digitbox(3),
        treescope.figures.inline("a", jnp.ones(2)),
    ):
        assert "<" in treescope.render_to_html(draw)


def test_sharding_drawn():
    mesh = jax.make_mesh((1,), ("x",))
    x = jax.device_put(
        jnp.ones(4), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    )
    assert treescope.render_to_html(treescope.render_array_sharding(x))


class Page:
    def _repr_html_(self):
        return "<b>array</b>"


def test_own_visualizer():
    def draw(value, path):
        if isinstance(value, jax.Array):
            return treescope.IPythonVisualization(Page())

    with treescope.active_autovisualizer.set_scoped(draw):
        assert treescope.render_to_html([jnp.ones(2)])
    assert all(hasattr(setting, "set_scoped") for setting in SETTINGS)
    with treescope.using_expansion_strategy(max_height=3):
        assert treescope.render_to_text({"a": [jnp.ones(2)] * 3})
    assert issubclass(treescope.ArrayAutovisualizer, object) and treescope.Autovisualizer
    assert treescope.ChildAutovisualizer and treescope.VisualizationFromTreescopePart


def test_text_is_the_same(record):
    """The text of an array's page is equal to JAX's, up to names of classes of the library.

    An exception is the box that says that weft's arrays, and not JAX's, have their own HTML.
    """
    for name in ("tree", "nan", "bool", "struct"):
        lines = treescope.render_to_text(TREES[name]).splitlines()
        text = "\n".join(x for x in lines if x.strip()[:2] not in ("#╭", "#╰", "# "))
        record([len(text), sum(map(ord, text))])


def test_function_of_a_module():
    assert "sin" in treescope.render_to_text(jax.numpy.sin)


NOTEBOOK = """annotations display show register_as_default register_autovisualize_magic
register_context_manager_magic basic_interactive_setup"""


def test_every_public_name_is_used():
    """The names for notebooks need a notebook."""
    assert not find_unused(treescope, __file__)
