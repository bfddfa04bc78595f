r"""The linearised equations of a problem in independent coordinates.

The equations with the derivatives required by the structure are :math:`f(t, w, u, \dot u, \dots) = 0` in :math:`w = (x,
\dot x, \dots)`. Rows S select as many entries of w, the coordinates :math:`z = S w`, as there are degrees of freedom;
:math:`S'` selects their derivatives. With

.. math::

    \begin{pmatrix} f_w \\ S \end{pmatrix} (T, P_0, P_1, \dots)
      = \begin{pmatrix} 0 & -f_u & -f_{\dot u} & \dots \\ I & 0 & 0 & \dots \end{pmatrix}

all changes are :math:`\delta w = T\,\delta z + \sum_k P_k\,\delta u^{(k)}`, and :math:`\delta z' = S'\,\delta w`. This
holds along any solution, since S is constant (index reduction by dummy derivatives: S. E. Mattsson and G. Soederlind,
SIAM J. Sci. Comput. 14, 1993).

If functions cannot be traced, the coefficients are difference quotients and the coordinates come from the Weierstrass
form of the pencil (BCP, theorem 2.3.2), which needs index 1 or an equilibrium.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr

from daedal.analysis.index import partials
from daedal.analysis.linear_models.linear_model import Descriptor
from daedal.common.tabular import derivative_name
from daedal.errors import InvalidProblemError, UnknownNameError, near_names
from daedal.index.linear.pencil import Pencil
from daedal.index.linear.rank import TOLERANCE
from daedal.index.reduction.prolongation import UNKNOWNS, arguments
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.reduction.selection import SingularBlock
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import kept_equations
from daedal.index.structure.system_jacobian import SystemJacobian
from daedal.problems.compile import with_known_params
from daedal.problems.named_inputs import Course, Inputs, at_piece, require_inputs, value_of
from daedal.symbolic.derivative import jacobian
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import inlined
from daedal.symbolic.machine import compile_function
from daedal.symbolic.tracing.parameters import NAME, ParameterLayout

Jet = np.ndarray
"""x, x', ... in rows; NaN for unknown values."""
_AT_REST = 1e-9  # derivatives below this fraction of the size of the unknowns count as zero
_DIFFERENCE_TOLERANCE = 1e-7  # tolerance for the ranks of pencils from difference quotients
_INCREMENT = 1e-6  # increment of inputs for difference quotients
_SMALLEST = 1e-3  # smallest size assumed for an unknown in the search for a point
_MOST_AMPLIFIED = 10.0  # maximum change of dependent unknowns per change of the coordinates; beyond it, others are used


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The linear equations of perturbations at a point."""

    # the matrices of z' = A z + B u
    A: np.ndarray
    B: np.ndarray
    states: tuple[str, ...]
    # names and values of w
    names: list[str]
    point: np.ndarray
    column: dict[tuple[int, int], int]  # the position of x_j^(k) in w, by (j, k)
    # the derivatives of w with respect to z, and to u, u', ...
    T: np.ndarray
    P: list[np.ndarray]
    descriptor: Descriptor
    is_equilibrium: bool
    exact: bool


def without_input_derivatives(
    A: np.ndarray, B: Sequence[np.ndarray], T: np.ndarray, P: Sequence[np.ndarray]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """B and P for coordinates minus combinations of the inputs, so that z' = A z + B u without u', u'', ...

    With z = z~ + Q u^(k-1), Q = B_k, the derivative u^(k) cancels in z' = A z + ... + B_k u^(k).
    """
    B, P = [b.copy() for b in B], [p.copy() for p in P]
    for k in range(len(B) - 1, 0, -1):
        B[k - 1] += A @ B[k]
        P[k - 1] += T @ B[k]
    return B[0], P


class TracedLocalModels:
    """Local models of a problem with traced functions, at any number of points; inputs are perturbed at the time t.

    Raises Untraceable if a function cannot be traced.
    """

    def __init__(self, problem: Any, t: float, inputs: Sequence[str] | None):
        self._stated, self._names = problem, inputs
        given = VariedInputs(problem, t, inputs, 0)
        signature = StructuralSignature.of(kept_equations(given.problem)) if given.labels else None
        order = 0 if signature is None else int(max(signature.c, default=0))
        self.inputs = VariedInputs(problem, t, inputs, order) if order else given
        self.equations = kept_equations(self.inputs.problem)
        self._kept: ReducedProblem | None = None
        signature = StructuralSignature.of(self.equations)
        self.is_regular = SystemJacobian(self.equations, signature).generic.verdict != "singular"
        if self.is_regular:
            self._reduced = ReducedProblem(self.inputs.problem, self.equations, signature)

    @property
    def problem(self) -> Any:
        """The problem with unperturbed inputs."""
        return self.inputs.problem

    def moved(self, t: float) -> TracedLocalModels:
        """A copy with the inputs perturbed at another time."""
        if not self.inputs.labels:
            return self
        inputs = VariedInputs(self._stated, t, self._names, self.inputs.order)
        equations = self.equations.with_problem(inputs.problem)
        if equations is None or equations.params is None:  # another piece of a signal, with a different degree
            return TracedLocalModels(self._stated, t, self._names)
        other = copy(self)
        other.inputs, other.equations = inputs, equations
        if self.is_regular:
            other._reduced = self._reduced.with_numbers(inputs.problem, equations.params)
            other._kept = None if self._kept is None else self._kept.with_numbers(inputs.problem, equations.params)
        return other

    @cached_property
    def _input_code(self):
        """The partial derivatives of all equations with respect to the inputs, as machine code."""
        prolongation, graph = self._reduced.prolongation, Graph()
        places = {column: graph.argument(UNKNOWNS, column) for column in range(prolongation.n)}
        nodes = [prolongation.equations.equation(i, r) for i, r in prolongation.kept]
        f = inlined(prolongation.equations.graph, nodes, graph, arguments(prolongation, graph, places, nodes))
        rows = jacobian(graph, f, [graph.argument(NAME, int(k)) for places, _ in self._places for k in places])
        count = sum(len(places) for places, _ in self._places)
        matrix = np.array([[row.get(k, graph.zero) for k in range(count)] for row in rows], dtype=np.int64)
        sizes = {NAME: self._reduced.constraints.numbers.size}
        return compile_function(graph, {UNKNOWNS: prolongation.n}, {"": matrix.reshape(len(rows), count)}, sizes)

    @cached_property
    def _places(self) -> list[tuple[np.ndarray, float]]:
        layout = self.equations.layout
        return [] if layout is None or not self.inputs.labels else self.inputs.positions(layout)

    def point(self, t: float, jet: Jet) -> np.ndarray:
        """A point w that satisfies all equations, near given values; unknown ones (NaN) follow from the equations."""
        reduced = self._reduced
        u = np.zeros(reduced.prolongation.n)
        for (j, k), column in reduced.prolongation.column.items():
            if k < len(jet) and np.isfinite(jet[k, j]):
                u[column] = jet[k, j]
        for _ in range(3):  # the selection depends on values computed in this loop
            sizes = np.maximum(np.abs(u), _SMALLEST)
            [u], _, [found] = self._selected(t, u, sizes).exact(np.array([t]), u[None, :], sizes)
        if not found:
            raise InvalidProblemError(
                f"the equations have no solution near the given point, t = {t:g}. Remedy: give consistent values, as "
                "from daedal.consistent_initial, or equilibrium=True to search for an equilibrium"
            )
        return u

    def _selected(self, t: float, u: np.ndarray, sizes: np.ndarray) -> ReducedProblem:
        try:
            return self._reduced.selected(t, u, sizes)
        except SingularBlock as singular:
            names = [self._reduced.prolongation.names[column] for column in singular.block.columns]
            raise InvalidProblemError(
                f"the equations do not determine {', '.join(names[:6])} at t = {t:g}: the point is singular. Remedy: "
                "linearise at another point"
            ) from None

    def at(self, t: float, u: np.ndarray) -> LocalModel:
        """The local model at a point w that satisfies all equations.

        The coordinates of the previous point are used if suitable.
        """
        sizes, selected = np.ones(u.size), self._kept
        if selected is None or selected.amplification(t, u, sizes) > _MOST_AMPLIFIED:
            selected = self._kept = self._selected(t, u, sizes)
        prolongation = selected.prolongation
        S, following = selected.coordinates()
        _, f_w, _ = selected.constraints.dense_values(t, u)
        n_z, m, count = len(S), len(f_w), len(self.inputs.labels)
        right = np.zeros((m + n_z, n_z + count * len(self._places)))
        right[m:, :n_z] = np.eye(n_z)
        by_numbers = np.zeros((m, 0))
        if count:
            code, numbers = self._input_code, selected.constraints.numbers
            by_numbers = code(float(t), **{UNKNOWNS: u, NAME: numbers})[1][""]
            factors = np.repeat([factor for _, factor in self._places], count)
            by_numbers = by_numbers * factors
            right[:m, n_z:] = -by_numbers
        whole = np.concatenate([f_w, S])
        rows = np.maximum(np.abs(whole).max(axis=1, keepdims=True, initial=0.0), 1e-300)
        solved = np.linalg.solve(whole / rows, right / rows)
        T, P = solved[:, :n_z], [solved[:, n_z + k * count :][:, :count] for k in range(len(self._places))]
        A = following @ T
        B, P = without_input_derivatives(A, [following @ p for p in P] or [np.zeros((n_z, 0))], T, P)
        names = prolongation.names
        states = tuple(names[int(np.argmax(np.abs(row)))] for row in S)
        jet = selected.jet(u)
        return LocalModel(
            A=A,
            B=B,
            states=states,
            names=names,
            point=u,
            column=prolongation.column,
            T=T,
            P=P,
            descriptor=self._descriptor(t, jet),
            is_equilibrium=is_at_rest(jet),
            exact=True,
        )

    def _descriptor(self, t: float, jet: Jet) -> Descriptor:
        """E, A and B in x and, for variables of order 2, x'."""
        equations, n = self.equations, self.equations.n
        values = np.zeros((equations.order + 1, n))
        known = np.nan_to_num(jet[: equations.order + 1])
        values[: len(known)] = known
        matrices = [np.zeros((n, n)) for _ in range(equations.order + 1)]
        entries = [(i, j, k, node) for i, row in enumerate(equations.partials) for (j, k), node in row.items()]
        found = equations.values([node for *_, node in entries], t, values)
        for (i, j, k, _), value in zip(entries, found, strict=True):
            matrices[k][i, j] = value
        inputs = np.zeros((n, len(self.inputs.labels)))
        if inputs.shape[1]:
            with equations.lock:
                numbers = [equations.graph.argument(NAME, int(k)) for k in self._places[0][0]]
            rows = equations.jacobian(equations.nodes, numbers)
            places = [(i, k, node) for i, row in enumerate(rows) for k, node in row.items()]
            for (i, k, _), value in zip(places, equations.values([x for *_, x in places], t, values), strict=True):
                inputs[i, k] = value
        return descriptor_of(matrices, inputs, equations.names, equations.orders)

    def jet_at_rest(self, t: float, jet: Jet) -> Jet:
        """Values near given ones at which all derivatives vanish."""
        equations, n = self.equations, self.equations.n
        entries = [(i, j, node) for i, row in enumerate(equations.partials) for (j, k), node in row.items() if k == 0]
        code = equations.evaluator([*equations.nodes, *(node for *_, node in entries)])
        rows, columns = [i for i, _, _ in entries], [j for _, j, _ in entries]

        def evaluated(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            values, matrix = np.zeros((equations.order + 1, n)), np.zeros((n, n))
            values[0] = x
            found = code(t, values)
            matrix[rows, columns] = found[n:]
            return found[:n], matrix

        at_rest = np.zeros((equations.order + 1, n))
        with np.errstate(all="ignore"):  # trial values may be undefined
            at_rest[0] = zero_by_least_squares(evaluated, np.nan_to_num(jet[0]))
        return at_rest

    def pencil(self, t: float, jet: Jet) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], tuple[str, ...], Jet]:
        """E, F, F_u of the descriptor form, with the names of its unknowns and their values."""
        found = self._descriptor(t, jet)
        values = dict(zip(self.equations.names, jet.T, strict=True))
        second = [name for name in found.names if name not in values]
        first = jet[:2].T
        if second:
            first = np.concatenate([first, [row[1:3] for j, row in enumerate(jet.T) if self.equations.orders[j] > 1]])
        return (found.E, -found.A, -found.B), found.names, np.nan_to_num(first.T)


def zero_by_least_squares(evaluated: Any, x: np.ndarray) -> np.ndarray:
    """A zero near x of a function; ``evaluated(x)`` returns its values and its Jacobian. Raises if none is found."""
    residual, matrix = evaluated(x)
    for _ in range(100):
        if not (np.isfinite(residual).all() and np.isfinite(matrix).all()):
            break
        rows = np.maximum(np.abs(matrix).max(axis=1, initial=0.0), 1e-300)
        step = -np.linalg.lstsq(matrix / rows[:, None], residual / rows, rcond=1e-13)[0]
        size = float(np.linalg.norm(residual / rows))
        if np.linalg.norm(step) <= 1e-14 * max(1.0, float(np.linalg.norm(x))):
            if size <= 1e-9 * max(1.0, float(np.linalg.norm(x))):
                return x + step
            break
        factor = 1.0
        while factor > 1e-6:
            trial, following = evaluated(x + factor * step)
            if np.isfinite(trial).all() and np.linalg.norm(trial / rows) <= (1.0 - 0.1 * factor) * size:
                break
            factor *= 0.5
        else:
            if size <= 1e-9 * max(1.0, float(np.linalg.norm(x))):
                return x
            break
        x, residual, matrix = x + factor * step, trial, following
    worst = int(np.nanargmax(np.abs(residual))) if np.isfinite(residual).any() else 0
    raise InvalidProblemError(
        f"no equilibrium was found near the given values: equation {worst} (counted from 0) has a residual of "
        f"{residual[worst]:.3g}. Remedy: give values closer to it in `at`, or other values of the inputs"
    )


def is_at_rest(jet: Jet) -> bool:
    """Whether all known derivatives vanish."""
    size = max(1.0, float(np.nanmax(np.abs(jet[0]), initial=0.0)))
    return bool(np.nanmax(np.abs(jet[1:]), initial=0.0) <= _AT_REST * size)


def descriptor_of(
    matrices: Sequence[np.ndarray], inputs: np.ndarray, names: Sequence[str], orders: np.ndarray
) -> Descriptor:
    """E, A, B of sum_k F_k x^(k) + F_u u = 0, with x' of variables of order 2 as additional unknowns."""
    n, second = len(names), np.flatnonzero(orders > 1)
    rates = np.array(matrices[1])
    E, A = np.zeros((2, n + second.size, n + second.size))
    A[:n, :n] = -matrices[0]
    if second.size:
        A[:n, n:] = -rates[:, second]
        rates[:, second] = 0.0
        E[:n, n:] = matrices[2][:, second]
        E[n + np.arange(second.size), second] = 1.0
        A[n + np.arange(second.size), n + np.arange(second.size)] = 1.0
    E[:n, :n] = rates
    B = np.zeros((n + second.size, inputs.shape[1]))
    B[:n] = -inputs
    return Descriptor(E, A, B, (*names, *(derivative_name(names[int(j)], 1) for j in second)))


# --- pencils: functions that cannot be traced, or with misleading structure -------------------------------------------


def difference_matrices(
    implicit: Any, varied: VariedInputs, t: float, y: np.ndarray, yp: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """dF/dy', dF/dy and dF/du by difference quotients."""
    E, F = partials(implicit.evaluate, t, y, yp)
    inputs = np.zeros((implicit.n, len(varied.labels)))
    for k in range(inputs.shape[1]):
        ahead, behind = (varied.changed(0, k, s * _INCREMENT).implicit().evaluate(t, y, yp) for s in (1.0, -1.0))
        inputs[:, k] = (ahead - behind) / (2.0 * _INCREMENT)
    return E, F, inputs


def local_model_of_pencil(
    matrices: tuple[np.ndarray, np.ndarray, np.ndarray], names: Sequence[str], jet: Jet, exact: bool
) -> LocalModel:
    """The local model of E y' + F y + F_u u = 0 at (y, y')."""
    E, F, inputs = matrices
    pencil = Pencil(E, F, names=names, tolerance=TOLERANCE if exact else _DIFFERENCE_TOLERANCE)
    pencil.require_regular("linearise")
    form, at_rest, n = pencil.weierstrass(), is_at_rest(jet), len(names)
    if form.index > 1 and not at_rest:
        why = (
            "the structure of the equations is misleading" if exact else "the functions of the problem cannot be traced"
        )
        raise InvalidProblemError(
            f"{why}, the equations have index {form.index}, and the point is not an equilibrium: the linear model "
            "needs derivatives of the equations. Remedy: linearise at an equilibrium, or define the problem such "
            "that daedal.analyse finds the index from its structure"
        )
    n_z = form.n_finite
    Q1, Q2 = form.Q[:, :n_z], form.Q[:, n_z:]
    S = np.zeros((n_z, n))
    if n_z:
        _, order = qr(Q1.T / np.maximum(np.abs(Q1).max(axis=1), 1e-300), mode="r", pivoting=True)
        S = np.eye(n)[np.sort(order[:n_z])]
    coordinates = S @ Q1
    inverse = np.linalg.inv(coordinates)
    forces, T = -form.P @ inputs, Q1 @ inverse
    A, B = coordinates @ -form.C @ inverse, coordinates @ forces[:n_z]
    P, power = [], forces[n_z:]
    for _ in range(max(form.index, 1)):  # N y' + y = f: y = f - N f' + ...
        P.append(Q2 @ power)
        power = -form.N @ power
    following = [*P[1:], np.zeros_like(P[0])]
    rates = [np.concatenate([P[0], T @ B])]
    rates += [np.concatenate([p, before]) for p, before in zip(following, P, strict=True)]
    return LocalModel(
        A=A,
        B=B,
        states=tuple(names[int(np.argmax(row))] for row in S),
        names=[*names, *(derivative_name(name, 1) for name in names)],
        point=np.concatenate([jet[0], jet[1]]),
        column={(j, k): j + k * n for j in range(n) for k in (0, 1)},
        T=np.concatenate([T, T @ A]),
        P=rates,
        descriptor=descriptor_of([F, E], inputs, names, np.ones(n)),
        is_equilibrium=at_rest,
        exact=exact,
    )


# --- inputs with values and derivatives at a time as parameters, for differentiation of the trace ---------------------


class Varied(NamedTuple):
    r"""An input plus a polynomial :math:`\sum_k c_k (t - t_0)^k / k!`; :math:`c_k` perturbs its k-th derivative."""

    base: Any
    change: Course

    def __call__(self, t):
        return value_of(self.base, t) + self.change.at(t)


class VariedInputs:
    """A problem whose inputs, and their first derivatives up to `order`, can be perturbed at a time.

    `names` are the perturbed inputs, by default all. `problem` is the problem with all perturbations zero; `labels`
    are the names of the perturbed numbers, one for each entry of an input.
    """

    def __init__(self, problem: Any, t: float, names: Sequence[str] | None, order: int):
        self.labels: tuple[str, ...] = ()
        self._t, self.order = t, order
        if names is not None and len(names):
            require_inputs(problem)
        known = getattr(problem, "inputs", None)
        self._inputs = known if isinstance(known, Inputs) else None
        chosen: list[str] = []
        if self._inputs is not None:
            chosen = list(self._inputs if names is None else names)
            for name in chosen:
                if name not in self._inputs:
                    hint = near_names(name, self._inputs)
                    raise UnknownNameError(
                        f"inputs: {name!r} is not an input of the problem; {hint}known: {', '.join(self._inputs)}"
                    )
            if len(set(chosen)) < len(chosen):
                raise InvalidProblemError(
                    f"inputs contains duplicates: {', '.join(chosen)}. Remedy: name each input once"
                )
            problem = at_piece(problem, t)
        self._plain, self._chosen = problem, chosen
        self.shapes = {name: self._inputs.shapes[name] for name in chosen} if self._inputs is not None else {}
        self.labels = tuple(
            label
            for name, shape in self.shapes.items()
            for label in ([name] if not shape else [f"{name}[{k}]" for k in range(shape[0])])
        )
        self.problem = self.changed(0, None)

    def changed(self, order: int, label: int | None, by: float = 1.0) -> Any:
        """The problem with derivative `order` of input `label` perturbed by `by`; unperturbed if `label` is None."""
        if not self._chosen:
            return self._plain
        changes: dict[str, np.ndarray] = {}
        first = 0
        for name, shape in self.shapes.items():
            size = shape[0] if shape else 1
            values = np.zeros((self.order + 1, size))
            if label is not None and first <= label < first + size:
                values[order, label - first] = by / _factorial(order)
            changes[name] = values if shape else values[:, 0]
            first += size
        given: Mapping[str, Any] = self._plain.params.inputs
        varied = {name: Varied(given[name], Course(change, self._t)) for name, change in changes.items()}
        return with_known_params(self._plain, self._plain.params._replace(inputs={**given, **varied}))

    def positions(self, layout: ParameterLayout) -> list[tuple[np.ndarray, float]]:
        """For each order k, the positions of c_k / k! among the parameter values, and the factor 1 / k!."""
        base = layout.numbers(self.problem.params)
        found = []
        for order in range(self.order + 1):
            places = [
                int(np.flatnonzero(layout.numbers(self.changed(order, k).params) != base)[0])
                for k in range(len(self.labels))
            ]
            found.append((np.array(places, dtype=np.int64), 1.0 / _factorial(order)))
        return found


def _factorial(order: int) -> float:
    return float(np.prod(np.arange(1, order + 1))) if order else 1.0
