"""Derivatives of functions of sparse arrays, in what these store: `grad`, `jacfwd`, `jacrev`.

A derivative in a sparse array has its places, and the derivatives in its data: those in elements
that are not stored are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import numpy as jnp
from weft.api import grad as dense
from weft.api import jacobians
from weft.api.functions import check_callable
from weft.core.source import boundary
from weft.errors import DtypeError
from weft.experimental.sparse.base import JAXSparse
from weft.experimental.sparse.transform import is_sparse
from weft.pytrees import flatten, unflatten
from weft.util import fun_name, name_function


def put_data(x: Any, data: Any) -> Any:
    """A sparse array with other data; of more axes in front, a batch of such."""
    if not isinstance(x, JAXSparse):
        return data
    lead = data.shape[: data.ndim - x.data.ndim]
    if lead and not hasattr(x, "unique_indices"):
        x = x.to_bcoo()  # which has batches
    (_, *places), aux = x.tree_flatten()
    return x.tree_unflatten(aux, (data, *[jnp.broadcast_to(p, (*lead, *p.shape)) for p in places]))


def define_derivative(name: str, transform: Callable, doc: str) -> Callable[..., Any]:
    """A transformation of functions of dense arrays as one of functions of sparse arrays."""

    def derivative(
        fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
    ) -> Callable[..., Any]:
        check_callable(f"sparse.{name}", fun, wraps=True)

        def wrapped(*args: Any, **given: Any) -> Any:
            numbers = [argnums] if isinstance(argnums, int) else list(argnums)
            chosen = {n % len(args) for n in numbers if -len(args) <= n < len(args)}
            opened = [flatten(x, is_sparse) if i in chosen else None for i, x in enumerate(args)]

            def flat(*values: Any, **given: Any) -> Any:
                whole = []
                for x, parts in zip(values, opened, strict=True):
                    if parts is not None:
                        leaves, tree = parts
                        pairs = zip(leaves, tree.flatten_up_to(x), strict=True)
                        x = unflatten(tree, [put_data(old, new) for old, new in pairs])
                    whole.append(x)
                out = fun(*whole, **given)
                for y in flatten(out[0] if has_aux else out, is_sparse)[0]:
                    if is_sparse(y):
                        raise DtypeError(
                            f"sparse.{name}: {fun_name(fun)} must return dense arrays; got {y!r}. "
                            "Hint: y.todense(), or y.data."
                        )
                return out

            stripped = [
                x
                if parts is None
                else unflatten(parts[1], [y.data if is_sparse(y) else y for y in parts[0]])
                for x, parts in zip(args, opened, strict=True)
            ]
            leaves = [x for n in numbers if (p := opened[n % len(args)]) is not None for x in p[0]]
            out = transform(flat, argnums, has_aux=has_aux, **kwargs)(*stripped, **given)

            def restore(result: Any) -> Any:
                found, tree = flatten(result)
                return unflatten(
                    tree, [put_data(leaves[i % len(leaves)], x) for i, x in enumerate(found)]
                )

            if name == "value_and_grad":
                return out[0], restore(out[1])
            return (restore(out[0]), out[1]) if has_aux else restore(out)

        return boundary(wrapped, fun)

    return name_function(derivative, name, doc)


ARGUMENTS = """
    Derivatives are with respect to the stored elements. Elements that are not stored count as
    constant zeros.

    Args:
      fun: a function of pytrees of arrays, of which some are sparse. Its results are dense.
      argnums: the positions of the arguments to differentiate with respect to: an int, or a
        sequence of ints. The default is 0.
      has_aux: if True, `fun` returns a pair of its value and other results. The default is False.
      **kwargs: further options of the function of weft of this name.

    Returns:"""

grad = define_derivative(
    "grad",
    dense.grad,
    f"""Return a function that computes the gradient of a function of sparse arrays.
{ARGUMENTS}
      A function of the arguments of `fun` that returns the gradients, which are sparse arrays with
      the positions of the arguments.

    >>> mat = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> g = sparse.grad(lambda m: jnp.sum((m @ jnp.ones(2)) ** 2))(mat)
    >>> g, g.data
    (BCOO(float32[2, 2], nse=2), Array([4., 6.], dtype=float32))
    """,
)
value_and_grad = define_derivative(
    "value_and_grad",
    dense.value_and_grad,
    f"""Return a function that computes the value and the gradient of a function of sparse arrays.
{ARGUMENTS}
      A function of the arguments of `fun` that returns a pair: the value, and the gradients.

    >>> mat = sparse.BCOO.fromdense(jnp.array([0.0, 2.0]))
    >>> sparse.value_and_grad(lambda m: 3 * m.sum())(mat)
    (Array(6., dtype=float32), BCOO(float32[2], nse=1))
    """,
)
jacfwd = define_derivative(
    "jacfwd",
    jacobians.jacfwd,
    f"""Return a function that computes Jacobians of a function of sparse arrays, by forward mode.
{ARGUMENTS}
      A function of the arguments of `fun` that returns the Jacobians. They are sparse arrays with
      batch axes for the results.

    >>> mat = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.jacfwd(lambda m: m @ jnp.ones(2))(mat)
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """,
)
jacrev = define_derivative(
    "jacrev",
    jacobians.jacrev,
    f"""Return a function that computes Jacobians of a function of sparse arrays, by reverse mode.
{ARGUMENTS}
      A function of the arguments of `fun` that returns the Jacobians. They are sparse arrays with
      batch axes for the results.

    >>> mat = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.jacrev(lambda m: m @ jnp.ones(2))(mat)
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """,
)
jacobian = jacrev
