"""Definition of library problems: equations, data and reference solutions.

A problem is a factory that returns a :class:`Model`, decorated with :func:`model`, and an entry in the file of ``data``
named like its module:

``title``, ``source``, ``description``, ``equations``
    Texts, with arbitrary line breaks; equations are LaTeX. ``{key}`` in a source is an entry of ``sources.toml``.
``index``, ``degrees_of_freedom``, ``indices``
    The differentiation index; if degrees of freedom are given, all definitions of the index agree
    (:meth:`Indices.usual`) except for those in ``indices``.
``drawing``
    A function of :mod:`daedal.library.drawings`, and the functions that identify a problem with this drawing; without
    such functions the model is identified by name.
``parameters``
    Descriptions of the parameters (several of the same kind may share one), for the docstring; a type before a colon
    replaces the type in the signature. Common parameters are described here (``_COMMON``).
``positive``, ``choices``
    Parameters that must be positive numbers, and the permitted values of others.
``t_span``, ``options``, ``plot``
    Fields of the model; without ``t_span`` the interval ends at the parameter `t1`.
``solutions``
    Known values of the solution if there is no closed form, each entry for the parameters ``given``: ``t`` and ``y``,
    the time and the values of the reference, ``lam``, the multipliers there; ``minimal``, minimal coordinates and their
    rates, which determine the state. ``source`` states who computed them and how, ``accuracy`` is a relative error
    bound.

Everything that depends on parameters is set by the factory.
"""

import copy
import functools
import inspect
import json
import math
import re
import textwrap
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np

import daedal
from daedal.library.contents import contents

P = ParamSpec("P")


@dataclass(frozen=True)
class Reference:
    """A known point of the solution.

    Attributes
    ----------
    t : float
        Time of the values.
    y : numpy.ndarray, shape (n,)
        The values; ``nan`` if unknown.
    source : str
        Who computed the values, and how.
    accuracy : float
        Relative error bound of the values.
    """

    t: float
    y: np.ndarray
    source: str
    accuracy: float = 1e-10

    def error(self, y) -> np.ndarray:
        """Relative error of each component of `y`; absolute if the reference is 0, ``nan`` if it is unknown."""
        size = np.where(self.y == 0.0, 1.0, np.abs(self.y))
        return np.abs(np.asarray(y) - self.y) / size


@dataclass(frozen=True, kw_only=True)
class Indices:
    """Theoretical index of a problem along its solution, by each definition.

    Attributes
    ----------
    differentiation : int or None
        Number of differentiations needed to determine all derivatives; None if no number is sufficient, so that the
        problem does not determine its solution.
    strangeness : int
        Strangeness index of Kunkel and Mehrmann, also defined for problems that do not determine their solution.
    degrees_of_freedom : int or None
        Number of free initial values; None if `differentiation` is None.
    local : int or None
        Index of the pencil ``s F_y' + F_y`` at the start; None if it is singular for every s.
    structural : int
        Structural index of Pryce's signature method: ``max c_i``, plus 1 if some ``d_j`` is 0.
    structure_suffices : bool
        Whether the system Jacobian of that method is regular, so that its result is valid.
    after_order_reduction : int or None
        For a second-order DAE the differentiation index of the companion form with the derivatives of all unknowns.

    Examples
    --------
    >>> import daedal
    >>> indices = daedal.library.flexible_robot().indices
    >>> indices.differentiation, indices.structural, indices.structure_suffices
    (5, 3, False)
    """

    differentiation: int | None
    strangeness: int
    degrees_of_freedom: int | None
    local: int | None
    structural: int
    structure_suffices: bool = True
    after_order_reduction: int | None = None

    @classmethod
    def usual(cls, index: int, degrees_of_freedom: int, **others: Any) -> "Indices":
        """Indices of a problem for which all definitions agree; the strangeness index is smaller by one, or 0."""
        agreed: dict[str, Any] = {"local": index, "structural": index}
        return cls(
            differentiation=index,
            strangeness=max(index - 1, 0),
            degrees_of_freedom=degrees_of_freedom,
            **(agreed | others),
        )


OPEN = (0.0, math.inf)
"""Interval of a model that is defined in its data."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A library problem with everything needed to solve it and to check the result.

    Attributes
    ----------
    name, title : str
        Name for :func:`daedal.library.get`, and title.
    problem : daedal.ImplicitDAE or daedal.SemiExplicitDAE
        The equations with their parameters.
    t_span : tuple of float
        The interval of the source.
    initial : tuple
        Initial values in the form that :func:`daedal.solve` expects.
    index : int or None
        The differentiation index; None if the problem does not determine its solution.
    source : str
        Origin of the problem.
    description : str
        What the problem models and demonstrates.
    equations : str
        The equations in LaTeX.
    reference : Reference or None
        A known point of the solution; None if the parameters are not those of the source.
    options : dict
        Suitable options for :func:`daedal.solve`.
    plot : dict
        What to plot: ``variables`` (names), ``xscale``, ``yscale`` and ``factors`` (a factor for each variable shown).
    extra : dict
        Problem-specific entries, such as ``exact`` for a closed-form solution; see the factory's documentation.
    indices : Indices or None
        The index by each definition; None if not given in the data.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("robertson")
    >>> solution = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    """

    name: str = ""
    title: str = ""
    problem: Any = field(repr=False)
    t_span: tuple[float, float] = OPEN
    initial: tuple[Any, Any] = field(repr=False)
    index: int | None = None
    source: str = field(default="", repr=False)
    description: str = field(default="", repr=False)
    equations: str = field(default="", repr=False)
    reference: Any = field(default=None, repr=False)  # a Reference, or None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    plot: Mapping[str, Any] = field(default_factory=dict, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    indices: Indices | None = field(default=None, repr=False)

    @property
    def solvable(self) -> bool:
        """Whether the problem determines its solution; a few problems that do not serve to test error messages."""
        return self.index is not None

    @property
    def index_in_words(self) -> str:
        """Description of the index."""
        return f"index {self.index}" if self.solvable else "no index"

    def _repr_markdown_(self) -> str:
        return f"**{self.title}** (`{self.name}`, {self.index_in_words})\n\n{self.description}\n\n$${self.equations}$$"


FACTORIES: dict[str, Callable[..., Model]] = {}
DRAWINGS: dict[str, str] = {}  # by full name of a function of the equations, or by name of the model


@functools.cache
def _data(name: str) -> dict[str, Any]:
    """Contents of the file `name` in the folder ``data``."""
    return tomllib.loads((Path(__file__).parent / "data" / f"{name}.toml").read_text(encoding="utf-8"))


def model(factory: Callable[P, Model]) -> Callable[P, Model]:
    """Register a factory in the library under its name; its models are completed with the data of its module."""
    name, module = factory.__name__, factory.__module__
    entry, signature = _data(module.rpartition(".")[2])[name], inspect.signature(factory)

    @functools.wraps(factory)
    def made(*args: P.args, **parameters: P.kwargs) -> Model:
        try:
            given = signature.bind(*args, **parameters)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        given.apply_defaults()
        for parameter, choices in entry.get("choices", {}).items():
            check_choice(parameter, given.arguments[parameter], choices)
        check_positive(**{parameter: given.arguments[parameter] for parameter in entry.get("positive", ())})
        bare = factory(*args, **parameters)
        return replace(bare, name=name, **_stated(bare, entry, given.arguments))

    if factory.__doc__:
        made.__doc__ = _documented(factory.__doc__, signature, entry)
    FACTORIES[name] = made
    if "drawing" in entry:
        drawing, *functions = entry["drawing"]
        DRAWINGS.update(dict.fromkeys([f"{module}.{function}" for function in functions] or [name], drawing))
    return made


def _stated(bare: Model, entry: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a model from its data; texts are used only if the factory provides none."""
    fields: dict[str, Any] = {}
    for text in ("title", "source", "description", "equations"):
        if text in entry and not getattr(bare, text):
            stated = entry[text]
            if text == "source":
                stated = re.sub(r"\{(\w+)\}", lambda key: _data("sources")[key[1]].strip(), stated)
            fields[text] = " ".join(stated.split())
    fields |= {name: copy.deepcopy(entry[name]) for name in ("index", "options", "plot") if name in entry}
    if "degrees_of_freedom" in entry:
        numbers = entry["index"], entry["degrees_of_freedom"]
        fields["indices"] = Indices.usual(*numbers, **entry.get("indices", {}))
    if "t_span" in entry:
        fields["t_span"] = tuple(entry["t_span"])
    elif bare.t_span == OPEN:
        fields["t_span"] = (0.0, float(given["t1"]))
    return fields


_COMMON = {
    "t1": "End time.",
    "coordinates": '{"relative", "absolute"}: Angles of the joints, or positions and angles of all bodies.',
    "compiled": "Whether the functions are compiled.",
    "compiled or by size": "Whether the residual is compiled; by default for 200 unknowns or more.",
}
"""Descriptions of common parameters."""
_TYPES = {"bool | None": "bool, optional", "float | None": "float or None"}


def _documented(doc: str, signature: inspect.Signature, entry: Mapping[str, Any]) -> str:
    """A docstring with the section on parameters inserted before the first other section."""
    described = {name.split(", ")[0]: (name, text) for name, text in entry.get("parameters", {}).items()}
    known = {name for names, _ in described.values() for name in names.split(", ")}
    lines = []
    for name, parameter in signature.parameters.items():
        if name not in known and name in _COMMON:
            described[name] = name, _COMMON[f"{name} or by size" if parameter.default is None else name]
        if name in described:
            names, text = described[name]
            kind = inspect.formatannotation(parameter.annotation)
            kind = _TYPES.get(kind, kind)
            if name in entry.get("choices", {}):
                kind = f"{{{', '.join(map(json.dumps, entry['choices'][name]))}}}"
            if stated := re.match(r"(\{.*?\}|str|float or None|tuple of float): ", text):
                kind, text = stated[1], text[stated.end() :]
            lines += [f"{names} : {kind}", textwrap.indent(textwrap.fill(text, 116, break_on_hyphens=False), "    ")]
    head, *sections = re.split(r"\n\n(?=(?:Notes|Examples)\n---)", inspect.cleandoc(doc))
    if lines:
        sections.insert(0, "\n".join(["Parameters", "----------", *lines]))
    return "\n\n".join([head, *sections])


def closed_model(
    problem,
    exact: Callable[..., np.ndarray],
    t1: float,
    *,
    t0: float = 0.0,
    initial: Any = None,
    accuracy: float = 1e-14,
    origin: str = "closed-form solution",
    extra: Mapping[str, Any] | None = None,
    **others: Any,
) -> Model:
    """A model on [t0, t1] with the exact solution ``exact(t, derivative)``, which provides start and reference."""
    others.setdefault("options", {"rtol": 1e-6, "atol": 1e-8})
    others.setdefault("plot", {"variables": list(problem.names)})
    return Model(
        problem=problem,
        t_span=(float(t0), float(t1)),
        initial=(exact(t0, 0), exact(t0, 1)) if initial is None else initial,
        reference=Reference(float(t1), exact(t1, 0), origin, accuracy),
        extra={"exact": exact, **(extra or {})},
        **others,
    )


def explicit_start(problem: daedal.ImplicitDAE, y0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Initial values of y' - f(t, y) = 0 at t = 0: `y0` and f(0, y0)."""
    return y0, 0.0 - problem.evaluate(0.0, y0, np.zeros(problem.n))


def known(problem: str, **given: Any) -> dict[str, Any] | None:
    """The data entry with the known solution for the parameters `given`; None without such an entry."""
    solutions = _data(contents()[problem]["module"])[problem].get("solutions", ())
    return next((entry for entry in solutions if entry["given"] == given), None)


def known_reference(problem: str, **given: Any) -> Reference | None:
    """The known solution for the parameters `given` as a reference; None if unknown."""
    entry = known(problem, **given)
    return None if entry is None else Reference(entry["t"], np.array(entry["y"]), entry["source"], entry["accuracy"])


_VERY_LARGE = 5000  # number of unknowns from which traces are too long


def compile_if_large(problem, compiled: bool | None, large: int = 200):
    """Compile a problem if requested or, by default, if it has `large` unknowns or more.

    Functions are traced; very large problems, whose traces would be long, are compiled by Numba if it is installed.
    """
    if compiled is None:
        compiled = problem.n >= large
    if not compiled or problem.n < _VERY_LARGE:
        return problem.compiled() if compiled else problem
    return problem if find_spec("numba") is None else problem.compiled("numba")


def check_choice(parameter: str, value: Any, choices: Collection[Any]) -> None:
    """Raise if `value` is not one of the `choices`."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise daedal.InvalidProblemError(f"{parameter}={value!r} is not known; choose one of {known}")


def check_positive(**parameters: Any) -> None:
    """Raise for parameters that are not positive finite numbers."""
    for name, value in parameters.items():
        if not (isinstance(value, (int, float, np.integer)) and np.isfinite(value) and value > 0):
            raise daedal.InvalidProblemError(f"{name}={value!r} must be a positive number")


# --- common parts of mechanical models --------------------------------------------------------------------------------

# The reference is the vector (q, v) at the end of the interval. ``model.extra`` contains, if known,
#
# * ``lam``: the multipliers at the time of the reference, holonomic constraints first;
# * ``exact(t)``: the closed-form solution, the vector (q, v) at time t, and ``exact_lam(t)``, its multipliers;
# * ``energy(q, v)``: the total energy, which is constant; also for many states, shape ``(n_q, nt)``;
# * ``configuration(s, s')``: the state (q, v) that belongs to minimal coordinates s and their rates.
#
# The functions of the equations are written such that Numba compiles them unchanged. Constraints also accept complex
# arguments, so that they can be differentiated by complex steps.


def mechanical_model(
    problem,
    initial: tuple[Any, Any],
    t1: float,
    compiled: bool = False,
    *,
    known: Mapping[str, Any] | None = None,
    exact: Callable[[float], np.ndarray] | None = None,
    exact_lam: Callable[[float], np.ndarray] | None = None,
    energy: Callable[..., Any] | None = None,
    configuration: Callable[..., Any] | None = None,
    extra: Mapping[str, Any] | None = None,
    **others: Any,
) -> Model:
    """A model on [0, t1] with the entries of ``extra`` described in this module.

    Its reference is the data entry `known`, or the closed-form solution `exact`.
    """
    stated = {"exact": exact, "exact_lam": exact_lam, "energy": energy, "configuration": configuration}
    entries = {name: entry for name, entry in stated.items() if entry is not None} | dict(extra or {})
    reference, lam = None, None
    if known is not None:
        reference = Reference(t1, np.array(known["y"]), known["source"], known["accuracy"])
        lam = known.get("lam")
    if exact is not None:
        reference = Reference(t1, exact(t1), "closed-form solution", 1e-12)
    if exact_lam is not None:
        lam = exact_lam(t1)
    if lam is not None:
        entries["lam"] = np.array(lam, dtype=float)
    others.setdefault("options", {"rtol": 1e-8, "atol": 1e-8})
    others.setdefault("plot", {"variables": list(problem.names[: problem.n_q])})
    others.setdefault("index", 3 if problem.n_constraints else 2)
    return Model(
        problem=problem.compiled() if compiled else problem,
        t_span=(0.0, float(t1)),
        initial=(np.array(initial[0], dtype=float), np.array(initial[1], dtype=float)),
        reference=reference,
        extra=entries,
        **others,
    )


def check_angle(**parameters: float) -> None:
    """Raise for angles that are not between -pi and pi."""
    for name, value in parameters.items():
        if not abs(value) < math.pi:
            raise daedal.InvalidProblemError(f"{name}={value!r} must lie between -pi and pi")


def pendulum_angle(t: float, amplitude: float, frequency: float) -> tuple[float, float]:
    """Angle a and rate of a'' = -frequency^2 sin a, released from rest at a(0) = `amplitude`.

    With k = sin(amplitude/2) and u = frequency t, the solution is sin(a/2) = k cn(u)/dn(u) (Jacobi's elliptic functions
    of modulus k).
    """
    from scipy.special import ellipj

    k = math.sin(0.5 * amplitude)
    sn, cn, dn, _ = ellipj(frequency * t, k * k)
    angle = 2.0 * math.asin(k * cn / dn)
    rate = -2.0 * frequency * k * math.cos(0.5 * amplitude) * sn / dn
    return angle, rate
