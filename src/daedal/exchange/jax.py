"""Solutions as JAX functions, with forward and reverse derivatives, compilation and batching."""

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
) -> JaxSolve:
    r"""Return the solution of a problem as a JAX function.

    Parameters
    ----------
    problem : object
        A problem whose sensitivities :func:`daedal.solve` can compute, a multibody model or a circuit.
    t_span : (float, float)
    t_eval : array, optional
        Output times; by default only the end.
    outputs : sequence of str, optional
        Names of variables; by default all, in the order of ``sol.names``.
    hold : {"zero", "first"}
        Interpolation of inputs given as samples: constant or linear between the sample times.
    derivatives : {"auto", "forward", "adjoint"}
        How reverse derivatives (vector-Jacobian products) are computed: from forward sensitivities, or by adjoint
        equations, whose cost does not grow with the number of parameters. "auto" uses adjoint equations for more than
        24 numbers if the problem supports them. Forward derivatives always use forward sensitivities.
    failed : {"raise", "nan"}
        Whether a failed run raises an error or returns NaN, for values and derivatives. A run fails if it does not
        reach the last output time, if there are no consistent initial values, or if functions are not finite there.
    **options
        Options of :func:`daedal.prepare`: method, rtol, atol, events, and so on; ``correct_initial=True`` by default.

    Returns
    -------
    function
        ``run(initial, params=None, inputs=None)`` with arguments as for :func:`daedal.solve`, whose numbers may be JAX
        arrays. It returns the variables at `t_eval`, of shape (n, len(t_eval)), or at the end, of shape (n,). Arguments
        with an additional leading axis, or mapped by `jax.vmap`, are batches; their members are solved by
        :func:`daedal.solve_many`.

    Notes
    -----
    The solution is computed outside of JAX in double precision, by a callback, and cast to the type of the arguments;
    ``jax.config.update("jax_enable_x64", True)`` preserves all digits. Derivatives are exact up to the tolerances, also
    across events, transitions and hidden switches. Second derivatives are not defined. In compiled functions JAX
    replaces the class of errors, but not their message.

    Examples
    --------
    >>> import daedal
    >>> import jax  # doctest: +SKIP
    >>> decay = daedal.ODE(lambda t, y, p: [-p["k"] * y[0]], 1, params={"k": 1.0})
    >>> run = daedal.jax.solve(decay, (0.0, 1.0), rtol=1e-8)  # doctest: +SKIP
    >>> jax.jit(jax.grad(lambda k: run([1.0], {"k": k})[0]))(2.0)  # doctest: +SKIP
    Array(-0.13533528, dtype=float32, weak_type=True)
    """
    _primitives()
    return JaxSolve(DifferentiableSolve(problem, t_span, t_eval, outputs, hold, derivatives, failed, options))


class JaxSolve:
    """The function returned by :func:`daedal.jax.solve`."""

    def __init__(self, given: DifferentiableSolve):
        self._given = given

    def __call__(self, initial: Any, params: Any = None, inputs: Any = None) -> Any:
        """Variables at the output times."""
        known = _primitives()
        run, form = self._given.bound(initial, params, inputs, lambda value: has(value, known.array))
        jnp = known.jnp

        def array(value: Any) -> Any:
            found = jnp.asarray(value)
            return found if jnp.issubdtype(found.dtype, jnp.floating) else found.astype(float)

        theta = as_vector(form, array, jnp.reshape, jnp.broadcast_to, lambda parts: jnp.concatenate(parts, axis=-1))
        return known.value.bind(theta, run=run)


@lru_cache(maxsize=1)
def _primitives() -> SimpleNamespace:
    """The values of a run and the two products with its Jacobian as JAX primitives, whose leading axes are batches.

    The product with the Jacobian is linear in the change of theta; its transpose is the other product.
    """
    jax = required("jax", "jax")
    ad, batching, mlir = (required(f"jax.interpreters.{name}", "jax") for name in ("ad", "batching", "mlir"))
    jnp, primitive = required("jax.numpy", "jax"), required("jax.extend.core", "jax").Primitive
    value, pushed, pulled = primitive("daedal_solve"), primitive("daedal_jvp"), primitive("daedal_vjp")

    def tail(kind: Any, run: DifferentiableRun) -> tuple[int, ...]:
        return (len(run.labels),) if kind is pulled else run.shape

    def define(kind: Any, product: str) -> None:
        def called(run: DifferentiableRun, *arguments: Any) -> np.ndarray:
            arrays = [np.asarray(x) for x in arguments]
            leading = arrays[0].shape[:-1]
            count = int(np.prod(leading))
            flat = [np.asarray(x, dtype=float).reshape(count, *x.shape[len(leading) :]) for x in arrays]
            found = getattr(run, product)(*flat).reshape(*leading, *tail(kind, run))
            return found.astype(arrays[0].dtype)

        def shape(theta: Any, *_: Any, run: DifferentiableRun) -> Any:
            return jax.core.ShapedArray((*theta.shape[:-1], *tail(kind, run)), theta.dtype)

        def callback(theta: Any, *further: Any, run: DifferentiableRun) -> Any:
            out = jax.ShapeDtypeStruct((*theta.shape[:-1], *tail(kind, run)), theta.dtype)
            return jax.pure_callback(lambda *x: called(run, *x), out, theta, *further)

        def batch(arguments: Any, axes: Any, *, run: DifferentiableRun) -> Any:
            count = next(x.shape[axis] for x, axis in zip(arguments, axes) if axis is not None)
            moved = [
                jnp.broadcast_to(x, (count, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
                for x, axis in zip(arguments, axes)
            ]
            return kind.bind(*moved, run=run), 0

        # errors are unchanged outside of compiled functions
        kind.def_impl(lambda *arrays, run: jnp.asarray(called(run, *arrays)))
        kind.def_abstract_eval(shape)
        mlir.register_lowering(kind, mlir.lower_fun(callback, multiple_results=False))
        batching.primitive_batchers[kind] = batch

    for kind, product in ((value, "values"), (pushed, "pushed"), (pulled, "pulled")):
        define(kind, product)

    def derivative(primals: Any, tangents: Any, *, run: DifferentiableRun) -> Any:
        (theta,), (change,) = primals, tangents
        return value.bind(theta, run=run), pushed.bind(theta, ad.instantiate_zeros(change), run=run)

    def linear(kind: Any) -> Any:
        def rule(primals: Any, tangents: Any, *, run: DifferentiableRun) -> Any:
            if type(tangents[0]) is not ad.Zero:
                raise NotImplementedError(
                    "second derivatives of solutions are not defined: derivatives of daedal.jax.solve cannot be "
                    "differentiated again with respect to its arguments"
                )
            change = kind.bind(primals[0], ad.instantiate_zeros(tangents[1]), run=run)
            return kind.bind(*primals, run=run), change

        return rule

    def transposed(other: Any) -> Any:
        def rule(cotangent: Any, theta: Any, change: Any, *, run: DifferentiableRun) -> Any:
            if type(cotangent) is ad.Zero:
                return None, ad.Zero(change.aval)
            return None, other.bind(theta, cotangent, run=run)

        return rule

    ad.primitive_jvps[value] = derivative
    ad.primitive_jvps[pushed], ad.primitive_jvps[pulled] = linear(pushed), linear(pulled)
    ad.primitive_transposes[pushed], ad.primitive_transposes[pulled] = transposed(pulled), transposed(pushed)
    return SimpleNamespace(jnp=jnp, value=value, array=jax.Array)
