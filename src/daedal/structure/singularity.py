"""What is wrong with a structure that is singular, in words: which equations are too many for which unknowns."""

from __future__ import annotations

from collections.abc import Sequence

from daedal.errors import StructurallySingularError
from daedal.structure.dulmage_mendelsohn import DulmageMendelsohn
from daedal.tabular import derivative_name, listing

_MOST_NAMED = 8


def refuse_singular(
    parts: DulmageMendelsohn, names: Sequence[str], vanished: Sequence[tuple[int, int, int]] = ()
) -> None:
    """Raise :class:`daedal.StructurallySingularError` if the equations are structurally singular.

    Then some k of them contain fewer than k unknowns and their derivatives, so that they contradict each other or say
    the same, and something else remains undetermined.
    """
    if parts.is_square:
        return
    over, under = parts.over, parts.under
    sentences = ["the equations are structurally singular"]
    if over.rows and not over.columns:
        sentences.append(f"{equations_named(over.rows)} contain{_s(over.rows)} no unknown at all")
    elif over.rows:
        only = f"only {unknowns_named(over.columns, names)}"
        sentences.append(
            f"{equations_named(over.rows)} contain {only}: {len(over.rows)} equations for "
            f"{len(over.columns)} unknown{'s' * (len(over.columns) != 1)}, so that they are redundant or contradictory"
        )
    if under.columns:
        occur = f"{unknowns_named(under.columns, names)} occur{_s(under.columns)}"
        fewer = f"only in {equations_named(under.rows)}, not enough to determine them all"
        sentences.append(f"{occur} {fewer if under.rows else 'in no equation'}")
    if vanished:
        lost = listing((f"{derivative_name(names[j], k)} from equation {i}" for i, j, k in vanished[:3]), len(vanished))
        sentences.append(f"what is written but cancels: {lost}")
    remedy = "Remedy: replace an equation that is too many by the one that is missing."
    message = f"{sentences[0]} (equations are numbered from 0): {'; '.join(sentences[1:])}. {remedy}"
    raise StructurallySingularError(message, over.rows, under.columns)


def equations_named(which: Sequence[int]) -> str:
    """``equation 3``, ``equations 3, 4 and 7``."""
    return f"equation{'s' * (len(which) != 1)} {listing(map(str, which[:_MOST_NAMED]), len(which))}"


def unknowns_named(which: Sequence[int], names: Sequence[str]) -> str:
    """``x``, ``x, y and z``."""
    return listing((names[j] for j in which[:_MOST_NAMED]), len(which))


def _s(which: Sequence[int]) -> str:
    return "s" * (len(which) == 1)
