"""Check a mechanical system at one point: derivatives, rank, mass, consistency."""

from dataclasses import dataclass, field

import numpy as np

from daedal.analysis.dependent_constraints import (
    Dependency,
    dependency_in_words,
    free_of_mass,
    independent_rows,
    leading,
    mass_on_kernel,
    position_terms,
    velocity_noise,
    velocity_terms,
)
from daedal.analysis.wording import MOST_NAMED, listing, number
from daedal.errors import InvalidProblemError
from daedal.mechanics.point import check_point
from daedal.mechanics.setting import typical_size
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.problems import MechanicalSystem
from daedal.problems.compile import last_argument

_WRONG = 1e-6  # relative error of a derivative above which it counts as wrong
_CONSISTENT = 1e-8
_ASYMMETRY = 1e-10
_DEFINITE = 1e-10
_ILL_CONDITIONED = 1e12
_SHARES = 10.0 ** -np.arange(0.5, 6.0, 0.5)


@dataclass(frozen=True)
class DerivativeCheck:
    """The largest error of one derivative.

    Attributes
    ----------
    name : str
        The argument of MechanicalSystem.
    given : bool
        Whether the user supplied it; otherwise Daedal computes it.
    error : float
        Largest deviation from independent finite differences, relative to the terms of the constraint.
    where : str
        The constraint and the coordinate concerned.
    value, expected : float
        The actual and the expected value.
    ok : bool
        Whether the error is within the accuracy of the finite differences.
    """

    name: str
    given: bool
    error: float
    where: str
    value: float
    expected: float
    ok: bool


@dataclass(frozen=True, eq=False)
class CheckReport:
    r"""The result of :meth:`daedal.MechanicalSystem.check`; ``print`` shows it.

    Attributes
    ----------
    t : float
    derivatives : tuple of DerivativeCheck
    n_constraints, rank : int
        Rows of K, and the number of independent ones.
    redundant : list of (row, {row: coefficient})
        The dependent rows.
    asymmetry : float
        Largest :math:`|M - M^T|`, relative to M.
    mass_eigenvalue : float
        Smallest eigenvalue of M on the kernel of K, with coordinates scaled by their masses; 1 for a diagonal M.
    condition : float
        Condition number of :math:`K M^{-1} K^T`, independent rows scaled to norm 1; nan if M is singular.
    position, velocity : float
        Largest residual of the constraints, relative to their terms.
    index : int or None
        3 with position constraints, 2 with velocity constraints only, 1 with algebraic variables only, else 0; None if
        undetermined.
    problems, warnings : list of str
        Errors, and possible errors.
    """

    t: float
    derivatives: tuple[DerivativeCheck, ...]
    n_constraints: int
    rank: int
    redundant: list[Dependency]
    asymmetry: float
    mass_eigenvalue: float
    condition: float
    position: float
    velocity: float
    index: int | None
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there are no errors; redundant constraints do not count as errors."""
        return not self.problems

    def __str__(self) -> str:
        lines = [f"MechanicalSystem at t = {number(self.t)}: " + ("no problems found" if self.ok else "problems found")]
        for entry in self.derivatives:
            origin = "given" if entry.given else "computed"
            state = f"error {entry.error:.1e}" if entry.ok else f"WRONG by {entry.error:.1e} in {entry.where}"
            lines.append(f"  {entry.name + ' (' + origin + ')':<34}{state}")
        if self.n_constraints:
            lines.append(f"  {'rank of the constraint gradients':<34}{self.rank} of {self.n_constraints}")
        lines.append(f"  {'asymmetry of M':<34}{self.asymmetry:.1e}")
        lines.append(
            f"  {'smallest eigenvalue of M, scaled':<34}{number(self.mass_eigenvalue)}, on the free directions"
        )
        if self.n_constraints:
            lines.append(f"  {'condition of K M^-1 K^T':<34}{self.condition:.1e}")
            lines.append(f"  {'residuals, relative':<34}position {self.position:.1e}, velocity {self.velocity:.1e}")
        lines.append(f"  {'index':<34}{'not determined' if self.index is None else self.index}")
        lines += [f"problem: {text}" for text in self.problems] + [f"note: {text}" for text in self.warnings]
        return "\n".join(lines)


def check_system(system: MechanicalSystem, t: float, q, v=None) -> CheckReport:
    r"""Check derivatives, rank, definiteness and consistency of a mechanical system at a point.

    Derivatives are compared with finite differences of `constraint` and `velocity_constraint` that do not use the
    user's other functions. The bias is compared at a velocity without zeros, because it vanishes at rest.

    Parameters
    ----------
    system : MechanicalSystem
    t, q, v : float, array, array
        The point; None means v = 0.

    Returns
    -------
    CheckReport

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1,
    ...     constraint_jacobian=lambda t, q: [[2.0 * q[0], q[1]]], names=["x", "y"], constraint_names=["rod"],
    ... )
    >>> report = pendulum.check(0.0, [0.6, 0.8])
    >>> report.ok
    False
    >>> print(report.problems[0])
    constraint_jacobian is wrong: d 'rod' / d y is 0.8, should be 1.6
    """
    t, q, v = check_point(system, t, q, v)
    assembly = SystemWorkspace(system, t, q)
    reduced = assembly.system
    moving = np.where(v != 0.0, v, np.where(np.arange(v.size) % 2, -0.7, 1.0) * typical_size(q if not v.any() else v))
    values = assembly.evaluate(t, np.concatenate([q, v]))
    probe = assembly.evaluate(t, np.concatenate([q, moving]))
    if values is None or probe is None:
        raise InvalidProblemError(f"a function of the system cannot be evaluated at t = {t:g}")
    derivatives, problems = _check_derivatives(system, reduced, assembly, t, q, v, moving, probe)
    warnings: list[str] = []
    K, M, n_g = values["jacobian"], values["mass"], system.n_constraints
    rows, redundant = independent_rows(K, n_g)
    if redundant:
        words = "; ".join(dependency_in_words(found, system.constraint_label) for found in redundant[:MOST_NAMED])
        warnings.append(f"dependent constraints at this point: {words}")
    size = float(np.max(np.abs(M), initial=0.0))
    asymmetry = float(np.max(np.abs(M - M.T), initial=0.0)) / (size or 1.0)
    if asymmetry > _ASYMMETRY:
        i, j = np.unravel_index(int(np.argmax(np.abs(M - M.T))), M.shape)
        problems.append(
            f"mass is not symmetric: M[{i}, {j}] = {number(M[i, j])}, but M[{j}, {i}] = {number(M[j, i])} "
            f"({system.label(int(i))}, {system.label(int(j))})"
        )
    eigenvalue, direction = mass_on_kernel(M, K[rows])
    if not eigenvalue > _DEFINITE:
        named = listing([system.label(j) for j in leading(direction)[:MOST_NAMED]], len(leading(direction)))
        kind = "indefinite" if eigenvalue < -_DEFINITE else "singular"
        problems.append(f"mass is {kind} on the directions that the constraints leave free: {named}")
    condition = _condition(M, K[rows])
    if condition > _ILL_CONDITIONED:
        warnings.append("K M^-1 K^T is ill-conditioned: masses of very different size, or nearly dependent constraints")
    position, velocity = _residuals(system, assembly, values, t, q, v, problems)
    singular = free_of_mass(M, K[rows]) is not None
    return CheckReport(
        t=t,
        derivatives=tuple(derivatives),
        n_constraints=system.n_lambda,
        rank=rows.size,
        redundant=redundant,
        asymmetry=asymmetry,
        mass_eigenvalue=eigenvalue,
        condition=condition,
        position=position,
        velocity=velocity,
        index=None if singular else _index(system),
        problems=problems,
        warnings=warnings,
    )


def _index(system: MechanicalSystem) -> int:
    if system.n_constraints:
        return 3
    return 2 if system.n_velocity_constraints else int(system.n_w > 0)


def _condition(M: np.ndarray, K: np.ndarray) -> float:
    if K.shape[0] == 0:
        return 1.0
    norms = np.linalg.norm(K, axis=1, keepdims=True)
    try:
        S = (K / norms) @ np.linalg.solve(M, (K / norms).T)
    except np.linalg.LinAlgError:
        return float("nan")
    scale = np.sqrt(np.abs(np.diag(S)))
    scale = np.where(scale > 0.0, scale, 1.0)
    return float(np.linalg.cond(S / np.outer(scale, scale)))


# --- consistency ----------------------------------------------------------------------------------------------------


def _residuals(system, assembly, values, t, q, v, problems) -> tuple[float, float]:
    """The largest residual of each level, relative to its terms; `problems` is extended by the violated constraints."""
    if not system.n_lambda:
        return 0.0, 0.0
    n_g, K = system.n_constraints, values["jacobian"]
    (g, velocity), at_rest = values["level"], values["level"][1] - K @ v
    g, terms = g[:n_g], position_terms(K[:n_g], q, at_rest[:n_g], t)
    position = np.abs(g) / _nonzero(terms)
    _name_residuals(system, "position", g, position, problems)
    noise = np.zeros(system.n_lambda)
    if system.constraint_t is None:
        noise = velocity_noise(terms, float(assembly.record.data["time_increment"][0]), system.n_lambda)
    excess = np.maximum(np.abs(velocity) - noise, 0.0)
    relative = excess / _nonzero(velocity_terms(K, v, at_rest))
    _name_residuals(system, "velocity", velocity, relative, problems)
    return float(np.max(position, initial=0.0)), float(np.max(relative, initial=0.0))


def _name_residuals(system, level, residual, relative, problems):
    wrong = [int(i) for i in np.argsort(-relative, kind="stable") if relative[i] > _CONSISTENT]
    if wrong:
        named = (f"{system.constraint_label(i)} ({number(residual[i])})" for i in wrong[:MOST_NAMED])
        problems.append(
            f"the {level} level is violated, with residuals that should be 0: {listing(named, len(wrong))}; "
            "daedal.consistent_initial corrects it"
        )


def _nonzero(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0.0, x, 1.0)


# --- derivatives ----------------------------------------------------------------------------------------------------


def _check_derivatives(
    system: MechanicalSystem, reduced: MechanicalSystem, assembly, t, q, v, moving, probe
) -> tuple[list[DerivativeCheck], list[str]]:
    found: list[DerivativeCheck] = []
    problems: list[str] = []
    n_g, n_q = system.n_constraints, system.n_q
    units, sizes = np.eye(n_q), typical_size(q)
    K = probe["jacobian"]
    rest = assembly.evaluate(t, np.concatenate([q, np.zeros(n_q)]))

    def add(name, symbol, values, columns, scale, labels, first):
        given = getattr(system, name) is not None
        entry, text = _compare(system, name, symbol, given, values, columns, scale, labels, first)
        found.append(entry)
        if text:
            problems.append(text)

    time, speeds = _time_scale(moving, sizes), typical_size(v if v.any() else moving)
    if reduced.constraint is not None:
        g = _vector_function(reduced, "constraint")
        columns = [_slope(lambda s, j=j: g(t, q + s * units[j]), sizes[j]) for j in range(n_q)]
        scale = _nonzero(np.max(np.abs(K[:n_g]), axis=1))
        labels = [f" / d {system.label(j)}" for j in range(n_q)]
        add("constraint_jacobian", "d", K[:n_g].T, columns, scale, labels, 0)
        level = probe["level"][1, :n_g] if rest is None else rest["level"][1, :n_g]
        partial_t = _slope(lambda s: g(t + s, q), 1.0)
        along = scale * np.max(np.abs(moving))
        add("constraint_t", "d", level[None], [partial_t], _nonzero(np.abs(partial_t[0])), [" / d t"], 0)
        bias = _curvature(lambda s: g(t + s * time, q + s * time * moving), 1.0)
        bias = (-bias[0] / time**2, bias[1] / time**2)
        add("acceleration_bias", "bias of", -probe["bias"][None, :n_g], [bias], along / time, [""], 0)
    if reduced.velocity_constraint is not None:
        c = _vector_function(reduced, "velocity_constraint")
        columns = [_slope(lambda s, j=j: c(t, q, moving + s * units[j]), speeds[j]) for j in range(n_q)]
        scale = _nonzero(np.max(np.abs(K[n_g:]), axis=1))
        labels = [f" / d {system.label(n_q + j)}" for j in range(n_q)]
        add("velocity_jacobian", "d", K[n_g:].T, columns, scale, labels, n_g)
        bias = _slope(lambda s: c(t + s * time, q + s * time * moving, moving), 1.0)
        bias = (-bias[0] / time, bias[1] / time)
        along = scale * np.max(np.abs(moving))
        add("velocity_bias", "bias of", -probe["bias"][None, n_g:], [bias], along / time, [""], n_g)
        bent = np.abs(c(t, q, 2.0 * moving) - 2.0 * c(t, q, moving) + c(t, q, np.zeros(n_q)))
        for i in np.flatnonzero(bent > _WRONG * _nonzero(np.abs(K[n_g:]) @ np.abs(moving))):
            problems.append(f"{system.constraint_label(n_g + int(i))} is not linear in the velocities")
    return found, problems


def _compare(system, name, symbol, given, values, columns, scale, labels, first):
    """The check of the worst entry of `values`, and a message, which is empty if this entry is correct.

    Entry by entry, `values` are compared with `columns`: pairs of finite differences and estimates of their errors.
    """
    worst = (-1.0, 0, 0, True)
    for j, (expected, uncertain) in enumerate(columns):
        size = np.maximum(scale, np.abs(expected))
        error = np.abs(values[j] - expected)
        ok = error <= 10.0 * uncertain + _WRONG * size
        for i in range(error.size):
            relative = float(error[i] / size[i])
            if (not ok[i], relative) > (not worst[3], worst[0]):
                worst = (relative, i, j, bool(ok[i]))
    relative, i, j, ok = worst
    where = f"{symbol} {system.constraint_label(first + i)}{labels[j]}"
    value, expected = float(values[j][i]), float(columns[j][0][i])
    text = ""
    if not ok:
        whose = f"{name} is wrong" if given else f"the computed {name} is inaccurate"
        text = f"{whose}: {where} is {number(value)}, should be {number(expected)}"
    return DerivativeCheck(name, given, relative, where, value, expected, ok), text


def _vector_function(system: MechanicalSystem, name: str):
    function = getattr(system, name)
    last = last_argument(function, system.params)
    return lambda *arguments: np.asarray(function(*arguments, *last), dtype=float)


def _time_scale(v: np.ndarray, sizes: np.ndarray) -> float:
    """The shortest time in which a coordinate changes by its size, at most 1."""
    fastest = float(np.max(np.abs(v) / sizes))
    return min(1.0, 1.0 / fastest) if fastest > 0.0 else 1.0


def _slope(function, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """df/ds at 0 and an estimate of its error."""
    return _settled(
        lambda h: (8.0 * (function(h) - function(-h)) - (function(2.0 * h) - function(-2.0 * h))) / (12.0 * h), scale
    )


def _curvature(function, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """d^2f/ds^2 at 0 and an estimate of its error."""

    def quotient(h):
        total = -490.0 * function(0.0)
        for side, weight in ((1, 270.0), (2, -27.0), (3, 2.0)):
            total = total + weight * (function(side * h) + function(-side * h))
        return total / (180.0 * h * h)

    return _settled(quotient, scale)


def _settled(quotient, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """A difference quotient at the increment where it changes least, entry by entry, and an estimate of its error."""
    best, error, before = None, None, None
    for h in scale * _SHARES:
        try:
            value = quotient(h)
        except Exception:  # the user's function may raise anything outside its domain
            continue
        if before is not None and np.all(np.isfinite(value)):
            change = np.abs(value - before)
            if best is None or error is None:
                best, error = value, change
            else:
                best = np.where(change < error, value, best)
                error = np.minimum(change, error)
        before = value if np.all(np.isfinite(value)) else None
    if best is None or error is None:
        raise InvalidProblemError("a constraint cannot be evaluated in the neighbourhood of the point")
    return best, error
