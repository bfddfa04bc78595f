"""The law of dry friction in a contact, and the equations of slip and stick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.hybrid.models.filippov import compiler
from daedal.problems import MechanicalSystem
from daedal.problems.arguments import positional_names
from daedal.problems.checks import check_finite, check_flag, check_positive, check_vector
from daedal.problems.compile import last_argument
from daedal.problems.named_inputs import driven_function


@dataclass(frozen=True)
class FrictionLaw:
    """Direction, coefficient and normal force of one contact, each as a function.

    Attributes
    ----------
    direction, speed : callable
        e and w, functions of (t, q[, p]) and of t.
    mu : callable
        The coefficient of friction as a function of the speed and of the parameters, not negative.
    normal : callable or None
        |N| as a function of (t, q, v[, p]); None if it is a multiplier.
    multiplier : int or None
        Index of the multiplier that is the normal force.
    static : callable
        The coefficient of static friction as a function of the parameters, if there are any.
    holding : Holding or None
        The force required for sticking, if it is a formula.
    """

    direction: Callable[..., Any]
    mu: Callable[..., float]
    static: Callable[..., float]
    normal: Callable[..., Any] | None
    multiplier: int | None
    speed: Callable[[float], float]
    unilateral: bool
    params: Any
    is_constant: bool  # direction, and velocity of the surface
    holding: Holding | None = None

    @classmethod
    def checked(cls, system, direction, mu, normal, constraint, mu_static, stribeck, speed, unilateral) -> FrictionLaw:
        """The law from the arguments of :class:`daedal.hybrid.Friction`."""
        if not isinstance(system, MechanicalSystem):
            raise InvalidProblemError(f"problem must be a MechanicalSystem, got {type(system).__name__}")
        if system.n_r or system.n_w or system.n_s or system.force_uses_multipliers:
            raise InvalidProblemError(
                "problem: friction supports only mechanical systems in q and v, without r, w, s and with forces that "
                "do not depend on the multipliers"
            )
        if (normal is None) == (constraint is None):
            raise InvalidProblemError("give either normal, a force, or constraint, whose multiplier is the force")
        multiplier = None if constraint is None else _constraint_number(system, constraint)
        unilateral = check_flag(unilateral, "unilateral")
        if unilateral and multiplier is None:
            raise InvalidProblemError("unilateral=True requires constraint, the one that can only push")
        if system.inputs is not None:
            stated = system.inputs, system.params.given is not None
            direction = driven_function("direction", direction, ("t", "q"), *stated)
            normal = driven_function("normal", normal, ("t", "q", "v"), *stated)
            mu = driven_function("mu", mu, ("speed",), *stated)
        through = compiler(system.force)
        curve, static = _coefficient(mu, mu_static, stribeck, through, system.params)
        is_constant, holding = not callable(direction) and not callable(speed), None
        if not callable(direction):
            vector = check_vector(direction, system.n_q, "direction")
            if not vector.any():
                raise InvalidProblemError("direction is zero")
            direction = through(lambda t, q, p=None: vector)
            holding = Holding.of(system, vector) if is_constant else None
        if normal is not None and not callable(normal):
            force = check_finite(normal, "normal")
            normal = through(lambda t, q, v, p=None: force)
        if not callable(speed):
            velocity = check_finite(speed, "speed")
            speed = through(lambda t: velocity)
        law = cls(direction, curve, static, normal, multiplier, speed, unilateral, system.params, is_constant, holding)
        law.check_coefficients()
        return law

    def with_params(self, params) -> FrictionLaw:
        """The same law with other parameters of the system."""
        other = replace(self, params=params)
        other.check_coefficients()
        return other

    def check_coefficients(self):
        """Raise if these parameters make the coefficients invalid."""
        rest, static = check_finite(self.mu_at_rest, "mu(0)"), check_finite(self.mu_static, "mu_static")
        if rest < 0.0:
            raise InvalidProblemError(f"mu must not be negative, got {rest:g}")
        if static < rest:
            raise InvalidProblemError(f"mu_static = {static:g} is less than the sliding friction at rest, {rest:g}")

    @property
    def mu_static(self) -> float:
        """The coefficient of static friction."""
        return float(self.static(*last_argument(self.static, self.params)))

    @property
    def signs(self) -> tuple[int, ...]:
        """The signs of the multiplier for which there are separate modes of slip."""
        return (1,) if self.multiplier is None else (-1,) if self.unilateral else (1, -1)

    @property
    def mu_at_rest(self) -> float:
        """Coefficient at which a slip begins."""
        return self.mu_at(0.0)

    def mu_at(self, speed: float) -> float:
        """Coefficient at a speed."""
        return float(self.mu(speed, *last_argument(self.mu, self.params)))

    def held(self, t: float, q, v) -> float:
        """lambda_s, if there is a formula for it."""
        assert self.holding is not None
        force = self.holding.force
        return float(force(t, q, v, *last_argument(force, self.params)))

    def e(self, t: float, q) -> np.ndarray:
        """Direction of the force."""
        return np.asarray(self.direction(t, q, *last_argument(self.direction, self.params)))

    def relative(self, t: float, q, v) -> float:
        """s = e^T v - w."""
        return float(self.e(t, q) @ v - self.speed(t))

    def coefficient(self, sigma: int, t: float, q, v) -> float:
        """Coefficient of friction for slip to the side sigma."""
        return self.mu_at(max(sigma * self.relative(t, q, v), 0.0))

    def normal_force(self, t: float, q, v, lam) -> float:
        """|N|; for a unilateral constraint 0 if it would have to pull."""
        if self.multiplier is None:
            assert self.normal is not None
            return abs(float(self.normal(t, q, v, *last_argument(self.normal, self.params))))
        value = float(lam[self.multiplier])
        return max(-value, 0.0) if self.unilateral else abs(value)


@dataclass(frozen=True)
class Holding:
    """The force required for sticking, lambda_s = e^T M^{-1} f / (e^T M^{-1} e) for constant e, M and w.

    Attributes
    ----------
    force : callable
        lambda_s as a function of (t, q, v[, p]).
    mobility : float
        e^T M^{-1} e.
    """

    force: Callable[..., Any]
    mobility: float

    @classmethod
    def of(cls, system: MechanicalSystem, e: np.ndarray) -> Holding | None:
        """The formula for a system without constraints; None if the equations of stick must be solved."""
        if system.n_lambda or not isinstance(system.mass, np.ndarray):
            return None
        try:
            weights = np.linalg.solve(system.mass, e)
        except np.linalg.LinAlgError:
            return None
        mobility = float(e @ weights)
        if not mobility > 0.0 or not np.isfinite(weights).all():
            return None
        weights, force = weights / mobility, system.force

        def holding(t, q, v):
            return (weights * np.asarray(force(t, q, v))).sum()

        def holding_with_params(t, q, v, p):
            return (weights * np.asarray(force(t, q, v, p))).sum()

        return cls(compiler(force)(holding if system.params is None else holding_with_params), mobility)


class FrictionFormulas:
    """Decisions between slip and stick as functions of (t, q, v[, p]), if the holding force is a formula.

    They receive the parameters as an argument and can be traced.
    """

    def __init__(self, law: FrictionLaw, n_q: int):
        assert law.holding is not None and law.normal is not None
        holding, normal, static, mu = law.holding.force, law.normal, law.static, law.mu
        e, w = law.e(0.0, np.zeros(n_q)), float(law.speed(0.0))

        def relative(t, q, v, *p):
            return (e * v).sum() - w

        def reserve(t, q, v, *p):
            return static(*p) * abs(normal(t, q, v, *p)) - abs(holding(t, q, v, *p))

        def side(t, q, v, *p):
            return np.where(holding(t, q, v, *p) >= 0.0, 1.0, 2.0)

        def arrival(t, q, v, *p):
            return np.where(reserve(t, q, v, *p) >= 0.0, 0.0, side(t, q, v, *p))

        def allowed(t, q, v, *p):
            rest = mu(0.0, *p)
            return np.minimum(rest, static(*p) - rest)

        self._has_params = law.params is not None
        self.reserve, self.side, self.arrival = map(self.of_state, (reserve, side, arrival))
        self._relative, self._allowed = relative, allowed

    def of_state(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with the arguments of guards."""
        if self._has_params:
            return lambda t, q, v, p: function(t, q, v, p)
        return lambda t, q, v: function(t, q, v)

    def relative(self, sigma: int) -> Callable[..., Any]:
        """The relative velocity as a function of (t, q, v), positive for slip to the side sigma."""
        function = self._relative
        return lambda t, q, v: sigma * function(t, q, v)

    def start(self, sigma: int) -> Callable[..., Any]:
        """A function that is nonnegative if a run may start: slipping to the side sigma or, for sigma = 0, sticking."""
        relative, allowed = self._relative, self._allowed
        return self.of_state(lambda t, q, v, *p: np.minimum(allowed(t, q, v, *p), sigma * relative(t, q, v)))


def slip_system(system: MechanicalSystem, law: FrictionLaw, sigma: int, rho: int) -> MechanicalSystem:
    """M q'' = f - sigma mu |N| e - G^T lambda, where |N| = rho lambda_k if it is a multiplier."""
    force, direction, mu, speed, k = system.force, law.direction, law.mu, law.speed, law.multiplier
    normal: Any = law.normal
    through = compiler(force, direction, mu, speed, normal)

    @through
    def slip(t, v, e):
        return max(sigma * ((e * v).sum() - speed(t)), 0.0)

    @through
    def opposed(f, strength, e):
        return f - sigma * strength * e

    def with_normal(t, q, v):
        e = np.asarray(direction(t, q))
        return opposed(np.asarray(force(t, q, v)), mu(slip(t, v, e)) * abs(normal(t, q, v)), e)

    def with_normal_and_params(t, q, v, p):
        e = np.asarray(direction(t, q, p))
        return opposed(np.asarray(force(t, q, v, p)), mu(slip(t, v, e), p) * abs(normal(t, q, v, p)), e)

    def with_multiplier(t, q, v, lam):
        e = np.asarray(direction(t, q))
        return opposed(np.asarray(force(t, q, v)), mu(slip(t, v, e)) * (rho * lam[k]), e)

    def with_multiplier_and_params(t, q, v, lam, p):
        e = np.asarray(direction(t, q, p))
        return opposed(np.asarray(force(t, q, v, p)), mu(slip(t, v, e), p) * (rho * lam[k]), e)

    plain = system.params is None
    if k is None:
        return system.replaced(force=through(with_normal if plain else with_normal_and_params))
    return system.replaced(
        force=through(with_multiplier if plain else with_multiplier_and_params), force_uses_multipliers=True
    )


def stick_system(system: MechanicalSystem, law: FrictionLaw) -> MechanicalSystem:
    """M q'' = f - lambda_s e - G^T lambda, 0 = e^T v - w; lambda_s is the last multiplier."""
    direction, speed, other, other_jacobian = (
        law.direction,
        law.speed,
        system.velocity_constraint,
        system.velocity_jacobian,
    )
    through = compiler(direction, speed, *(x for x in (other, other_jacobian) if x is not None))
    n, m = system.n_q, system.n_velocity_constraints

    def constraint(t, q, v, *p):
        own = (np.asarray(direction(t, q, *p)) * v).sum() - speed(t)
        if other is None:
            return np.array([own])
        return np.append(np.asarray(other(t, q, v, *p)), own)

    def jacobian(t, q, *p):
        rows = np.empty((m + 1, n))
        if other_jacobian is not None:
            rows[:m] = other_jacobian(t, q, *p)
        rows[m] = direction(t, q, *p)
        return rows

    def no_bias(t, q, v, *p):
        return np.zeros(1)

    names = None
    if system.constraint_names is not None:
        names = (*system.constraint_names, _new_name("stick", system.constraint_names))
    return system.replaced(
        velocity_constraint=through(constraint),
        n_velocity_constraints=m + 1,
        velocity_jacobian=through(jacobian) if m == 0 or other_jacobian is not None else None,
        velocity_bias=through(no_bias) if m == 0 and law.is_constant else None,
        constraint_names=names,
    )


def with_impulse(stick: MechanicalSystem, law: FrictionLaw) -> MechanicalSystem:
    """The equations of stick, and r' = lambda_s (e^T e)^2 / (e^T M e): the velocity removed by adhesion.

    While a driven mechanism is at rest, only this state makes step size control notice the changing force; otherwise it
    would step over the release of the contact.
    """
    force, direction, mass = stick.force, law.direction, stick.mass
    if law.holding is not None:
        return _with_explicit_impulse(stick, law)
    through = compiler(force, direction, *([mass] if callable(mass) else []))

    def same_force(t, q, v, r, lam, *p):
        return force(t, q, v, *p)

    def rate_with_mass_function(t, q, v, r, lam, *p):
        e = np.asarray(direction(t, q, *p))
        return np.array([lam[-1] * (e * e).sum() ** 2 / (e * np.dot(np.asarray(mass(t, q, *p)), e)).sum()])

    def rate_with_constant_mass(t, q, v, r, lam, *p):
        e = np.asarray(direction(t, q, *p))
        return np.array([lam[-1] * (e * e).sum() ** 2 / (e * np.dot(mass, e)).sum()])

    return stick.replaced(
        force=through(same_force),
        force_uses_multipliers=True,
        state_rate=through(rate_with_mass_function if callable(mass) else rate_with_constant_mass),
        n_r=1,
    )


def _with_explicit_impulse(stick: MechanicalSystem, law: FrictionLaw) -> MechanicalSystem:
    """The equations of stick if lambda_s has a formula, so that forces and rates do not depend on the multipliers."""
    assert law.holding is not None
    force, holding = stick.force, law.holding.force
    e = law.e(0.0, np.zeros(stick.n_q))
    factor = float(e @ e) ** 2 / float(e @ stick.mass @ e)
    through = compiler(force)

    def same_force(t, q, v, r, *p):
        return force(t, q, v, *p)

    def rate(t, q, v, r, *p):
        return np.array([holding(t, q, v, *p) * factor])

    return stick.replaced(force=through(same_force), state_rate=through(rate), n_r=1)


def _new_name(name: str, taken) -> str:
    while name in taken:
        name += "'"
    return name


def _constraint_number(system: MechanicalSystem, constraint) -> int:
    if isinstance(constraint, str):
        names = system.constraint_names or ()
        if constraint not in names:
            if not names:
                raise InvalidProblemError(
                    f"constraint={constraint!r}: the constraints of the system have no names; give an index, or "
                    "constraint_names to the system"
                )
            raise unknown_name(constraint, names, "constraint", "constraint")
        return list(names).index(constraint)
    if isinstance(constraint, bool) or not isinstance(constraint, (int, np.integer)):
        raise InvalidProblemError(f"constraint must be the index or the name of a constraint, got {constraint!r}")
    if not 0 <= constraint < system.n_lambda:
        raise InvalidProblemError(f"constraint {constraint} does not exist; the system has {system.n_lambda} of them")
    return int(constraint)


def _coefficient(mu, mu_static, stribeck, through, params) -> tuple[Callable[..., float], Callable[..., float]]:
    """The coefficient as a function of speed and parameters, and that of static friction as a function of the
    parameters."""
    if callable(mu) and stribeck is not None:
        raise InvalidProblemError("stribeck: mu is already a curve; omit one of them")
    curve = _of_parameters(mu, params) if callable(mu) else _constant_curve(mu, through)
    if callable(mu_static):
        static = mu_static
    elif mu_static is None:
        static = compiler(curve)(_at_rest(curve, params is not None))
    else:
        number = check_finite(mu_static, "mu_static")
        static = through(lambda p=None: number)
    if stribeck is None:
        return curve, static
    rest, scale = check_finite(mu, "mu"), check_positive(stribeck, "stribeck")
    if not callable(mu_static):
        excess = float(static(*last_argument(static, params))) - rest
        return through(lambda speed, p=None: rest + excess * np.exp(-((speed / scale) ** 2))), static

    def falling(speed, p):
        return rest + (static(p) - rest) * np.exp(-((speed / scale) ** 2))

    return compiler(static)(falling), static


def _constant_curve(mu, through) -> Callable[..., float]:
    rest = check_finite(mu, "mu")
    return through(lambda speed, p=None: rest)


def _at_rest(curve: Callable[..., float], has_params: bool) -> Callable[..., float]:
    """Coefficient of sliding friction at rest."""
    return (lambda p: curve(0.0, p)) if has_params else lambda: curve(0.0)


def _of_parameters(mu: Callable[..., float], params: Any) -> Callable[..., float]:
    """A curve mu(speed) or mu(speed, p) as a function that accepts the parameters."""
    names = positional_names(mu)
    if names is not None and len(names) > 1:
        if params is None:
            raise InvalidProblemError("mu takes the parameters, but the system has no params")
        return mu
    return compiler(mu)(lambda speed, p=None: mu(speed))
