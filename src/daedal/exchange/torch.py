"""Solutions as PyTorch functions, with reverse and forward derivatives and batching."""

from __future__ import annotations

from functools import lru_cache
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
) -> TorchSolve:
    r"""Return the solution of a problem as a PyTorch function.

    Parameters
    ----------
    problem, t_span, t_eval, outputs, hold, derivatives, failed, **options
        As for :func:`daedal.jax.solve`.

    Returns
    -------
    function
        ``run(initial, params=None, inputs=None)`` as for :func:`daedal.jax.solve`, for tensors; `torch.vmap` maps
        arguments to batches.

    Notes
    -----
    The solution is computed on the CPU in double precision, and cast to the device of the arguments and the widest type
    among the tensors (float64 if there are none). Second derivatives raise an error.

    Examples
    --------
    >>> import daedal
    >>> import torch  # doctest: +SKIP
    >>> decay = daedal.ODE(lambda t, y, p: [-p["k"] * y[0]], 1, params={"k": 1.0})
    >>> run = daedal.torch.solve(decay, (0.0, 1.0), rtol=1e-8)  # doctest: +SKIP
    >>> k = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)  # doctest: +SKIP
    >>> run([1.0], {"k": k})[0].backward()  # doctest: +SKIP
    >>> k.grad  # doctest: +SKIP
    tensor(-0.1353, dtype=torch.float64)
    """
    _functions()
    return TorchSolve(DifferentiableSolve(problem, t_span, t_eval, outputs, hold, derivatives, failed, options))


class TorchSolve:
    """The function returned by :func:`daedal.torch.solve`."""

    def __init__(self, given: DifferentiableSolve):
        self._given = given

    def __call__(self, initial: Any, params: Any = None, inputs: Any = None) -> Any:
        """Variables at the output times."""
        torch = required("torch", "torch")
        run, form = self._given.bound(initial, params, inputs, lambda value: has(value, torch.Tensor))
        tensors = [x for value in form.values for x in _tensors(value, torch)]
        kinds = [x.dtype for x in tensors if x.dtype.is_floating_point]
        kind = torch.float64
        if kinds:
            kind = max(kinds, key=lambda dtype: torch.finfo(dtype).bits)
        device = tensors[0].device if tensors else None

        def array(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return torch.stack([array(entry) for entry in value])
            return torch.as_tensor(value, dtype=kind, device=device)

        def join(parts: list[Any]) -> Any:
            return torch.cat(parts, dim=-1)

        return _functions().apply(as_vector(form, array, torch.reshape, torch.broadcast_to, join), run)


def _tensors(value: Any, torch: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [x for entry in value for x in _tensors(entry, torch)]
    return [value] if isinstance(value, torch.Tensor) else []


@lru_cache(maxsize=1)
def _functions() -> Any:
    """The solution as a function of autograd; its products with the Jacobian are separate functions."""
    torch = required("torch", "torch")
    function: Any = torch.autograd.Function

    def called(product: str, run: DifferentiableRun, theta: Any, *further: Any) -> Any:
        """Apply a method of the run to tensors with any leading axes."""
        leading = theta.shape[:-1]
        count = int(np.prod(leading))
        flat = [
            np.ascontiguousarray(x.detach().cpu().numpy(), dtype=float).reshape(count, *x.shape[len(leading) :])
            for x in (theta, *further)
        ]
        found = getattr(run, product)(*flat)
        return torch.from_numpy(found.reshape(*leading, *found.shape[1:])).to(theta)

    def in_front(count: int, dims: Any, *tensors: Any) -> list[Any]:
        """Move the mapped axis, if there is one, to the front; otherwise add one."""
        return [x.expand(count, *x.shape) if dim is None else x.movedim(dim, 0) for x, dim in zip(tensors, dims)]

    class ValueFunction(function):
        """The solution as a function of theta."""

        @staticmethod
        def forward(theta: Any, run: DifferentiableRun) -> Any:
            return called("values", run, theta)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            theta, ctx.run = inputs
            ctx.save_for_backward(theta)
            ctx.save_for_forward(theta)

        @staticmethod
        def backward(ctx: Any, weights: Any) -> Any:
            return ProductFunction.apply(ctx.saved_tensors[0], weights, ctx.run, "pulled"), None

        @staticmethod
        def jvp(ctx: Any, change: Any, _: Any) -> Any:
            return ProductFunction.apply(ctx.saved_tensors[0], change, ctx.run, "pushed")

        @staticmethod
        def vmap(info: Any, dims: Any, theta: Any, run: DifferentiableRun) -> Any:
            (theta,) = in_front(info.batch_size, dims, theta)
            return ValueFunction.apply(theta, run), 0

    class ProductFunction(function):
        """Product of the Jacobian or its transpose with `change`, linear in `change`."""

        @staticmethod
        def forward(theta: Any, change: Any, run: DifferentiableRun, product: str) -> Any:
            return called(product, run, theta, change)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            theta, _, ctx.run, ctx.product = inputs
            ctx.save_for_backward(theta)
            ctx.save_for_forward(theta)

        @staticmethod
        def backward(ctx: Any, weights: Any) -> Any:
            if ctx.needs_input_grad[0]:
                raise NotImplementedError(
                    "second derivatives of solutions are not defined: derivatives of daedal.torch.solve cannot be "
                    "differentiated again with respect to its arguments"
                )
            other = "pushed" if ctx.product == "pulled" else "pulled"
            return None, ProductFunction.apply(ctx.saved_tensors[0], weights, ctx.run, other), None, None

        @staticmethod
        def vmap(info: Any, dims: Any, theta: Any, change: Any, run: DifferentiableRun, product: str) -> Any:
            theta, change = in_front(info.batch_size, dims, theta, change)
            return ProductFunction.apply(theta, change, run, product), 0

    return ValueFunction
