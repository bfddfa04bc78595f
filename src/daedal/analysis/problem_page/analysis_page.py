"""The analysis of a problem as one page: text, HTML, picture and graph."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse

from daedal.analysis.conditioning.measure import LocalConditioning
from daedal.analysis.problem_page import block_picture
from daedal.analysis.problem_page.block_picture import BlockLayout
from daedal.common.tabular import Tabular, derivative_name, listing, times
from daedal.errors import InvalidProblemError, StructurallySingularError
from daedal.index.structure.equilibration import equilibrate
from daedal.index.structure.signature import DulmageMendelsohn, equations_named, true_orders
from daedal.index.structure.structural_analysis import StructuralAnalysis
from daedal.index.structure.system_equations import SystemEquations
from daedal.index.structure.system_jacobian import Tractability
from daedal.initial.local_structure import LocalStructure

_MOST_NAMED, _MOST_SHOWN = 12, 16
_WIDTH = 100


@dataclass(frozen=True)
class Section:
    """A heading, table rows, lines of text and, optionally, the picture; `key` explains symbols."""

    title: str
    rows: Sequence[tuple[str, str]] = ()
    lines: Sequence[str] = field(default_factory=list)
    picture: bool = False
    key: str = ""


def sections(analysis: Analysis) -> list[Section]:
    """All sections of the page."""
    found = [_problem(analysis)]
    if analysis.singular is not None:
        message = str(analysis.singular)
        found.append(Section("Problems found", lines=[f"{message[0].upper()}{message[1:]}"]))
        return [*found, Section("Structure", picture=True, key=_KEY)]
    found += [_index(analysis), *_constraints(analysis), _structure(analysis)]
    if analysis.scaling is not None and analysis.offsets is not None:
        determined = [
            derivative_name(name, k) for name, k in zip(analysis.equations.names, analysis.offsets[1], strict=True)
        ]
        found.append(Section("Numbers", [("scaling", analysis.scaling.advice(determined))]))
    if analysis.conditioning is not None:
        found.append(Section("Conditioning", analysis.conditioning.rows(), [_CONDITIONING]))
    return found


def text_page(parts: Sequence[Section], letters: str) -> str:
    """The page as plain text."""
    blocks = []
    for part in parts:
        lines = [part.title]
        if part.rows:
            lines.append(str(Tabular("ll", part.rows, indent=2, width=_WIDTH, least=22)))
        if part.picture:
            lines += ["", *(f"    {line}" for line in letters.splitlines()), ""]
        for line in [*[part.key] * bool(part.key), *part.lines]:
            lines.append(textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent="    "))
        blocks.append("\n".join(lines).rstrip())
    return "\n\n".join(blocks)


def html_page(parts: Sequence[Section], svg: str) -> str:
    """The page for a notebook; user-defined names and formulas are escaped."""
    from markupsafe import Markup

    page = Markup("")
    for part in parts:
        page += Markup("<p><b>{}</b></p>").format(part.title)
        if part.rows:
            page += Markup(Tabular("ll", part.rows).__html__())
        if part.picture:
            page += Markup(svg)  # text in the SVG is already escaped
        page += Markup("").join(Markup("<p>{}</p>").format(line) for line in part.lines)
    return str(Markup("<div>{}</div>").format(page))


def _problem(analysis: Analysis) -> Section:
    equations = analysis.equations
    parts, first = [], 0
    for count, words in equations.parts:
        last = first + count - 1
        parts.append(f"{words} ({first if count == 1 else f'{first} to {last}'})")
        first += count
    names = listing(equations.names[:_MOST_NAMED], equations.n)
    kind = type(analysis.problem).__name__
    title = f"{'An' if kind[0] in 'AEIOU' else 'A'} {kind} of {equations.n} equation{'s' * (equations.n != 1)}"
    rows = [("equations", f"{'; '.join(parts)}, numbered from 0"), ("unknowns", names)]
    vanished = [] if analysis.structural is None else analysis.structural.signature.vanished
    if vanished and analysis.structural is not None and not analysis.structural.combinations:
        lost = (f"{equations.names[j]}{chr(39) * k} in equation {i}" for i, j, k in vanished[:3])
        rows.append(("present, but cancels", listing(lost, len(vanished))))
    return Section(title, rows)


def _index(analysis: Analysis) -> Section:
    structural, local = analysis.structural, analysis.local
    assert structural is not None
    rows = []
    if local is not None:
        where = f"derivative array at t = {local.t:g}"
        found = "none" if local.index is None else str(local.index)
        rows.append(("differentiation index", f"{found} ({where})"))
        rows.append(("strangeness index", f"{local.strangeness_index} (d = {local.d}, a = {local.a}, v = {local.v})"))
    else:
        rows.append(("differentiation index", f"not computed: {analysis.not_local}"))
    found = "unknown" if structural.index is None else str(structural.index)
    rows.append(("structural index", f"{found} (Pryce's signature method). {structural}"))
    if analysis.tractability is not None and (local is None or local.index is not None):
        found = "above 2" if analysis.tractability.index is None else str(analysis.tractability.index)
        rows.append(("tractability index", f"{found} (März's matrix chain)"))
    freedom = "unknown" if analysis.degrees_of_freedom is None else str(analysis.degrees_of_freedom)
    rows.append(("degrees of freedom", freedom))
    chosen = "; ".join(analysis.initial_choices)
    if chosen:
        rows.append(("initial values", f"may be chosen near this point: {chosen}"))
    lines = []
    if local is not None:
        fixed = [name for choice in local.choices if choice.count == 0 for name in choice.names]
        if fixed:
            rows.append(("determined here", listing(fixed[:_MOST_NAMED], len(fixed))))
        lines = [f"Not certain: {decision}." for decision in local.unclear]
        lines += _disagreement(analysis)
    return Section("Index", rows, lines)


def _disagreement(analysis: Analysis) -> list[str]:
    """Differences between structure and derivative array, with explanations."""
    local, structural = analysis.local, analysis.structural
    assert local is not None and structural is not None
    if local.index is None:
        names = listing(local.undetermined[:_MOST_NAMED], len(local.undetermined))
        lines = [f"However often the equations are differentiated, they do not determine {names} at this point."]
        if local.redundant_equations:
            which = equations_named(local.redundant_equations)
            lines.append(
                f"Among {which}, with their derivatives, {local.v} follow{'s' * (local.v == 1)} from the others."
            )
        return lines
    if structural.index is None or local.index == structural.index:
        return []
    if local.index < structural.index:
        return [
            "The structural index is an upper bound: equations can be combined so that fewer differentiations are "
            "needed (Reissig, Martinson and Barton, SIAM J. Sci. Comput. 21, 2000)."
        ]
    return ["The index at this point is higher than the structure allows elsewhere: the point is singular."]


def _constraints(analysis: Analysis) -> list[Section]:
    if analysis.local is None:
        return []
    hidden = [constraint.text for constraint in analysis.local.hidden_constraints]
    more = [f"and {len(hidden) - _MOST_SHOWN} more, in hidden_constraints"] if len(hidden) > _MOST_SHOWN else []
    return [Section(f"Hidden constraints ({len(hidden)})", lines=[*hidden[:_MOST_SHOWN], *more])] if hidden else []


def _structure(analysis: Analysis) -> Section:
    structural = analysis.structural
    assert structural is not None
    groups: dict[int, list[int]] = {}
    for i, count in enumerate(structural.differentiations.tolist()):
        groups.setdefault(count, []).append(i)
    said = [
        f"{times(count)}: {equations_named(which)}" for count, which in sorted(groups.items(), reverse=True) if count
    ]
    sizes = [len(block.part.rows) for block in analysis.layout.blocks]
    blocks = f"{len(sizes)}, the largest of {max(sizes)} equation{'s' * (max(sizes) != 1)}"
    rows = [("differentiated", "; ".join(said) or "nothing"), ("blocks", blocks)]
    return Section("Structure", rows, [_OFFSETS], picture=True, key=_KEY)


_CONDITIONING = (
    "In the units of the problem, with the matrices at this point; daedal.analysis.analyse_conditioning computes "
    "it along a solution."
)
_KEY = (
    "Numbers are the highest derivatives in the equations: [k] is determined by the equation, k occurs in it, "
    "(k) is known from the state."
)
_OFFSETS = "c: number of differentiations of the equation; d: the derivative of the unknown that this determines."


# --- the result -------------------------------------------------------------------------------------------------------

_SUFFIXES = {".svg": "svg", ".dot": "dot", ".html": "html", ".txt": "text"}


@dataclass(frozen=True, repr=False, eq=False)
class Analysis:
    """The result of :func:`daedal.analyse`; ``print`` shows one page of text, a notebook adds a picture.

    Attributes
    ----------
    problem : problem
        The analysed problem.
    equations : Equations
        Its equations on a graph.
    t : float
        The time of the point.
    structural : StructuralAnalysis or None
        The structural analysis; None if the structure is singular.
    singular : StructurallySingularError or None
        The exception if the equations do not determine the unknowns.
    local : LocalStructure or None
        The derivative array at the point; None if unavailable, see `not_local`.
    not_local : str
        Why `local` is None; otherwise empty.
    tractability : Tractability or None
        None if not applicable.
    scaling : Scaling or None
        None without a point.
    conditioning : LocalConditioning or None
        The effective index and norms that measure error growth, for small first-order problems.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> page = daedal.analyse(pendulum)
    >>> print(page.index, page.degrees_of_freedom)
    3 2
    """

    problem: Any
    equations: SystemEquations
    t: float
    structural: StructuralAnalysis | None
    singular: StructurallySingularError | None = None
    local: LocalStructure | None = None
    not_local: str = ""
    tractability: Tractability | None = None
    scaling: Scaling | None = None
    conditioning: LocalConditioning | None = None

    @property
    def index(self) -> int | None:
        """The differentiation index; if unknown, the structural index if reliable, or None."""
        if self.local is not None:
            return self.local.index
        return self.structural_index

    @property
    def structural_index(self) -> int | None:
        """The structural index; None if the structure or its system Jacobian is singular."""
        return None if self.structural is None else self.structural.index

    @property
    def strangeness_index(self) -> int | None:
        """The strangeness index at the point."""
        return None if self.local is None else self.local.strangeness_index

    @property
    def tractability_index(self) -> int | None:
        """The tractability index at the point, if applicable and at most 2."""
        return None if self.tractability is None else self.tractability.index

    @property
    def degrees_of_freedom(self) -> int | None:
        """The number of freely chosen initial values; None if unknown."""
        if self.local is not None:
            return self.local.degrees_of_freedom
        return None if self.structural is None else self.structural.degrees_of_freedom

    @property
    def hidden_constraints(self) -> tuple[str, ...]:
        """Constraints that follow from the equations by differentiation, as formulas."""
        return () if self.local is None else tuple(constraint.text for constraint in self.local.hidden_constraints)

    @property
    def initial_choices(self) -> tuple[str, ...]:
        """Choices of initial values, one description for each independent group."""
        return () if self.local is None else tuple(str(choice) for choice in self.local.choices if choice.count)

    @cached_property
    def layout(self) -> BlockLayout:
        """Equations and unknowns in block-triangular order."""
        if self.structural is not None:
            signature = self.structural.signature
            return BlockLayout.of(self.structural.blocks, signature.sigma, signature.leading())
        sigma, _ = true_orders(self.equations)
        return BlockLayout.of(DulmageMendelsohn.of(sigma, self.equations.n), sigma, sigma)

    @property
    def offsets(self) -> tuple[list[int], list[int]] | None:
        """Numbers of differentiations, and the derivatives thus determined."""
        if self.structural is None:
            return None
        return self.structural.signature.c.tolist(), self.structural.signature.d.tolist()

    @cached_property
    def svg(self) -> str:
        """The block-triangular form as a picture."""
        return block_picture.svg(self.layout, self.equations.names, self.offsets)

    @cached_property
    def dot(self) -> str:
        """The blocks and their dependence as a graph for Graphviz."""
        return block_picture.dot(self.layout, self.equations.names)

    @cached_property
    def text(self) -> str:
        """The page shown by ``print``."""
        return text_page(sections(self), block_picture.letters(self.layout, self.equations.names, self.offsets))

    @cached_property
    def html(self) -> str:
        """The page shown in notebooks."""
        return html_page(sections(self), self.svg)

    def save(self, path: str | Path) -> None:
        """Write the page or picture; the suffix sets the format: .txt, .html, .svg or .dot. Creates missing folders."""
        suffix = Path(path).suffix
        if suffix not in _SUFFIXES:
            raise InvalidProblemError(f"the file must end in {', '.join(_SUFFIXES)}, got '{path}'")
        head = '<!DOCTYPE html><meta charset="utf-8"><title>Analysis</title>\n' if suffix == ".html" else ""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(head + getattr(self, _SUFFIXES[suffix]), encoding="utf-8")

    def __repr__(self) -> str:
        return f"<analysis of {self.equations.n} equations: index {'unknown' if self.index is None else self.index}>"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


# --- scaling: whether the units of equations and unknowns differ so much that solvers would benefit from others -------

_LARGEST = 400
_WORTHWHILE = 1e4  # smallest reported reduction of the condition number by scaling
_APART = 1e3  # smallest reported ratio of the scales of two unknowns


@dataclass(frozen=True)
class Scaling:
    """The effect of row and column scaling on the system Jacobian."""

    # condition number of the Jacobian before and after scaling
    condition: float
    scaled: float
    # factors of equations and units of unknowns that balance the Jacobian
    equations: np.ndarray
    unknowns: np.ndarray

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> Scaling | None:
        """The scaling of a matrix; None if it is too large, or singular."""
        if matrix.shape[0] > _LARGEST or not np.all(np.isfinite(matrix.data)):
            return None
        dense = matrix.toarray()
        rows, columns = equilibrate(dense)
        before, after = np.linalg.cond(dense), np.linalg.cond(rows[:, None] * dense * columns)
        return cls(float(before), float(after), rows, columns) if np.isfinite(after) else None

    def advice(self, names: Sequence[str]) -> str:
        """The recommendation as one sentence."""
        numbers = f"condition number {self.condition:.1e}, {self.scaled:.1e} with balanced units"
        if self.condition < _WORTHWHILE * self.scaled:
            return f"no need ({numbers})"
        sentences = []
        for what, factors, named in (
            ("use units that differ less, or a tolerance for each", self.unknowns, names),
            ("multiply them by factors that make them similar in size", 1.0 / self.equations, None),
        ):
            least, most = int(np.argmin(factors)), int(np.argmax(factors))
            if factors[most] > _APART * factors[least]:
                large, small = (named[k] if named else f"equation {k}" for k in (most, least))
                ratio = factors[most] / factors[least]
                sentences.append(f"{large} is naturally about {ratio:.0e} times as large as {small}: {what}")
        return f"{'; '.join(sentences) or 'several units differ'} ({numbers})"
