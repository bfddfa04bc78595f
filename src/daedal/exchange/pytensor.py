"""Solutions as PyTensor operations, for PyMC models sampled with gradients."""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from daedal.exchange.differentiable import DifferentiableRun, DifferentiableSolve, required
from daedal.exchange.run_arguments import as_vector, has


def solve(
    problem: Any,
    t_span: tuple[float, float],
    *,
    t_eval: Any = None,
    outputs: Any = None,
    hold: str = "zero",
    derivatives: str = "auto",
    failed: str = "raise",
    **options: Any,
) -> PyTensorSolve:
    r"""Return the solution of a problem as a PyTensor operation.

    Parameters
    ----------
    problem, t_span, t_eval, outputs, hold, derivatives, failed, **options
        As for :func:`daedal.jax.solve`. ``failed="nan"`` lets a sampler reject parameters with failed runs.

    Returns
    -------
    function
        ``run(initial, params=None, inputs=None)`` as for :func:`daedal.jax.solve`, for PyTensor variables such as the
        random variables of a PyMC model.

    Examples
    --------
    >>> import daedal
    >>> import pytensor.tensor as pt  # doctest: +SKIP
    >>> decay = daedal.ODE(lambda t, y, p: [-p["k"] * y[0]], 1, params={"k": 1.0})
    >>> run = daedal.pytensor.solve(decay, (0.0, 1.0), rtol=1e-8)  # doctest: +SKIP
    >>> k = pt.dscalar("k")  # doctest: +SKIP
    >>> f"{pt.grad(run([1.0], {'k': k})[0], k).eval({k: 2.0}):.5f}"  # doctest: +SKIP
    '-0.13534'
    """
    _operations()
    return PyTensorSolve(DifferentiableSolve(problem, t_span, t_eval, outputs, hold, derivatives, failed, options))


class PyTensorSolve:
    """The function returned by :func:`daedal.pytensor.solve`."""

    def __init__(self, given: DifferentiableSolve):
        self._given = given

    def __call__(self, initial: Any, params: Any = None, inputs: Any = None) -> Any:
        """Variables at the output times."""
        known = _operations()
        run, form = self._given.bound(initial, params, inputs, lambda value: has(value, known.array))
        pt = known.pt

        def array(value: Any) -> Any:
            return pt.as_tensor_variable(value).astype("float64")

        theta = as_vector(form, array, pt.reshape, pt.broadcast_to, lambda parts: pt.concatenate(parts, axis=-1))
        return known.value(run)(theta)


@lru_cache(maxsize=1)
def _operations() -> SimpleNamespace:
    """The values of a run and the two products with its Jacobian as operations."""
    pt, apply = required("pytensor.tensor", "pytensor"), required("pytensor.graph.basic", "pytensor").Apply
    op: Any = required("pytensor.graph.op", "pytensor").Op
    disconnected = required("pytensor.gradient", "pytensor").DisconnectedType

    class SolveOperation(op):
        """The values of a run, or the product of its Jacobian or transposed Jacobian with a second argument."""

        __props__ = ("run", "product")

        def __init__(self, run: DifferentiableRun, product: str):
            self.run, self.product = run, product

        def make_node(self, *arguments: Any) -> Any:
            arguments = tuple(pt.as_tensor_variable(x).astype("float64") for x in arguments)
            leading = arguments[0].type.shape[:-1]
            tail = (len(self.run.labels),) if self.product == "pulled" else self.run.shape
            return apply(self, list(arguments), [pt.tensor(dtype="float64", shape=(*leading, *tail))])

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            leading = inputs[0].shape[:-1]
            count = int(np.prod(leading))
            flat = [np.asarray(x, dtype=float).reshape(count, *x.shape[len(leading) :]) for x in inputs]
            found = getattr(self.run, self.product)(*flat)
            outputs[0][0] = found.reshape(*leading, *found.shape[1:])

        def infer_shape(self, fgraph: Any, node: Any, shapes: Any) -> Any:
            tail = (len(self.run.labels),) if self.product == "pulled" else self.run.shape
            return [(*shapes[0][:-1], *map(pt.as_tensor_variable, tail))]

        def L_op(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
            """Product of the transposed Jacobian with the cotangents."""
            weights = cotangents[0]
            if isinstance(weights.type, disconnected):
                return [disconnected()() for _ in inputs]
            if self.product == "values":
                return [SolveOperation(self.run, "pulled")(inputs[0], weights)]
            other = SolveOperation(self.run, "pushed" if self.product == "pulled" else "pulled")
            reason = "second derivatives of solutions are not defined"
            return [undefined(self, 0, inputs[0], reason), other(inputs[0], weights)]

        def R_op(self, inputs: Any, changes: Any) -> Any:
            """Product of the Jacobian with changes; None if nothing changes."""
            if self.product == "values":
                return [None if changes[0] is None else SolveOperation(self.run, "pushed")(inputs[0], changes[0])]
            return [None if changes[1] is None else self(inputs[0], changes[1])]

    undefined = required("pytensor.gradient", "pytensor").grad_undefined
    array = required("pytensor.graph.basic", "pytensor").Variable
    return SimpleNamespace(pt=pt, array=array, value=lambda run: SolveOperation(run, "values"))
