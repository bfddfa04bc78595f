"""Verify which order conditions a tableau satisfies, and determine its order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from daedal.analysis.order_conditions.formulas import Condition, conditions
from daedal.analysis.order_conditions.trees import Evaluation, ScalarField, choose_arithmetic
from daedal.errors import InvalidProblemError
from daedal.methods.half_explicit.half_explicit_tableaux import TABLEAUX
from daedal.methods.tableau import HalfExplicitTableau, as_coefficient

TOLERANCE = 1e-10
"""Residuals computed in floats count as zero below this value."""


@dataclass(frozen=True)
class Check:
    """One condition and its result: left-hand and right-hand side, residual, and whether it holds."""

    condition: Condition
    left: Any
    right: Any
    residual: Any
    holds: bool


@dataclass(frozen=True)
class Report:
    """The verified conditions; ``print`` lists the results.

    Attributes
    ----------
    title : str
        Title of the report.
    checks : tuple of Check
        One for each condition.
    exact : bool
        Whether the residuals are exact numbers.
    row_sums : bool
        Whether the nodes c are the row sums of a, as time-dependent problems require.
    """

    title: str
    checks: tuple[Check, ...]
    exact: bool
    row_sums: bool

    @property
    def holds(self) -> bool:
        """Whether every condition holds."""
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        """The conditions that do not hold."""
        return tuple(check for check in self.checks if not check.holds)

    @property
    def order(self) -> int:
        """The highest order up to which every verified condition holds."""
        highest = max((check.condition.order for check in self.checks), default=0)
        return min((check.condition.order - 1 for check in self.failures), default=highest)

    @property
    def largest(self) -> float:
        """The largest absolute value of the residuals."""
        return max((abs(float(check.residual)) for check in self.checks), default=0.0)

    def counts(self) -> dict[int, tuple[int, int]]:
        """For each order, the number of satisfied conditions and their total."""
        result: dict[int, tuple[int, int]] = {}
        for check in self.checks:
            held, total = result.get(check.condition.order, (0, 0))
            result[check.condition.order] = held + check.holds, total + 1
        return result

    def __str__(self) -> str:
        kind = "exactly" if self.exact else f"to {TOLERANCE:g}"
        lines = [f"{self.title}: {len(self.checks) - len(self.failures)} of {len(self.checks)} conditions hold {kind}"]
        lines += [f"  order {order}: {held} of {total}" for order, (held, total) in self.counts().items()]
        if not self.row_sums:
            lines.append("  the nodes c are not the row sums of a")
        for check in self.failures[:20]:
            condition = check.condition
            table = "" if condition.table == 1 else f" of Table {condition.table}"
            size = f"{check.residual:.3g}" if isinstance(check.residual, float) else check.residual
            lines.append(f"  nr {condition.number}{table} fails by {size}: {condition.left_side()} = {check.right}")
        if len(self.failures) > 20:
            lines.append(f"  and {len(self.failures) - 20} others")
        return "\n".join(lines)


# --- verifying a tableau ----------------------------------------------------------------------------------------------

HIGHEST_ORDER = 7


def as_tableau(method: Any) -> HalfExplicitTableau:
    """The tableau of a method, given by an object, a name, or a pair (a, b)."""
    if isinstance(method, str):
        if method.lower() not in TABLEAUX:
            raise InvalidProblemError(f"there is no tableau {method!r}; available: {', '.join(TABLEAUX)}")
        return TABLEAUX[method.lower()]
    if isinstance(method, tuple):
        a, b = method
        return HalfExplicitTableau("The method", a, b)
    found = getattr(method, "tableau", method)
    if not isinstance(found, HalfExplicitTableau):
        raise InvalidProblemError(f"{method!r} does not have the coefficients of a half-explicit method")
    return found


def omega(tableau: Any) -> list[list[Any]]:
    r"""The matrix :math:`\omega = A'^{-1}`, exact for exact coefficients.

    Examples
    --------
    >>> [[str(x) for x in row] for row in omega("hem3")]
    [['3', '0', '0'], ['3/2', '1/2', '0'], ['-9/2', '-3/2', '4']]
    """
    method = as_tableau(tableau)
    arithmetic = choose_arithmetic(_coefficients(method), exact=True)
    return [[arithmetic.leave(x) for x in row] for row in Evaluation.half_explicit(method, arithmetic).omega]


def verify(
    tableau: Any,
    order: int | None = None,
    linear_in_z: bool = False,
    exact: bool = True,
    *,
    weights: Any = None,
    theta: Any = 1,
) -> Report:
    r"""Verify the order conditions of a half-explicit method.

    A method has order p if and only if it satisfies every condition up to order p; then :math:`y_1 - y(t_0 + h) =
    O(h^{p+1})`. For partitioned methods :math:`z_0` is assumed exact.

    Parameters
    ----------
    tableau : HalfExplicitTableau, method, str or pair (a, b)
        The coefficients, or a name such as ``"hem4"``.
    order : int, optional
        Highest order to check. By default the order stated by the tableau if there is one, otherwise the first order at
        which a condition fails.
    linear_in_z : bool
        Check only the conditions required if f is linear in z, as for mechanical systems.
    exact : bool
        Use exact arithmetic if all coefficients are exact; otherwise floats.
    weights : sequence, "bhat", "dense", optional
        Weights of another approximation with the same stages: the conditions of Table 3 are added, because it need not
        satisfy the constraint. An additional weight s + 1 multiplies :math:`f(y_1, z_1)` with :math:`z_1` from the
        hidden constraint.
    theta : number
        The point :math:`t_0 + \theta h` approximated by the weights.

    Returns
    -------
    Report
        All conditions with their residuals.

    References
    ----------
    V. Brasey, E. Hairer, SIAM J. Numer. Anal. 30 (1993), section 3, Tables 1 and 3.

    Examples
    --------
    >>> report = verify("hem4", order=5)
    >>> report.order, report.counts()
    (4, {1: (1, 1), 2: (1, 1), 3: (4, 4), 4: (14, 14), 5: (21, 56)})
    """
    method = as_tableau(tableau)
    if weights is None:
        return _verify(method, method.b, as_coefficient(theta), (1,), order or method.order, linear_in_z, exact)
    theta = as_coefficient(theta)
    return _verify(method, _weights(method, weights, theta), theta, (1, 3), order, linear_in_z, exact)


def _verify(
    method: HalfExplicitTableau,
    row: Sequence[Any],
    theta: Any,
    tables: Sequence[int],
    order: int | None,
    linear_in_z: bool,
    exact: bool,
) -> Report:
    if len(row) not in (method.s, method.s + 1):
        raise InvalidProblemError(f"{method.name} has {method.s} stages, but {len(row)} weights were given")
    arithmetic = choose_arithmetic([*_coefficients(method), *row, theta], exact)
    evaluation = Evaluation.half_explicit(method, arithmetic)
    entered = [arithmetic.enter(x) for x in row]

    def left(condition: Condition) -> Any:
        values = evaluation.values(condition.tree)
        if len(entered) > method.s:
            values = [*values, evaluation.at_end(condition.tree, arithmetic.enter)]
        return evaluation.dot(entered, values)

    title = f"{method.name}, weights at theta = {theta}" if 3 in tables else method.name
    found = _check(method, tables, order, linear_in_z, left, theta, arithmetic)
    return Report(title, found, arithmetic.exact, _row_sums(method, arithmetic))


def verify_stage(
    tableau: Any, stage: int, order: int | None = None, linear_in_z: bool = False, exact: bool = True
) -> Report:
    r"""Conditions for a stage, :math:`Y_i - y(t_0 + c_i h) = O(h^{p+1})`.

    Parameters
    ----------
    tableau, order, linear_in_z, exact
        See :func:`verify`.
    stage : int
        The stage, counted from 1.

    Examples
    --------
    >>> verify_stage("hem4", 5).order
    2
    """
    method = as_tableau(tableau)
    _require_stage(method, stage)
    row = method.a[stage - 1]
    padded = (*row, *[Fraction(0)] * (method.s - len(row)))
    return verify(method, order, linear_in_z, exact, weights=padded, theta=method.c[stage - 1])


def verify_z(
    tableau: Any, stage: int | None = None, order: int | None = None, linear_in_z: bool = False, exact: bool = True
) -> Report:
    r"""Conditions for a stage of z, Table 4.

    :math:`Z_i - z(t_0 + c_i h) = O(h^{r+1})` if they hold up to order r and :math:`Y_i - y(t_0 + c_i h) = O(h^{r+1})`;
    :func:`z_order` combines both.

    Parameters
    ----------
    tableau, order, linear_in_z, exact
        See :func:`verify`; the default order is the first at which a condition fails.
    stage : int, optional
        The stage, counted from 1; the last one by default.

    References
    ----------
    V. Brasey, E. Hairer, SIAM J. Numer. Anal. 30 (1993), section 3, Table 4.

    Examples
    --------
    >>> report = verify_z("hem4", order=2)
    >>> [(check.condition.number, check.left, check.holds) for check in report.checks]
    [(1, 2, True), (2, (36 - √6)/10, False), (3, (36 - √6)/20, False)]
    """
    method = as_tableau(tableau)
    stage = method.s if stage is None else stage
    _require_stage(method, stage, first=2 if method.partitioned else 1)
    theta = method.c[stage - 1]
    arithmetic = choose_arithmetic([*_coefficients(method), theta], exact)
    evaluation = Evaluation.half_explicit(method, arithmetic)
    row = evaluation.omega[stage - 1]

    def left(condition: Condition) -> Any:
        return evaluation.dot(row, evaluation.values(condition.tree))

    found = _check(method, (4,), order, linear_in_z, left, theta, arithmetic)
    return Report(f"{method.name}, Z_{stage}", found, arithmetic.exact, _row_sums(method, arithmetic))


def order(tableau: Any, linear_in_z: bool = False, exact: bool = True) -> int:
    """The order of a half-explicit method, computed from its coefficients.

    Examples
    --------
    >>> order("hem4"), order("rk4"), order("rk4", linear_in_z=True)
    (4, 2, 3)
    """
    method = as_tableau(tableau)
    return _verify(method, method.b, Fraction(1), (1,), None, linear_in_z, exact).order


def z_order(tableau: Any, stage: int | None = None, linear_in_z: bool = False, exact: bool = True) -> int:
    """The power of h in the error of a stage of z, by default of the last stage.

    Examples
    --------
    >>> [z_order("hem4", stage) for stage in (1, 2, 3, 4, 5)]
    [1, 1, 2, 2, 2]
    """
    method = as_tableau(tableau)
    stage = method.s if stage is None else stage
    in_z = verify_z(method, stage, None, linear_in_z, exact).order
    in_y = verify_stage(method, stage, in_z, linear_in_z, exact).order if in_z else 0
    return min(in_z, in_y) + 1


def _check(
    method: HalfExplicitTableau,
    tables: Sequence[int],
    order: int | None,
    linear_in_z: bool,
    left: Callable[[Condition], Any],
    theta: Any,
    arithmetic: ScalarField,
) -> tuple[Check, ...]:
    """Check order by order, up to a given order or until the first failure."""
    enter, leave = arithmetic.enter, arithmetic.leave
    found: list[Check] = []
    for p in range(1, (order or HIGHEST_ORDER) + 1):
        for condition in _of_order(method, tables, p, linear_in_z):
            value = left(condition)
            right = enter(condition.right_side) * enter(theta) ** p
            residual = value - right
            holds = not residual if arithmetic.exact else abs(residual) < TOLERANCE
            found.append(Check(condition, leave(value), leave(right), leave(residual), holds))
        if not order and not all(check.holds for check in found):
            break
    return tuple(found)


def _of_order(method: HalfExplicitTableau, tables: Sequence[int], p: int, linear_in_z: bool) -> list[Condition]:
    listed = (conditions(p, table, linear_in_z=linear_in_z, partitioned=method.partitioned) for table in tables)
    return [condition for part in listed for condition in part if condition.order == p]


def _weights(method: HalfExplicitTableau, weights: Any, theta: Any) -> tuple[Any, ...]:
    if not isinstance(weights, str):
        return tuple(as_coefficient(x) for x in weights)
    if weights == "dense":
        return method.weights(theta)
    if weights != "bhat" or method.bhat is None:
        raise InvalidProblemError(f"{method.name} has no weights {weights!r}")
    return method.bhat


def _require_stage(method: HalfExplicitTableau, stage: int, first: int = 1) -> None:
    if not first <= stage <= method.s:
        raise InvalidProblemError(f"{method.name} determines the stages {first} to {method.s}, not {stage}")


def _coefficients(method: HalfExplicitTableau) -> list[Any]:
    return [x for row in (*method.a, *method.constraint_rows, method.b, method.c) for x in row]


def _row_sums(method: HalfExplicitTableau, arithmetic: ScalarField) -> bool:
    enter = arithmetic.enter
    defects = [sum((enter(x) for x in row), enter(Fraction(0))) - enter(c) for row, c in zip(method.a, method.c)]
    return all(not x if arithmetic.exact else abs(x) < TOLERANCE for x in defects)
