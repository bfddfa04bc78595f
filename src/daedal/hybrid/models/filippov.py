"""Discontinuous differential equations: crossing a switching surface, and sliding along it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.errors import DaedalError, InconsistentInitialError, InvalidProblemError
from daedal.hybrid.hybrid_problem import HybridProblem, Mode, Transition
from daedal.initial.consistent import consistent_initial
from daedal.kernels.functions import is_compiled
from daedal.problems import SemiExplicitDAE
from daedal.problems.checks import check_callable, check_names, check_size, check_vector
from daedal.problems.compile import compiled_function, compiled_params, last_argument
from daedal.problems.symbols import renewed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_TINY = 1e-100  # imaginary increment of complex steps
_STEP = float(np.finfo(float).eps) ** (1.0 / 3.0)  # relative increment of central differences
# limit for the difference between complex steps and finite differences; functions that drop imaginary parts exceed it
_AGREEMENT = 1e-4


class Surface:
    """The surface s(t, x) = 0. Derivatives use complex steps if the function accepts them, otherwise differences."""

    def __init__(self, function, gradient, params, n: int):
        if gradient is not None:
            check_callable(gradient, "gradient")
        self._function, self._gradient, self._params, self._n = function, gradient, params, n

    def _call(self, t, x):
        value = self._function(t, x, *last_argument(self._function, self._params))
        if np.size(value) != 1:
            raise InvalidProblemError(
                f"surface returned {np.size(value)} values; it must return one. Where several surfaces intersect, "
                "the equations do not determine how a solution slides, which is not supported. Remedy: define "
                "a HybridProblem with a mode for each side of each surface, if solutions only cross them"
            )
        return np.reshape(value, -1)[0]

    def value(self, t: float, x) -> float:
        """s(t, x)."""
        return float(self._call(t, x))

    def rate(self, t: float, x, slope) -> float:
        """s_x slope + s_t."""
        if self._gradient is not None:
            row = self._gradient(t, x, *last_argument(self._gradient, self._params))
            return float(check_vector(row, self._n, "gradient") @ slope) + self._along(t, x, np.zeros(self._n), 1.0)
        return self._along(t, x, slope, 1.0)

    def size(self, t: float, x, slope) -> float:
        """|s_x| |slope| + |s_t|: scale of the terms that the rate sums."""
        units = np.eye(self._n) * np.where(slope == 0.0, 1.0, slope)[:, None]
        parts = [self._along(t, x, unit, 0.0) for unit, entry in zip(units, slope, strict=True) if entry != 0.0]
        return float(np.sum(np.abs(parts))) + abs(self._along(t, x, np.zeros(self._n), 1.0))

    def _along(self, t: float, x, slope, speed: float) -> float:
        """The derivative along (speed, slope)."""
        if not self._takes_complex:
            return self._difference(t, x, slope, speed)
        try:
            found = self._complex_step(t, x, slope, speed)
        except Exception:  # branches that do not accept complex numbers
            return self._difference(t, x, slope, speed)
        # a zero may come from a branch that drops imaginary parts
        return found if found != 0.0 else self._difference(t, x, slope, speed)

    @cached_property
    def _takes_complex(self) -> bool:
        """Whether the function accepts complex numbers, tested at points that depend only on its size."""
        verdicts = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # warnings about dropped imaginary parts
            for t, sign in ((0.3, 1.0), (0.7, -1.0), (1.1, 0.4)):
                x, slope = sign * np.cos(0.2 + 0.3 * np.arange(self._n)), np.cos(0.7 + 1.3 * np.arange(self._n))
                try:
                    other = self._difference(t, x, slope, 1.0)
                except Exception:  # undefined there
                    continue
                try:
                    found = self._complex_step(t, x, slope, 1.0)
                except Exception:
                    return False
                verdicts.append(abs(other - found) <= _AGREEMENT * abs(other))
        return bool(verdicts) and all(verdicts)

    def _complex_step(self, t: float, x, slope, speed: float) -> float:
        return float(np.imag(self._call(t + 1j * _TINY * speed, x + 1j * _TINY * slope)) / _TINY)

    def _difference(self, t: float, x, slope, speed: float) -> float:
        scale = max(abs(t), float(np.max(np.abs(x), initial=0.0)), 1.0)
        h = _STEP * scale / max(float(np.max(np.abs(slope), initial=0.0)), abs(speed), 1e-300)
        return float((self._call(t + h * speed, x + h * slope) - self._call(t - h * speed, x - h * slope)) / (2.0 * h))


def compiler(*functions) -> Callable[[Any], Any]:
    """Numba's compiler if all functions called are compiled, otherwise None."""
    if all(is_compiled(function) for function in functions if function is not None):
        import numba

        return numba.njit
    return lambda function: function


# --- crossing and sliding ---------------------------------------------------------------------------------------------


_FORMS = ("index2", "closed")
_INTEGRAL = "integral of nu"
_DEGENERATE = 1e-12  # relative size below which both rates count as zero
_AHEAD = 1e-7  # relative time after which a sign change of both rates is tested
_ON_SURFACE = 1e-14  # relative distance from the surface up to which an initial point lies on it


class Filippov(HybridProblem):
    r"""A right-hand side that is discontinuous at a surface, in the sense of Filippov.

    .. math::

        x' = \begin{cases} f_1(t, x, y) & s(t, x) > 0 \\ f_2(t, x, y) & s(t, x) < 0 \end{cases}, \qquad 0 = g(t, x, y)

    At the surface the rates :math:`a_i = s_x f_i + s_t` determine the motion. If both have the same sign, the solution
    crosses; if
    :math:`a_1 < 0 < a_2`, it slides along the surface,

    .. math:: x' = \nu f_1 + (1 - \nu) f_2, \qquad 0 = g, \qquad 0 = s(t, x),

    a DAE of index 2 for the control :math:`\nu = a_2/(a_2 - a_1)`, until :math:`\nu` reaches 0 or 1; if :math:`a_1 > 0
    > a_2`, it may leave to either side at any time: the solution is not unique, which is an error.

    Parameters
    ----------
    f_plus, f_minus : callable
        :math:`f_1` and :math:`f_2`: ``f(t, x)``, or ``f(t, x, y)`` with algebraic variables.
    surface : callable
        ``surface(t, x)``, the switching function s, a number.
    n : int
        Number of differential variables x.
    constraint : callable, optional
        ``constraint(t, x, y) -> (n_y,)``, the function g, which determines y.
    n_y : int
        Number of algebraic variables y.
    gradient : callable, optional
        ``gradient(t, x) -> (n,)``, the row :math:`s_x`. Computed by complex steps, or differences, by default.
    params : object, optional
        Passed to every function as its last argument.
    names : sequence of str, optional
        Names of x, or of x and y.
    sliding : {"index2", "closed"}
        Sliding equations: with :math:`\nu` from the DAE of index 2, which keeps s = 0; or from its closed form, which
        has index 1 and lets s drift.
    method, sliding_method : optional
        Methods of :func:`daedal.solve` for the modes off the surface, and on it.

    Notes
    -----
    The modes are ``"above"`` (s > 0), ``"below"`` and ``"sliding"``. :math:`\nu`, called ``"nu"`` in the solution, is 1
    above and 0 below. The mode ``"sliding"`` has the integral of :math:`\nu` as an additional variable: while the
    motion is at rest, only this variable makes step size control notice changes of :math:`\nu`. Only one surface is
    supported: where several intersect, the rates do not determine how a solution slides, so a vector of switching
    functions is an error.

    References
    ----------
    A. F. Filippov: Differential equations with discontinuous righthand sides, Kluwer, 1988. P. M. E. J. Wijckmans:
    Conditioning of differential algebraic equations and numerical solution of multibody dynamics, thesis, TU Eindhoven,
    1996, section 7.2.

    Examples
    --------
    A relay that enforces x2 = -x1, after which x1' = -x1.

    >>> import daedal
    >>> relay = daedal.hybrid.Filippov(
    ...     f_plus=lambda t, x: [x[1], -1.0],
    ...     f_minus=lambda t, x: [x[1], 1.0],
    ...     surface=lambda t, x: x[0] + x[1],
    ...     n=2,
    ... )
    >>> sol = daedal.solve(relay, (0.0, 3.0), relay.entry((0.0, 3.0), [0.5, 0.0]), rtol=1e-8, atol=1e-8)
    >>> print(f"{sol.events[0].t:.6f} {sol.mode[-1]} {sol['nu'][-1]:.6f}")
    0.414214 sliding 0.484397
    """

    def __init__(
        self,
        f_plus: Callable[..., Any],
        f_minus: Callable[..., Any],
        surface: Callable[..., Any],
        n: int,
        *,
        constraint: Callable[..., Any] | None = None,
        n_y: int = 0,
        gradient: Callable[..., Any] | None = None,
        params: Any = None,
        names: Sequence[str] | None = None,
        sliding: str = "index2",
        method: Any = None,
        sliding_method: Any = None,
    ) -> None:
        self._set(given={name: value for name, value in locals().items() if name not in ("self", "__class__")})
        for function, name in ((f_plus, "f_plus"), (f_minus, "f_minus"), (surface, "surface")):
            check_callable(function, name)
        n, n_y = check_size(n, "n"), check_size(n_y, "n_y", 0)
        if (constraint is None) != (n_y == 0):
            raise InvalidProblemError("constraint and n_y must be given together, but one of them is missing")
        if sliding not in _FORMS:
            raise InvalidProblemError(f"sliding must be one of {', '.join(_FORMS)}, got {sliding!r}")
        self._set(n=n, n_y=n_y, params=params, surface=Surface(surface, gradient, params, n))
        labels = _labels(names, n, n_y)

        through = compiler(f_plus, f_minus, surface, *([constraint] if n_y else []))
        f1, f2 = (through(_of_state(f, n_y)) for f in (f_plus, f_minus))
        self._set(_f1=f1, _f2=f2)

        def mode(f, last, names, option, through=through) -> Mode:
            g = through(_closed_by(constraint, n_y, last))
            return Mode(SemiExplicitDAE(f, g, len(names) - n_y - 1, n_y + 1, params=params, names=names), option)

        along = [*labels[:n], _INTEGRAL, *labels[n:]]
        if sliding == "index2":
            slide = mode(through(_blend(f1, f2, n)), through(_on(surface, n)), along, sliding_method)
        else:
            slide = mode(_blend(f1, f2, n), self._control_defect, along, sliding_method, lambda function: function)
        modes = {
            "above": mode(f1, through(_fixed(1.0)), labels, method),
            "below": mode(f2, through(_fixed(0.0)), labels, method),
            "sliding": slide,
        }
        super().__init__(modes, self._transitions())

    given: dict[str, Any]
    n: int
    n_y: int
    params: Any
    surface: Surface
    _f1: Callable[..., Any]
    _f2: Callable[..., Any]

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def parameter_holder(self) -> Filippov:
        """The model itself."""
        return self

    def with_params(self, params: Any) -> Filippov:
        """The same model with other parameters; a mapping replaces the entries that it names."""
        if self.params is None:
            raise InvalidProblemError("params: the problem has no parameters")
        return Filippov(**dict(self.given, params=renewed(self.params, params)))

    def compiled(self) -> Filippov:
        """The same model with its functions passed through ``numba.njit``."""
        given = dict(self.given, params=compiled_params(self.params))
        for name in ("f_plus", "f_minus", "surface", "constraint"):
            if given[name] is not None:
                given[name] = compiled_function(given[name])
        return Filippov(**given)

    # --- at the surface -----------------------------------------------------------------------------------------------

    def _slopes(self, t: float, x, z) -> list[np.ndarray]:
        return [np.asarray(f(t, x, z, *last_argument(f, self.params)), dtype=float) for f in (self._f1, self._f2)]

    def rates(self, t: float, x: ArrayLike, y: ArrayLike = ()) -> tuple[float, float]:
        """The rates a_1 and a_2 of the switching function on either side."""
        z = np.append(np.asarray(y, dtype=float), 0.0)
        return self._rates(t, np.asarray(x, dtype=float), z)

    def _rates(self, t: float, x, z) -> tuple[float, float]:
        x = x[: self.n]
        first, second = self._slopes(t, x, z)
        return self.surface.rate(t, x, first), self.surface.rate(t, x, second)

    def _control_defect(self, t, x, z, *p) -> float:
        """(a_2 - a_1) nu - a_2: zero for the control of (7.6)."""
        a1, a2 = self._rates(t, x, z)
        return (a2 - a1) * z[-1] - a2

    def _decide(self, t: float, x, z) -> str:
        """The mode that follows at the surface: the four cases of the source, (7.4)."""
        a1, a2 = self._rates(t, x, z)
        size = max(self.surface.size(t, x, slope) for slope in self._slopes(t, x, z))
        if max(abs(a1), abs(a2)) <= _DEGENERATE * size:
            raise DaedalError(_degenerate(t, a1, a2))
        if a1 > 0.0 > a2:
            raise DaedalError(_repelling(t, a1, a2))
        if a1 <= 0.0 <= a2:
            return "sliding"
        return "above" if a1 > 0.0 else "below"

    # --- transitions ------------------------------------------------------------------------------------------------

    def _transitions(self) -> list[Transition]:
        def switching(t, x, z):
            return self.surface.value(t, x)

        def leave_above(t, x, z):
            return self._rates(t, x, z)[0]

        def leave_below(t, x, z):
            return self._rates(t, x, z)[1]

        reset = {"above": self._state(1.0), "below": self._state(0.0), "sliding": self._sliding_state}
        common: dict[str, Any] = {"reset": reset, "project": True}
        return [
            Transition("above", self._decide, switching, -1, name="surface from above", immediate=False, **common),
            Transition("below", self._decide, switching, 1, name="surface from below", immediate=False, **common),
            Transition("sliding", self._exit("above"), leave_above, 1, name="nu = 1", **common),
            Transition("sliding", self._exit("below"), leave_below, -1, name="nu = 0", **common),
        ]

    def _state(self, nu: float) -> Callable[..., Any]:
        return lambda t, x, z: (x[: self.n], np.append(z[:-1], nu))

    def _sliding_state(self, t, x, z):
        """The state at the start of sliding: x and the integral of nu, zero; and (y, nu) with nu from (7.6)."""
        a1, a2 = self._rates(t, x, z)
        return np.append(x, 0.0), np.append(z[:-1], a2 / (a2 - a1))

    def _exit(self, side: str) -> Callable[..., str]:
        def target(t, x, z):
            slopes = self._slopes(t, x[: self.n], z)
            ahead = _AHEAD * max(1.0, abs(t))
            for h in (0.0, ahead):  # both rates may vanish at the same time
                a1, a2 = self._rates(t + h, x[: self.n] + h * slopes[side == "below"], z)
                if a1 > 0.0 > a2:
                    raise DaedalError(_repelling(t, a1, a2))
            return side

        return target

    # --- start of a run -----------------------------------------------------------------------------------------------

    def entry(self, t_span: Sequence[float], initial: Any) -> tuple[str, Any]:
        """The initial mode of a run, and its initial values in the form of :func:`daedal.solve`.

        Parameters
        ----------
        t_span : tuple of float
        initial : array_like or tuple
            x; or (x, y), where y is a guess, if there are algebraic variables. (mode, values) is returned unchanged.
        """
        t0, t1 = (float(t) for t in t_span)
        if t1 < t0:
            raise InvalidProblemError(
                "t_span: a discontinuous right-hand side cannot be integrated backwards; the origin of a "
                "sliding solution is not unique"
            )
        if isinstance(initial, (tuple, list)) and len(initial) == 2 and isinstance(initial[0], str):
            return initial[0], initial[1]
        x, y = initial if self.n_y and isinstance(initial, tuple) else (initial, np.zeros(self.n_y))
        x = check_vector(x, self.n, "initial x")
        z = np.append(check_vector(y, self.n_y, "initial y") if self.n_y else np.empty(0), 1.0)
        if self.n_y:
            x, z = consistent_initial(self.modes["above"].problem, t0, (x, z))
        s = self.surface.value(t0, x)
        if abs(s) > _ON_SURFACE * self.surface.size(t0, x, x):
            mode = "above" if s > 0.0 else "below"
        else:
            try:
                mode = self._decide(t0, x, z)
            except DaedalError as error:
                raise InconsistentInitialError(f"initial: {error}") from None
        nu = {"above": 1.0, "below": 0.0}
        return mode, (x, np.append(z[:-1], nu[mode])) if mode in nu else self._sliding_state(t0, x, z)


# --- the equations of the modes; p is a tuple with the parameters, or empty -----------------------------------------


def _of_state(f, n_y: int) -> Callable[..., Any]:
    """f as a function of x and z = (y, nu)."""
    if n_y:
        return lambda t, x, z, *p: np.asarray(f(t, x, z[:n_y], *p))
    return lambda t, x, z, *p: np.asarray(f(t, x, *p))


def _blend(f1, f2, n: int) -> Callable[..., Any]:
    """nu f_1 + (1 - nu) f_2, and nu, whose integral makes step size control notice changes of the control."""

    def sliding(t, x, z, *p):
        result = np.empty(n + 1)
        result[:n] = z[-1] * f1(t, x[:n], z, *p) + (1.0 - z[-1]) * f2(t, x[:n], z, *p)
        result[n] = z[-1]
        return result

    return sliding


def _fixed(nu: float) -> Callable[..., Any]:
    return lambda t, x, z, *p: z[-1] - nu


def _on(surface, n: int) -> Callable[..., Any]:
    return lambda t, x, z, *p: surface(t, x[:n], *p)


def _closed_by(constraint, n_y: int, last) -> Callable[..., Any]:
    """The constraints: g, and an additional one for nu."""
    if n_y == 0:

        def alone(t, x, z, *p):
            result = np.empty(1)
            result[0] = last(t, x, z, *p)
            return result

        return alone

    def stacked(t, x, z, *p):
        result = np.empty(n_y + 1)
        result[:n_y] = np.asarray(constraint(t, x, z[:n_y], *p))
        result[n_y] = last(t, x, z, *p)
        return result

    return stacked


def _labels(names, n: int, n_y: int) -> list[str]:
    given = [f"x[{i}]" for i in range(n)] if names is None else list(names)
    if len(given) == n:
        given += [f"y[{i}]" for i in range(n_y)]
    checked = check_names(given, n + n_y)
    assert checked is not None
    if "nu" in checked or _INTEGRAL in checked:
        raise InvalidProblemError(f"names: 'nu' and '{_INTEGRAL}' are the control and its integral; choose others")
    return [*checked, "nu"]


def _repelling(t: float, a1: float, a2: float) -> str:
    return (
        f"at t = {t:.10g} the surface repels on both sides (a1 = {a1:.6g} > 0 > a2 = {a2:.6g}): solutions may "
        "leave it to either side at any time, so the solution is not unique. Remedy: select one by starting off "
        "the surface, or look for a sign error in surface, f_plus or f_minus."
    )


def _degenerate(t: float, a1: float, a2: float) -> str:
    return (
        f"at t = {t:.10g} both sides are tangential to the surface (a1 = {a1:.6g}, a2 = {a2:.6g}): the rates of "
        "the switching function do not determine whether it is crossed. Remedy: start off the surface, or move "
        "the switching function."
    )
