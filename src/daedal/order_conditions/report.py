"""What came out for each condition."""

from dataclasses import dataclass
from typing import Any

from daedal.order_conditions.conditions import Condition

TOLERANCE = 1e-10
"""A residual computed in floats counts as zero below this."""


@dataclass(frozen=True)
class Check:
    """One condition and what came out: left and right side, residual, and whether it holds."""

    condition: Condition
    left: Any
    right: Any
    residual: Any
    holds: bool


@dataclass(frozen=True)
class Report:
    """The conditions that were checked; printed, it says which hold.

    Attributes
    ----------
    title : str
        What was verified.
    checks : tuple of Check
        One for each condition.
    exact : bool
        Whether the residuals are exact numbers.
    row_sums : bool
        Whether the nodes c are the row sums of a, as problems that depend on time need it.
    """

    title: str
    checks: tuple[Check, ...]
    exact: bool
    row_sums: bool

    @property
    def holds(self) -> bool:
        """Whether every condition holds."""
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        """The conditions that do not hold."""
        return tuple(check for check in self.checks if not check.holds)

    @property
    def order(self) -> int:
        """The highest order up to which every condition holds, as far as they were checked."""
        highest = max((check.condition.order for check in self.checks), default=0)
        return min((check.condition.order - 1 for check in self.failures), default=highest)

    @property
    def largest(self) -> float:
        """The largest residual."""
        return max((abs(float(check.residual)) for check in self.checks), default=0.0)

    def counts(self) -> dict[int, tuple[int, int]]:
        """For each order, how many conditions hold and how many there are."""
        result: dict[int, tuple[int, int]] = {}
        for check in self.checks:
            held, total = result.get(check.condition.order, (0, 0))
            result[check.condition.order] = held + check.holds, total + 1
        return result

    def __str__(self) -> str:
        kind = "exactly" if self.exact else f"to {TOLERANCE:g}"
        lines = [f"{self.title}: {len(self.checks) - len(self.failures)} of {len(self.checks)} conditions hold {kind}"]
        lines += [f"  order {order}: {held} of {total}" for order, (held, total) in self.counts().items()]
        if not self.row_sums:
            lines.append("  the nodes c are not the row sums of a")
        for check in self.failures[:20]:
            condition = check.condition
            table = "" if condition.table == 1 else f" of Table {condition.table}"
            size = f"{check.residual:.3g}" if isinstance(check.residual, float) else check.residual
            lines.append(f"  nr {condition.number}{table} fails by {size}: {condition.left_side()} = {check.right}")
        if len(self.failures) > 20:
            lines.append(f"  and {len(self.failures) - 20} others")
        return "\n".join(lines)
