"""Dry friction in a mechanism: slip, stick, and the transitions between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.messages import warn
from daedal.common.public_names import with_old_keywords
from daedal.errors import DaedalError, InconsistentInitialError, InvalidProblemError, NonUniqueWarning
from daedal.hybrid.hybrid_problem import Decision, GuardOfRun, HybridProblem, Mode, Transition
from daedal.hybrid.mode_state import StateForm
from daedal.hybrid.models.friction_modes import FrictionFormulas, FrictionLaw, slip_system, stick_system, with_impulse
from daedal.hybrid.segments import Derived
from daedal.mechanics.point import check_point
from daedal.problems import MechanicalSystem
from daedal.problems.compile import compiled_function, with_known_params, with_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_SHORT = 1e-5  # step of the difference quotient for a rate
_DEPENDENT = 1e-12  # relative mobility below which the constraints alone determine the relative velocity


@dataclass(frozen=True)
class ContactState:
    r"""Possible states of dry friction at a point; see :meth:`Friction.at`.

    Attributes
    ----------
    speed : float
        The relative velocity s.
    mobility : float
        :math:`e^T \partial\ddot q/\partial F` for a force F e: :math:`\dot s` changes by `mobility` times F.
    holding : float
        :math:`\lambda_s`, the multiplier of the constraint s = 0: the force required for sticking, with the sign of the
        slip that it prevents.
    capacity : float
        :math:`\mu_s |N|` while it sticks.
    branches : dict
        For each direction of slip (1 and -1), the possible normal forces, smallest first: solutions whose sign is the
        one for which they were computed.
    opens : bool
        Whether a unilateral contact opens: without friction it would have to pull.

    Examples
    --------
    >>> import daedal
    >>> block = daedal.MechanicalSystem(1.0, lambda t, q, v: [1.0], n_q=1)
    >>> friction = daedal.hybrid.Friction(block, [1.0], 0.5, normal=9.81)
    >>> state = friction.at(0.0, [0.0], [0.0])
    >>> print(state.speed, state.holding, state.capacity)
    0.0 1.0 4.905
    """

    t: float
    speed: float
    mobility: float
    holding: float
    capacity: float
    branches: dict[int, tuple[float, ...]]
    opens: bool

    @property
    def sticks(self) -> bool:
        """Whether static friction holds the contact."""
        return abs(self.holding) <= self.capacity


def response(law: FrictionLaw, point, e) -> tuple[float, float]:
    """Response of the contact's acceleration, and of the multiplier that is the normal force, to a force along e."""
    k, n = point.jacobian.shape
    matrix = np.block([[point.mass, point.jacobian.T], [point.jacobian, np.zeros((k, k))]])
    answer = np.linalg.lstsq(matrix, np.concatenate([e, np.zeros(k)]), rcond=1e-13)[0]
    multiplier = 0.0 if law.multiplier is None else float(answer[n + law.multiplier])
    return float(e @ answer[:n]), multiplier


def contact_state(system: MechanicalSystem, stick: MechanicalSystem, law: FrictionLaw, t, q, v) -> ContactState:
    """Possible friction states at a point: lambda_s from the sticking equations, and branches of the normal force."""
    if law.holding is not None:
        t, q, v = check_point(system, t, q, v)
        normal = law.normal_force(t, q, v, ())
        branches: dict[int, tuple[float, ...]] = dict.fromkeys((1, -1), (normal,))
        speed, force = law.relative(t, q, v), law.held(t, q, v)
        return ContactState(t, speed, law.holding.mobility, force, law.mu_static * normal, branches, opens=False)
    point = system.at(t, q, v)
    q, v, e = point.q, point.v, law.e(t, point.q)
    mobility, d = response(law, point, e)
    if mobility > _DEPENDENT * float(e @ e) ** 2 / float(e @ point.mass @ e):
        lam = stick.at(t, q, v).multipliers
        held, holding = law.normal_force(t, q, v, lam), float(lam[-1])
    else:  # at a dead point, no force along e can change the relative velocity
        held, holding = 0.0, math.copysign(math.inf, _free_rate(law, point))
    branches = {sigma: _branches(law, point, sigma, d) for sigma in (1, -1)}
    opens = law.unilateral and float(point.multipliers[law.multiplier]) > 0.0
    return ContactState(t, law.relative(t, q, v), mobility, holding, law.mu_static * held, branches, opens)


def _branches(law: FrictionLaw, point, sigma: int, d: float) -> tuple[float, ...]:
    """The normal forces lambda_0 / (1 + sigma rho mu d) that have the sign rho."""
    if law.multiplier is None:
        return (law.normal_force(point.t, point.q, point.v, ()),)
    free, mu = float(point.multipliers[law.multiplier]), law.coefficient(sigma, point.t, point.q, point.v)
    divisors = {rho: 1.0 + sigma * rho * mu * d for rho in law.signs}
    ways = {rho: free / divisor for rho, divisor in divisors.items() if divisor != 0.0}
    return tuple(sorted((value for rho, value in ways.items() if rho * value >= 0.0), key=abs))


def _free_rate(law: FrictionLaw, point) -> float:
    """The rate of the relative velocity without friction."""
    t, q, v, a = point.t, point.q, point.v, point.acceleration
    ahead, back = (law.relative(t + h, q + h * v + 0.5 * h * h * a, v + h * a) for h in (_SHORT, -_SHORT))
    if ahead == back:
        raise InvalidProblemError(
            f"direction: at t = {t:g} the constraints alone determine the relative velocity, so friction has no effect"
        )
    return (ahead - back) / (2.0 * _SHORT)


def ambiguous(state: ContactState, sigma: int) -> str:
    """Message on several possible normal forces."""
    values = ", ".join(f"{value:.6g}" for value in state.branches[sigma])
    return (
        f"At t = {state.t:.10g} the normal force for slip to the {'positive' if sigma > 0 else 'negative'} side is "
        f"not unique (Painleve's paradox): multipliers {values} all satisfy the law of friction. The smallest "
        "was taken."
    )


def impossible(state: ContactState, law: FrictionLaw) -> str:
    """Message if no motion is possible."""
    return (
        f"no motion satisfies the law of friction at t = {state.t:.10g} (Painleve's paradox). Relative velocity "
        f"{state.speed:.6g}; sticking needs the force {state.holding:.6g}, the limit is {state.capacity:.6g}; normal "
        f"forces of a slip to the positive side: {_listed(state.branches[1])}, to the negative side: "
        f"{_listed(state.branches[-1])}. A rigid model has no solution here. Remedy: model an impact without "
        f"collision, add compliance to the contact, or use a mu smaller than {law.mu_at_rest:g}."
    )


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.6g}" for value in values) or "none"


# --- model ------------------------------------------------------------------------------------------------------------


FORCE = "friction_force"
"""Name of the friction force in solutions."""

_EXPLICIT = ("stick", "slip+", "slip-")  # modes for which all decisions are formulas
# relative velocity, as a fraction of its terms, below which it counts as 0 if the normal force vanishes
_ROUND_OFF = 1e-9
_RESTING = 1e-14  # relative velocity, as a fraction of its terms, below which a contact starts at rest


class Friction(HybridProblem):
    r"""A mechanism with Coulomb friction in one contact: a :class:`HybridProblem` with the modes slip and stick.

    With the relative velocity :math:`s = e(t, q)^T \dot q - w(t)` and the normal force N,

    .. math::

        \text{slip:}\quad M \ddot q = f - \mu(|s|)\, |N|\, \mathrm{sgn}(s)\, e - G^T \lambda, \qquad
        \text{stick:}\quad M \ddot q = f - \lambda_s e - G^T \lambda, \quad 0 = s,

    and it sticks as long as :math:`|\lambda_s| < \mu_s |N|`, then slips to the side given by the sign of
    :math:`\lambda_s`.

    Parameters
    ----------
    problem : MechanicalSystem
        The mechanism without friction, in coordinates q only (without additional states or contact coordinates).
    direction : callable or array
        ``direction(t, q) -> (n_q,)``, the vector e; an array if it is constant. Receives the parameters of the system
        as a third argument if there are any.
    mu : float or callable
        The coefficient of sliding friction; ``mu(speed)`` for a custom curve over the speed :math:`|s| \ge 0`, or
        ``mu(speed, p)`` with the parameters of the system, so that it can be varied and fitted.
    normal : float or callable, optional
        The normal force N, a number or ``normal(t, q, v)``.
    constraint : int or str, optional
        Instead of `normal`: the index or name of the constraint whose multiplier is the normal force (its gradient must
        have length 1 at the contact).
    mu_static : float or callable, optional
        The coefficient of static friction, at least `mu` at rest, which is the default. ``mu_static(p)`` for a function
        of the parameters.
    stribeck : float, optional
        A speed :math:`v_s`: the coefficient decreases from `mu_static` to `mu` with the slip velocity, :math:`\mu(s) =
        \mu + (\mu_s - \mu) \exp(-(s/v_s)^2)`.
    speed : float or callable
        w, the velocity of the surface on which the contact slides (a belt, a bow): a number or ``speed(t)``.
    unilateral : bool
        The constraint can only push: it is :math:`g \ge 0`, its multiplier not positive. The run ends when the contact
        opens.
    slip_method, stick_method : optional
        Methods of :func:`daedal.solve` for the modes.

    Notes
    -----
    The modes are ``"slip+"`` (s > 0), ``"slip-"`` and ``"stick"``. If the multiplier of a constraint that can pull and
    push is the normal force, each direction of slip has two of them, ``"slip+ (lam > 0)"`` and ``"slip+ (lam < 0)"``:
    with the sign of :math:`\lambda` the equations are linear. Both can hold at once, or none can (Painleve's paradox):
    with :math:`\lambda = \lambda_0 + d\,F`, F the friction force along e, the multiplier is

    .. math:: \lambda_\pm = \lambda_0 / (1 \pm \sigma \mu d),

    which has the wrong sign, or is consistent for both signs, if :math:`\mu |d| > 1`. Of two solutions the one with the
    smaller normal force is taken, with a :class:`daedal.errors.NonUniqueWarning`; if there is none the run ends with a
    corresponding error. :meth:`at` shows all branches, :meth:`notes` those of a solution.

    ``sol["friction_force"]`` is the force along e in all modes: :math:`-\mu |N| \mathrm{sgn}(s)` or :math:`-\lambda_s`.

    The equations are valid only forward in time, since the past of a sticking contact is not unique.

    References
    ----------
    P. M. E. J. Wijckmans: Conditioning of differential algebraic equations and numerical solution of multibody
    dynamics, thesis, TU Eindhoven, 1996, chapter 7. P. Painleve, C. R. Acad. Sci. Paris 121 (1895) 112-115.

    Examples
    --------
    A block that is pushed along a rough table comes to rest after v^2/(2 mu g):

    >>> import daedal
    >>> block = daedal.MechanicalSystem(2.0, lambda t, q, v: [0.0], n_q=1, names=["x"])
    >>> problem = daedal.hybrid.Friction(block, [1.0], mu=0.5, normal=2.0 * 9.81)
    >>> sol = daedal.solve(problem, (0.0, 1.0), problem.entry((0.0, 1.0), ([0.0], [3.0])), rtol=1e-8)
    >>> print(f"{sol.events[0].t:.6f} {sol.mode[-1]} {sol['x'][-1]:.6f}")
    0.611621 stick 0.917431
    """

    system: MechanicalSystem

    @with_old_keywords(system="problem")
    def __init__(
        self,
        problem: MechanicalSystem,
        direction: Callable[..., Any] | ArrayLike,
        mu: float | Callable[..., Any],
        *,
        normal: float | Callable[..., Any] | None = None,
        constraint: int | str | None = None,
        mu_static: float | Callable[..., Any] | None = None,
        stribeck: float | None = None,
        speed: float | Callable[..., Any] = 0.0,
        unilateral: bool = False,
        slip_method: Any = None,
        stick_method: Any = None,
    ) -> None:
        self._set(given={name: value for name, value in locals().items() if name not in ("self", "__class__")})
        system = problem
        law = FrictionLaw.checked(system, direction, mu, normal, constraint, mu_static, stribeck, speed, unilateral)
        stick = stick_system(system, law)
        formulas = None if law.holding is None else FrictionFormulas(law, system.n_q)
        self._set(system=system, law=law, _stick=stick, _formulas=formulas)
        slips = {
            self._slip(sigma, rho): Mode(slip_system(system, law, sigma, rho), method=slip_method)
            for sigma in (1, -1)
            for rho in law.signs
        }
        modes = {**slips, "stick": Mode(with_impulse(stick, law), method=stick_method)}
        self._made_of(modes)

    def _made_of(self, modes: dict[str, Mode]):
        leaving = [t for sigma in (1, -1) for t in self._leaving_slip(sigma)] + self._leaving_stick()
        HybridProblem.__init__(self, modes, leaving)

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)

    given: dict[str, Any]
    law: FrictionLaw
    _stick: MechanicalSystem
    _formulas: FrictionFormulas | None  # formulas, if all decisions have one

    @property
    def parameter_holder(self) -> MechanicalSystem:
        """The system."""
        return self.system

    def with_params(self, params: Any) -> Friction:
        """The same model with other parameters of its system; a mapping replaces the parameters that it names.

        Functions receive the parameters as an argument and are therefore unchanged.
        """
        system = with_numbers(self.system, params)
        other = object.__new__(Friction)
        other._set(given=dict(self.given, problem=system), system=system, law=self.law.with_params(system.params))
        other._set(_stick=with_known_params(self._stick, system.params), _formulas=self._formulas)
        modes = {
            name: replace(mode, problem=with_known_params(mode.problem, system.params))
            for name, mode in self.modes.items()
        }
        other._made_of(modes)
        return other

    def compiled(self) -> Friction:
        """The same model with the functions of the system and of the contact passed through ``numba.njit``."""
        given = dict(self.given, problem=self.system.compiled("numba"))
        for name in ("direction", "mu", "normal", "speed"):
            if callable(given[name]):
                given[name] = compiled_function(given[name])
        return Friction(given.pop("problem"), given.pop("direction"), given.pop("mu"), **given)

    def start_formula(self, mode: str) -> Callable[..., Any] | None:
        """Nonnegative if coefficients are valid and, for slip, the relative velocity has the sign of the mode."""
        return None if self._formulas is None else self._formulas.start(0 if mode == "stick" else _sigma(mode))

    def hidden_names(self, mode: str) -> tuple[str, ...]:
        """Internal variables of "stick": the velocity removed by adhesion, and the holding (friction) force."""
        if mode != "stick":
            return ()
        last, system = self._stick.n_lambda - 1, self._stick
        name = f"[{last}]" if system.constraint_names is None else system.constraint_names[last]
        multiplier, residual = (f"lambda{name}", f"constraint{name}") if name[0] == "[" else (f"lambda_{name}", name)
        return self.modes["stick"].problem.label(2 * system.n_q), multiplier, residual

    def derived(self) -> Derived:
        """Friction force along e in all modes, positive in the direction of e."""
        return Derived((FORCE,), self._force)

    def _force(self, mode: str, t: float, q, v, lam) -> tuple[float]:
        if mode == "stick":
            return (-float(lam[-1]),)
        sigma = _sigma(mode)
        return (-sigma * self.law.coefficient(sigma, t, q, v) * self.law.normal_force(t, q, v, lam),)

    # --- modes and transitions --------------------------------------------------------------------------------------

    def _slip(self, sigma: int, rho: int) -> str:
        """Name of a mode; rho is the sign of the multiplier that is the normal force."""
        side = "slip+" if sigma > 0 else "slip-"
        return f"{side} (lam {'>' if rho > 0 else '<'} 0)" if len(self.law.signs) > 1 else side

    def _leaving_slip(self, sigma: int) -> list[Transition]:
        law, k = self.law, self.law.multiplier
        side = "slip+" if sigma > 0 else "slip-"

        def relative(t, q, v):
            return sigma * law.relative(t, q, v)

        sources = [self._slip(sigma, rho) for rho in law.signs]
        target: Any = self._arrive
        if self._formulas is not None:
            relative, target = self._formulas.relative(sigma), Decision(self._arrive, self._formulas.arrival, _EXPLICIT)
        arrive = Transition(sources, target, relative, -1, _state, name=f"end of {side}", project=True, immediate=False)
        found = [arrive]
        for rho in law.signs if k is not None else ():
            mode = self._slip(sigma, rho)
            found.append(Transition(mode, self._jam(sigma), self._margin(sigma, rho), -1, name=f"jam in {mode}"))
            name = f"{'lift-off' if law.unilateral else 'normal force vanishes'} in {mode}"
            found.append(Transition(mode, self._turned(sigma, rho), _pressing(rho, k), -1, name=name))
        return found

    def _leaving_stick(self) -> list[Transition]:
        law = self.law

        def reserve(lam, t, q, v):
            return law.mu_static * law.normal_force(t, q, v, lam) - abs(lam[-1])

        def pushing(lam, t, q, v):
            return -lam[law.multiplier]

        release: Any = self._while_sticking(reserve)
        target: Any = self._release
        if self._formulas is not None:
            release, target = self._formulas.reserve, Decision(self._release, self._formulas.side, _EXPLICIT)
        found = [Transition("stick", target, release, -1, _state, name="end of stick", project=True)]
        if law.unilateral:
            found.insert(0, Transition("stick", None, self._while_sticking(pushing), -1, name="lift-off in stick"))
        return found

    def _while_sticking(self, function: Callable[..., float]) -> GuardOfRun:
        """A guard from a function of the multipliers of stick, and of (t, q, v)."""

        def make():
            form = StateForm(self._stick)
            return lambda t, q, v: function(form.accelerate(t, np.concatenate([q, v]))[1], t, q, v)

        return GuardOfRun(make)

    def tolerance(self, mode: str, value: Any) -> Any:
        """Extend a tolerance vector for (q, v) to all modes; the additional variable of "stick" is a velocity."""
        n, given = self.system.n_q, np.asarray(value)
        return np.append(given, given[n:].min()) if mode == "stick" and given.shape == (2 * n,) else value

    def _margin(self, sigma: int, rho: int) -> Callable[..., float]:
        """Guard 1 + sigma mu rho d, the divisor of the normal force: at a zero the force is infinite."""

        def margin(t, q, v):
            d = response(self.law, self.system.at(t, q, v), self.law.e(t, q))[1]
            return 1.0 + sigma * rho * self.law.coefficient(sigma, t, q, v) * d

        return margin

    # --- at a point ---------------------------------------------------------------------------------------------------

    def at(self, t: float, q: ArrayLike, v: ArrayLike) -> ContactState:
        """Possible states at a point: stick, or slip in each direction, with the normal forces that are possible."""
        return contact_state(self.system, self._stick, self.law, t, q, v)

    def _begin_slip(self, state: ContactState, sigma: int) -> str | None:
        """The mode of slip to one side, on the branch with the smallest normal force; None if there is none."""
        values = state.branches[sigma]
        if not values:
            return None
        if len(values) > 1 and values[-1] != values[0]:
            warn(ambiguous(state, sigma), NonUniqueWarning)
        rho = self.law.signs[0] if len(self.law.signs) == 1 else (1 if values[0] > 0.0 else -1)
        return self._slip(sigma, rho)

    def _arrive(self, t, q, v) -> str | None:
        """The mode after the relative velocity vanishes: (7.4) of the source with e^T v as switching function."""
        state = self.at(t, q, v)
        return "stick" if state.sticks else self._leave(state, released=False)

    def _release(self, t, q, v) -> str | None:
        return self._leave(self.at(t, q, v), released=True)

    def _leave(self, state: ContactState, *, released: bool) -> str | None:
        """Slip to the side sigma of the force required for sticking: s' = mobility (lambda_s - sigma mu |N|).

        At the moment of release the slip is known to continue, although s' may vanish.
        """
        if state.opens:
            return None
        sigma = 1 if state.holding >= 0.0 else -1
        values = state.branches[sigma]
        if not values or not (released or abs(state.holding) > self.law.mu_at_rest * abs(values[0])):
            raise DaedalError(impossible(state, self.law))
        return self._begin_slip(state, sigma)

    def _turned(self, sigma: int, rho: int) -> Callable[..., str | None] | None:
        """The mode after the normal force vanishes: its sign changes, the contact opens, or no solution exists."""
        if self.law.unilateral:
            return None

        def target(t, q, v):
            if sigma * self.law.relative(t, q, v) <= _ROUND_OFF * float(np.abs(self.law.e(t, q)) @ np.abs(v)):
                return self._arrive(t, q, v)  # normal force and velocity vanish together, as at a dead point
            if self._margin(sigma, -rho)(t, q, v) > 0.0:
                return self._slip(sigma, -rho)
            raise DaedalError(impossible(self.at(t, q, v), self.law))

        return target

    def _jam(self, sigma: int) -> Callable[..., None]:
        def target(t, q, v):
            state = self.at(t, q, v)
            if not state.branches[sigma]:
                raise DaedalError(impossible(state, self.law))
            raise DaedalError(
                f"at t = {t:.10g} the friction jams: 1 - mu |d| vanishes, where d is the response of the normal "
                "force to the friction force, and the normal force grows without limit (Painleve's paradox). A "
                "rigid model has no solution beyond this point. Remedy: model an impact, add compliance to "
                "the contact, or use a smaller mu."
            )

        return target

    # --- start of a run, and notes ------------------------------------------------------------------------------------

    def entry(self, t_span: Sequence[float], initial: Any) -> tuple[str, Any]:
        """The initial mode of a run, and its initial values in the form of :func:`daedal.solve`.

        Parameters
        ----------
        t_span : tuple of float
        initial : tuple
            (q, v); or (mode, (q, v)), which is validated.
        """
        t0, t1 = (float(t) for t in t_span)
        if t1 < t0:
            raise InvalidProblemError(
                "t_span: friction cannot be integrated backwards; the past of a sticking contact is not unique"
            )
        if not isinstance(initial, (tuple, list)) or len(initial) < 2:
            raise InvalidProblemError(f"initial must be a pair (q, v), or (mode, (q, v)), got {initial!r}")
        mode, values = initial if isinstance(initial[0], str) else (None, initial)
        n = self.system.n_q
        y = StateForm(self.system).stack(tuple(values)[:2], "initial: ")[0]
        state = self.at(t0, y[:n], y[n:])
        if mode is None:
            return self._first_mode(state, float(np.abs(self.law.e(t0, y[:n])) @ np.abs(y[n:]))), (y[:n], y[n:])
        if mode.startswith("slip") and state.speed * _sigma(mode) < 0.0:
            raise InconsistentInitialError(
                f"initial: the mode is '{mode}', but the relative velocity is {state.speed:g}; "
                "its sign must be that of the slip"
            )
        if mode.startswith("slip") and not state.branches[_sigma(mode)]:
            raise InconsistentInitialError(f"initial: {impossible(state, self.law)}")
        return mode, values

    def _first_mode(self, state: ContactState, size: float) -> str:
        if state.opens:
            raise InconsistentInitialError(
                "initial: the contact opens immediately, since its constraint would have to pull. Remedy: start "
                "without the contact"
            )
        rests = abs(state.speed) <= _RESTING * size
        if rests and state.sticks:
            return "stick"
        try:
            mode = (
                self._leave(state, released=False) if rests else self._begin_slip(state, 1 if state.speed > 0.0 else -1)
            )
        except DaedalError:
            mode = None
        if mode is None:
            raise InconsistentInitialError(f"initial: {impossible(state, self.law)}")
        return mode

    def notes(self, solution: Any) -> list[str]:
        """Notes on a solution: arcs at whose start another motion was also possible."""
        found = []
        for segment in solution.segments:
            if not segment.mode.startswith("slip"):
                continue
            y = segment.values(np.array([segment.t0]))[:, 0]
            n = self.system.n_q
            state = self.at(segment.t0, y[:n], y[n : 2 * n])
            sigma = _sigma(segment.mode)
            if len(state.branches[sigma]) > 1 and state.branches[sigma][0] != state.branches[sigma][-1]:
                found.append(ambiguous(state, sigma))
        return found


def _sigma(mode: str) -> int:
    return 1 if mode.startswith("slip+") else -1


def _state(t, q, v):
    return q, v


def _pressing(rho: int, k: int | None) -> Callable[..., float]:
    return lambda t, q, v, lam: rho * lam[k]
