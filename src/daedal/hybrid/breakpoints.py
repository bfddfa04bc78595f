"""Known break points: the pieces of the interval between them."""

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_real

FEWEST_SPACINGS = 1.1e4  # of floats in a piece, or in what is left of one; less cannot be integrated

Piece = tuple[float, float]


def checked_breakpoints(breakpoints, span: Piece) -> list[float]:
    """All break points inside the interval, in the order of increasing time."""
    given = breakpoints if isinstance(breakpoints, (list, tuple)) else [breakpoints]
    found = [np.empty(0)]
    for item in given:
        points = check_real(getattr(item, "times", item), "breakpoints", "be tables or times")
        if not np.isfinite(points).all():
            raise InvalidProblemError("breakpoints holds values that are not finite")
        found.append(points.reshape(-1))
    points = np.unique(np.concatenate(found))
    return points[(points > min(span)) & (points < max(span))].tolist()


def pieces_between(span: Piece, points: list[float]) -> list[Piece]:
    """The intervals between break points, in the order of the run; points that are too close count as one.

    Each piece ends one float before a break point, and the next begins on it: functions that are continuous from the
    right, as tables are, are never evaluated on the wrong side.
    """
    low, high = min(span), max(span)
    shortest = FEWEST_SPACINGS * float(np.spacing(max(abs(low), abs(high))))
    begins = [low]
    for point in points:
        if point - begins[-1] > shortest and high - point > shortest:
            begins.append(point)
    ends = [float(np.nextafter(point, -np.inf)) for point in begins[1:]] + [high]
    pieces = list(zip(begins, ends, strict=True))
    return pieces if span[1] > span[0] else [(b, a) for a, b in reversed(pieces)]
