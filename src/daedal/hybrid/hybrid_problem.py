"""Models with modes: the problem of each mode, and the transitions between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from daedal.common.tabular import FunctionTable, Tabular
from daedal.errors import InvalidProblemError
from daedal.hybrid.segments import Derived
from daedal.problems import HessenbergDAE, ImplicitDAE, LinearDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE
from daedal.problems.checks import check_callable, check_flag
from daedal.problems.description import parameter_rows, problem_rows, titled
from daedal.problems.named_inputs import Inputs, require_inputs
from daedal.problems.preparable import Preparable
from daedal.problems.symbols import Driven, given_params, renewed, symbol_name

if TYPE_CHECKING:
    from daedal.problems.problem_sources import Problem


ZENO = "zeno"
_PROBLEMS = (ImplicitDAE, SemiExplicitDAE, LinearDAE, SecondOrderDAE, MechanicalSystem, HessenbergDAE)


@dataclass(frozen=True)
class Mode:
    """A mode of a :class:`HybridProblem`: its problem, and options of :func:`daedal.solve` for this mode only.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, LinearDAE, SecondOrderDAE, MechanicalSystem or HessenbergDAE
        The equations of the mode.
    method, formulation, rtol, atol, max_step : optional
        As in :func:`daedal.solve`; options passed there apply to modes without their own.

    Examples
    --------
    >>> import daedal
    >>> fall = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1)
    >>> daedal.hybrid.Mode(fall, method="dopri5").options
    {'method': 'dopri5'}
    """

    problem: Any
    method: Any = None
    formulation: Any = None
    rtol: Any = None
    atol: Any = None
    max_step: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options that were given for this mode, by name."""
        names = ("method", "formulation", "rtol", "atol", "max_step")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True)
class GuardOfRun:
    """A guard with state during a run: ``make()`` returns the function for one run.

    `formula` computes its values in traceable operations, if it needs no state.
    """

    make: Callable[[], Callable[..., Any]]
    formula: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        return self.make()(*arguments)


@dataclass(frozen=True)
class Decision:
    """A state-dependent target, with a formula that compiled loops can use.

    Attributes
    ----------
    name : callable
        ``name(t, q, v)``, the mode that follows.
    number : callable
        ``number(t, q, v[, p])``, its index among `modes`, in traceable operations.
    modes : tuple of str
    """

    name: Callable[..., str | None]
    number: Callable[..., Any]
    modes: tuple[str, ...]

    def __call__(self, t: Any, q: Any, v: Any) -> str | None:
        return self.name(t, q, v)


@dataclass(frozen=True)
class Transition:
    r"""A change of mode: when the guard changes sign, the reset map computes the initial values of the target mode.

    Parameters
    ----------
    source : str or sequence of str
        The mode, or modes, that end.
    target : str, callable or None
        The next mode; a function of the state that returns its name; None ends the run.
    guard : callable or "zeno"
        ``guard(t, q, v)`` for a mechanical system, ``guard(t, y, z)`` for a semi-explicit problem, ``guard(t, y)`` or
        ``guard(t, y, yp)`` for an implicit one, and the parameters last if the problem has any; a further argument
        `lam` of a guard of a mechanical system receives the multipliers. Arguments are recognised by name, as for an
        :class:`Event`. Returns a number, or a vector whose entries are separate guards. ``"zeno"`` denotes the point at
        which transitions into the source mode accumulate; the remaining motion is projected onto the constraints of the
        target.
    direction : {0, 1, -1} or sequence
        -1: the mode lasts while the guard is positive. 1: while it is negative. 0: until it changes sign.
    reset : callable or dict, optional
        Function of the arguments of a guard that returns the initial values of the target mode, in the form that
        :func:`daedal.solve` accepts; or a dict with a function for each target. Without a reset the state is unchanged.
    name : str, optional
        Name of the transition in ``sol.events``.
    project : bool
        Whether a state that violates the constraints of the target mode is projected onto them; for a mechanical system
        in the norm of its mass matrix (for velocities, this is a perfectly inelastic impact). Otherwise the state is
        rejected, unless the tolerances explain the violation.
    immediate : bool
        Whether the transition fires immediately if its mode begins on the wrong side of the guard. Otherwise, the guard
        must first return to the correct side.

    Examples
    --------
    >>> import daedal
    >>> impact = daedal.hybrid.Transition(
    ...     "flight", "flight", lambda t, q, v: q[0], direction=-1, reset=lambda t, q, v: (q, -0.8 * v), name="impact"
    ... )
    >>> impact.name
    'impact'
    """

    source: Any
    target: Any
    guard: Any
    direction: Any = 0
    reset: Any = None
    name: str | None = None
    project: bool = False
    immediate: bool = True

    @property
    def sources(self) -> tuple[str, ...]:
        """The source modes of the transition."""
        return (self.source,) if isinstance(self.source, str) else tuple(self.source)

    def reset_to(self, target: str) -> Callable[..., Any] | None:
        """The reset map for a target mode, or None."""
        return self.reset.get(target) if isinstance(self.reset, Mapping) else self.reset


@dataclass(frozen=True, eq=False, repr=False)
class HybridProblem(Preparable):
    r"""Equations with modes, each a problem of any class, and transitions between them.

    In mode :math:`i` the problem :math:`F_i(t, x, \dot x) = 0` holds until a guard :math:`s_j(t, x)` of one of its
    transitions changes sign. The reset map of that transition gives the initial values of the target mode, :math:`x^+ =
    r_j(t, x^-)`, which may have another dimension and another index. Derivatives, algebraic variables and multipliers
    are recomputed, and the integrator restarts at order 1.

    Parameters
    ----------
    modes : dict
        Problems, or :class:`Mode` objects with options, by name.
    transitions : sequence of Transition
        In order of priority: if several fire at the same time, the first one is taken; the others are recorded, and
        fire in the new mode if their guards are on the wrong side there.
    start : str or callable, optional
        The initial mode of runs whose initial values do not name one; or a function of the initial values that returns
        (mode, initial values).

    Notes
    -----
    A guard that is zero when its mode begins, up to the tolerances, fires only if it moves to the wrong side. A guard
    that is on the wrong side fires immediately (see `immediate`). An endless sequence of such transitions is an error.
    A transition into the same mode whose guard is unaffected by the reset, such as ``t - 1.0``, marks an instant and
    fires once.

    :func:`daedal.solve` accepts ``(mode, initial values)`` as `initial`, or only the values if `start` is given, and
    further options: ``max_events`` (10**6), the number of transitions after which the run stops, and ``record_events``
    (True). ``max_steps`` applies to each arc between two transitions. It returns a :class:`HybridSolution`.

    References
    ----------
    P. M. E. J. Wijckmans: Conditioning of differential algebraic equations and numerical solution of multibody
    dynamics, thesis, TU Eindhoven, 1996, chapter 7.

    Examples
    --------
    A ball that bounces until it comes to rest:

    >>> import daedal
    >>> ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1, names=["height"])
    >>> rest = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [-9.81], lambda t, q: [q[0]], n_q=1, n_constraints=1, names=["height"]
    ... )
    >>> problem = daedal.hybrid.HybridProblem(
    ...     modes={"flight": ball, "rest": rest},
    ...     transitions=[
    ...         daedal.hybrid.Transition(
    ...             "flight",
    ...             "flight",
    ...             guard=lambda t, q, v: q[0],
    ...             direction=-1,
    ...             reset=lambda t, q, v: (q, -0.5 * v),
    ...             name="impact",
    ...         ),
    ...         daedal.hybrid.Transition("flight", "rest", guard="zeno", name="comes to rest"),
    ...     ],
    ... )
    >>> sol = daedal.solve(problem, (0.0, 3.0), ("flight", ([1.0], [0.0])), rtol=1e-8)
    >>> print(f"{sol.events[0].t:.6f} {sol.events[-1].name} {sol.events[-1].t:.6f} {sol.mode[-1]}")
    0.451524 comes to rest 1.354571 rest
    """

    modes: Mapping[str, Mode]
    transitions: tuple[Transition, ...] = field(default=())
    start: Any = None
    params: Any = field(default=None, init=False)  # parameters of the modes, by name if they have names
    _source: Any = field(default=None, init=False, repr=False)  # arguments of `made_of`

    def __init__(
        self,
        modes: Mapping[str, Mode | Problem],
        transitions: Transition | Sequence[Transition] = (),
        start: str | Callable[..., Any] | None = None,
    ) -> None:
        object.__setattr__(self, "modes", _checked_modes(modes))
        object.__setattr__(self, "params", common_params([mode.problem for mode in self.modes.values()]))
        given: Any = [transitions] if isinstance(transitions, Transition) else transitions
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise InvalidProblemError(f"transitions must be a list of Transition objects, got {type(given).__name__}")
        checked = [_checked_transition(t, i, self.modes) for i, t in enumerate(given)]
        object.__setattr__(self, "transitions", tuple(_with_names(checked)))
        for mode in self.modes:
            if len([t for t in self.transitions if t.guard == ZENO and mode in t.sources]) > 1:
                raise InvalidProblemError(
                    f"mode '{mode}' has several transitions with guard='zeno'; only one is allowed"
                )
        if start is not None and not callable(start):
            _check_mode("HybridProblem", "start", start, self.modes)
        object.__setattr__(self, "start", start)

    @property
    def records_idle(self) -> bool:
        """Whether transitions without effect are recorded as events; False for contacts: round-off causes them."""
        return True

    @property
    def functions(self) -> dict[str, FunctionTable]:
        """For each mode, how its functions are evaluated by default."""
        return {name: mode.problem.functions for name, mode in self.modes.items()}

    @property
    def mode_names(self) -> tuple[str, ...]:
        """Names of the modes, in the given order."""
        return tuple(self.modes)

    def transitions_from(self, mode: str) -> list[Transition]:
        """Transitions out of a mode with a guard function."""
        return [t for t in self.transitions if mode in t.sources and t.guard != ZENO]

    def accumulation_from(self, mode: str) -> Transition | None:
        """The transition that is taken if transitions out of a mode accumulate; None if none is defined."""
        return next((t for t in self.transitions if mode in t.sources and t.guard == ZENO), None)

    def tolerance(self, mode: str, value: Any) -> Any:
        """rtol or atol of a mode, from the value given for all modes; problems whose modes differ in size may extend
        it."""
        return value

    def entry(self, t_span: Sequence[float], initial: Any) -> tuple[str, Any]:
        """(mode, initial values) at the start of a run: as given, or in the mode determined by `start`."""
        if self.start is None or (isinstance(initial, (tuple, list)) and len(initial) and isinstance(initial[0], str)):
            return initial
        return self.start(initial) if callable(self.start) else (self.start, initial)

    def start_formula(self, mode: str) -> Callable[..., Any] | None:
        """Function of the guards' arguments that is nonnegative if a run may start in `mode`; None if there is no
        formula."""
        return None

    def hidden_names(self, mode: str) -> tuple[str, ...]:
        """Names of internal variables of a mode, which output omits."""
        return ()

    def derived(self) -> Derived | None:
        """Additional quantities of solutions; None if there are none."""
        return None

    def contact_record(self) -> Any:
        """Reader of contacts from a solution, for ``sol.contact``; None for a problem without contacts."""
        return None

    def __repr__(self) -> str:
        changes: dict[str, list[str]] = {}
        for what, name, _ in self._change_rows():
            changes.setdefault(f"{what}s", []).append(name)
        rows = [("modes", ", ".join(self.mode_names)), *((what, ", ".join(names)) for what, names in changes.items())]
        return f"<{type(self).__name__}: {'; '.join(f'{a} {b}' for a, b in [*rows, *parameter_rows(self.params)])}>"

    def _repr_html_(self) -> str:
        rows: list[Any] = [("mode", name, _in_short(self.modes[name].problem)) for name in self.mode_names]
        rows += self._change_rows()
        rows += [(name, "", shown) for name, shown in parameter_rows(self.params)]
        return titled(type(self).__name__, Tabular("lll", rows))

    def _change_rows(self) -> list[tuple[str, str, str]]:
        """The changes of mode, for the notebook view."""
        rows = []
        for transition in self.transitions:
            target = "depends on the state" if callable(transition.target) else transition.target or "the end"
            rows.append(("transition", str(transition.name), f"{' or '.join(transition.sources)} → {target}"))
        return rows

    def made_of(self, system: Any, make: Callable[[Any], HybridProblem]) -> HybridProblem:
        """Record that ``make(system)`` creates this problem, so that its parameters are those of the system."""
        object.__setattr__(self, "_source", (system, make))
        return self

    @property
    def parameter_holder(self) -> Any:
        """The object whose parameters are replaced when the model is recreated; None if the modes have parameters."""
        return None if self._source is None else self._source[0]

    def with_params(self, params: Any) -> HybridProblem:
        """The same model with other parameters; a mapping replaces the entries that it names, in all modes that have
        them.

        Guards and resets with parameters receive those of their mode; :class:`daedal.hybrid.Impact` receives those of
        its system.
        """
        if self._source is not None:
            system, make = self._source
            return make(system.with_params(params)).made_of(system.with_params(params), make)
        if given_params(self.params) is None:
            raise InvalidProblemError("params: no mode of the problem has parameters")
        renewed(self.params, params)  # raises for names that occur in no mode
        modes = {
            name: replace(mode, problem=with_its_params(mode.problem, params)) for name, mode in self.modes.items()
        }
        transitions = [_with_params(transition, params) for transition in self.transitions]
        return HybridProblem(modes, transitions, self.start)

    @property
    def inputs(self) -> Inputs | None:
        """Inputs of the model or of its modes, which must agree; None if there are none."""
        holder = self.parameter_holder
        if holder is not None:
            return getattr(holder, "inputs", None) if holder is not self else None
        found = [
            inputs for mode in self.modes.values() if (inputs := getattr(mode.problem, "inputs", None)) is not None
        ]
        if any(inputs.shapes != found[0].shapes for inputs in found):
            raise InvalidProblemError("the modes have different inputs; define all modes with the same inputs")
        return found[0] if found else None

    def with_inputs(self, values: Any = None, /, *, hold: str = "zero", **named: Any) -> HybridProblem:
        """The same model with other inputs in all modes that have inputs; see :meth:`daedal.ODE.with_inputs`."""
        inputs = require_inputs(self)
        given = {} if values is None else inputs.signals(values, hold)
        return self.in_each(lambda problem: problem.with_inputs(given | inputs.signals(named, hold)))

    def in_each(self, change: Callable[[Any], Any]) -> HybridProblem:
        """A copy of the model in which each problem with inputs is replaced by ``change(problem)``."""
        if self.parameter_holder is not None:
            return self.with_params(change(self.parameter_holder).params)
        modes = {
            name: mode if getattr(mode.problem, "inputs", None) is None else replace(mode, problem=change(mode.problem))
            for name, mode in self.modes.items()
        }
        other = copy(self)
        object.__setattr__(other, "modes", modes)
        object.__setattr__(other, "params", common_params([mode.problem for mode in modes.values()]))
        return other

    def compiled(self) -> HybridProblem:
        """The same model with the functions of all its modes passed through ``numba.njit``."""
        modes = {
            name: replace(mode, problem=mode.problem.compiled("numba")) if hasattr(mode.problem, "compiled") else mode
            for name, mode in self.modes.items()
        }
        return HybridProblem(modes, self.transitions, self.start)

    def check(self, t: float, initial: Any) -> Any:
        """Check guards and resets at a state, and which modes can be reached; the report can be printed.

        Parameters
        ----------
        t : float
        initial : tuple
            (mode, initial values), as accepted by :func:`daedal.solve`.

        Returns
        -------
        HybridReport

        Raises
        ------
        InvalidProblemError
            A guard that is zero wherever it is evaluated, or returns something that is not a number.
        """
        from daedal.hybrid.guards import check_hybrid

        return check_hybrid(self, t, initial)


def common_params(problems: Sequence[Any]) -> Any:
    """Parameters of several problems: all of them if they have names, otherwise those of the first problem with any."""
    given = [problem.params for problem in problems if getattr(problem, "params", None) is not None]
    if given and isinstance(given[0], Driven):
        return given[0]._replace(given=_common([own for params in given if (own := given_params(params)) is not None]))
    return _common(given)


def _common(given: Sequence[Any]) -> Any:
    if given and all(isinstance(params, Mapping) for params in given):
        return {name: value for params in reversed(given) for name, value in params.items()}
    return given[0] if given else None


def with_its_params(problem: Any, params: Any) -> Any:
    """A problem with other parameters, if it has parameters of these names."""
    own = given_params(getattr(problem, "params", None))
    if own is None:
        return problem
    if isinstance(params, Mapping) and isinstance(own, Mapping):
        named = {symbol_name(key): value for key, value in params.items() if symbol_name(key) in own}
        return problem.with_params(named) if named else problem
    return problem.with_params(params)


def _with_params(transition: Transition, params: Any) -> Transition:
    """A transition whose reset maps have new parameters."""

    def renew(reset):
        return reset.with_params(params) if hasattr(reset, "with_params") else reset

    given = transition.reset
    if isinstance(given, Mapping):
        return replace(transition, reset={target: renew(reset) for target, reset in given.items()})
    return replace(transition, reset=renew(given))


def _in_short(problem: Any) -> str:
    [(what, unknowns), *_] = problem_rows(problem)
    return f"{type(problem).__name__}, {what} {unknowns}"


def _checked_modes(modes) -> dict[str, Mode]:
    if not isinstance(modes, Mapping) or not modes:
        raise InvalidProblemError(f"modes must be a dict with a problem for each name, got {modes!r}")
    checked = {}
    for name, mode in modes.items():
        if not isinstance(name, str) or not name:
            raise InvalidProblemError(f"modes: the name of a mode must be a nonempty string, got {name!r}")
        mode = mode if isinstance(mode, Mode) else Mode(mode)
        if not isinstance(mode.problem, _PROBLEMS):
            raise InvalidProblemError(
                f"modes: '{name}' must be a problem (ImplicitDAE, SemiExplicitDAE, MechanicalSystem, ...) or a Mode, "
                f"got {'None' if mode.problem is None else type(mode.problem).__name__}"
            )
        checked[name] = mode
    return checked


def _checked_transition(transition, position: int, modes: Mapping[str, Mode]) -> Transition:
    what = f"transitions[{position}]"
    if not isinstance(transition, Transition):
        raise InvalidProblemError(f"{what} must be a Transition, got {type(transition).__name__}")
    if transition.name is not None and (not isinstance(transition.name, str) or not transition.name):
        raise InvalidProblemError(f"{what}.name must be a string, got {transition.name!r}")
    what = f"{what} ('{transition.name}')" if transition.name else what
    sources = transition.source
    if not isinstance(sources, str) and not (isinstance(sources, Sequence) and sources):
        raise InvalidProblemError(f"{what}: source must be the name of a mode, or several names, got {sources!r}")
    for source in transition.sources:
        _check_mode(what, "source", source, modes)
    if transition.target is not None and not callable(transition.target):
        _check_mode(what, "target", transition.target, modes)
    if isinstance(transition.guard, str):
        if transition.guard != ZENO:
            raise InvalidProblemError(f"{what}: guard must be a function or 'zeno', got {transition.guard!r}")
    else:
        check_callable(transition.guard, f"{what}.guard")
    if isinstance(transition.reset, Mapping):
        for target, function in transition.reset.items():
            _check_mode(what, "reset", target, modes)
            check_callable(function, f"{what}.reset['{target}']")
    elif transition.reset is not None:
        check_callable(transition.reset, f"{what}.reset")
    check_flag(transition.project, f"{what}.project")
    check_flag(transition.immediate, f"{what}.immediate")
    return transition


def _check_mode(what: str, role: str, name, modes: Mapping[str, Mode]):
    if not isinstance(name, str) or name not in modes:
        raise InvalidProblemError(f"{what}: {role} {name!r} is not a mode; the modes are {', '.join(modes)}")


def _with_names(transitions: list[Transition]) -> list[Transition]:
    """Name unnamed transitions by their guard function or by the modes that they connect."""
    for i, transition in enumerate(transitions):
        for other in transitions[:i]:
            if transition.name is not None and transition.name == other.name:
                common = set(transition.sources) & set(other.sources)
                if common:
                    raise InvalidProblemError(
                        f"transitions: the name '{transition.name}' is given twice in mode '{min(common)}'; names of "
                        "transitions out of the same mode must differ"
                    )
    taken: set[str | None] = {t.name for t in transitions}
    named = []
    for transition in transitions:
        if transition.name is None:
            base, count = _default_name(transition), 1
            name = base
            while name in taken:
                count += 1
                name = f"{base} ({count})"
            taken.add(name)
            transition = replace(transition, name=name)
        named.append(transition)
    return named


def _default_name(transition: Transition) -> str:
    own = getattr(transition.guard, "__name__", "<lambda>")
    if own != "<lambda>":
        return own
    target = "..." if callable(transition.target) else transition.target or "end"
    return f"{' | '.join(transition.sources)} -> {target}"
