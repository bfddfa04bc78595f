"""What the analysis of a problem found, as one page: text, HTML, picture and graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from daedal.errors import InvalidProblemError, StructurallySingularError
from daedal.initial.local_structure import LocalStructure
from daedal.problem_analysis import dot, picture
from daedal.problem_analysis.layout import Layout
from daedal.problem_analysis.page import html_page, sections, text_page
from daedal.problem_analysis.scaling import Scaling
from daedal.problem_conditioning.local import LocalConditioning
from daedal.structure.dulmage_mendelsohn import DulmageMendelsohn
from daedal.structure.equations import Equations
from daedal.structure.signature import true_orders
from daedal.structure.structural_analysis import StructuralAnalysis
from daedal.structure.tractability import Tractability

_SUFFIXES = {".svg": "svg", ".dot": "dot", ".html": "html", ".txt": "text"}


@dataclass(frozen=True, repr=False, eq=False)
class Analysis:
    """The result of :func:`daedal.analyse`; ``print`` shows one page of text, a notebook the same with a picture.

    Attributes
    ----------
    problem : problem
        What was analysed.
    equations : Equations
        Its equations on a graph.
    t : float
        The time of the point.
    structural : StructuralAnalysis or None
        What the structure says; None if it is singular.
    singular : StructurallySingularError or None
        What is wrong with the equations, where they do not determine the unknowns.
    local : LocalStructure or None
        What the derivative array says at the point; None where `not_local` tells why.
    not_local : str
        Why there is no `local`; empty if there is.
    tractability : Tractability or None
        None where it does not apply.
    scaling : Scaling or None
        None without a point.
    conditioning : LocalConditioning or None
        The effective index and norms that tell how errors grow, for small problems of first order.
    """

    problem: Any
    equations: Equations
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
        """The differentiation index; where it is not known the structural index if that may be believed, or None."""
        if self.local is not None:
            return self.local.index
        return self.structural_index

    @property
    def structural_index(self) -> int | None:
        """The structural index; None where the structure is singular or its system Jacobian is."""
        return None if self.structural is None else self.structural.index

    @property
    def strangeness_index(self) -> int | None:
        """The strangeness index at the point."""
        return None if self.local is None else self.local.strangeness_index

    @property
    def tractability_index(self) -> int | None:
        """The tractability index at the point, where it applies and is not above 2."""
        return None if self.tractability is None else self.tractability.index

    @property
    def degrees_of_freedom(self) -> int | None:
        """How many initial values may be chosen; None if it is not known."""
        if self.local is not None:
            return self.local.degrees_of_freedom
        return None if self.structural is None else self.structural.degrees_of_freedom

    @property
    def hidden_constraints(self) -> tuple[str, ...]:
        """Constraints that follow from the equations by differentiation, as formulas."""
        return () if self.local is None else tuple(constraint.text for constraint in self.local.hidden_constraints)

    @property
    def initial_choices(self) -> tuple[str, ...]:
        """Which initial values may be chosen, in words, one for each independent group."""
        return () if self.local is None else tuple(str(choice) for choice in self.local.choices if choice.count)

    @cached_property
    def layout(self) -> Layout:
        """Equations and unknowns in block-triangular order."""
        if self.structural is not None:
            signature = self.structural.signature
            return Layout.of(self.structural.blocks, signature.sigma, signature.leading())
        sigma, _ = true_orders(self.equations)
        return Layout.of(DulmageMendelsohn.of(sigma, self.equations.n), sigma, sigma)

    @property
    def offsets(self) -> tuple[list[int], list[int]] | None:
        """How often equations are differentiated, and the derivatives that this determines."""
        if self.structural is None:
            return None
        return self.structural.signature.c.tolist(), self.structural.signature.d.tolist()

    @cached_property
    def svg(self) -> str:
        """The block-triangular form as a picture."""
        return picture.svg(self.layout, self.equations.names, self.offsets)

    @cached_property
    def dot(self) -> str:
        """The blocks and their dependence as a graph for Graphviz."""
        return dot.dot(self.layout, self.equations.names)

    @cached_property
    def text(self) -> str:
        """The page as ``print`` shows it."""
        return text_page(sections(self), picture.letters(self.layout, self.equations.names, self.offsets))

    @cached_property
    def html(self) -> str:
        """The page as a notebook shows it."""
        return html_page(sections(self), self.svg)

    def save(self, path: str | Path) -> None:
        """Write the page or the picture; the suffix says which: .txt, .html, .svg or .dot. Missing folders are made."""
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
