"""The state of a mechanical system at given times, and the names of what it consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.solution.quantities import Quantity, row_named

PARTS = ("q", "v", "a", "lam", "r", "w", "reaction")
"""What a state consists of."""


@dataclass(frozen=True)
class StateNames:
    """Names of (q, v, r), of constraints and of multipliers."""

    names: tuple[str, ...]
    n_q: int
    n_w: int
    constraints: tuple[str, ...]
    multipliers: tuple[str, ...]

    @property
    def accelerations(self) -> tuple[str, ...]:
        """x'' of a coordinate x; a[0] of q[0]."""
        n = self.n_q
        pairs = zip(self.names[:n], self.names[n : 2 * n], strict=True)
        return tuple(f"{x}''" if v == f"{x}'" else f"a[{i}]" for i, (x, v) in enumerate(pairs))

    def quantities(self, part: Callable[[str], np.ndarray]) -> list[Quantity]:
        """What has a name, from the parts of a state or a solution."""
        n = self.n_q
        positions = self.names[:n]
        algebraic = tuple(f"w[{i}]" for i in range(self.n_w))
        forces = tuple(f"reaction {name}" for name in positions)
        return [
            Quantity("q", "coordinate", positions, partial(part, "q")),
            Quantity("v", "coordinate", self.names[n : 2 * n], partial(part, "v"), positions),
            Quantity("r", "state", self.names[2 * n :], partial(part, "r")),
            Quantity("a", "coordinate", self.accelerations, partial(part, "a"), positions),
            Quantity("lam", "constraint", self.multipliers, partial(part, "lam"), self.constraints),
            Quantity("w", "algebraic", algebraic, partial(part, "w")),
            Quantity("reaction", "coordinate", forces, partial(part, "reaction"), positions, in_tables=False),
        ]


@dataclass(frozen=True)
class State:
    """Positions, velocities, accelerations, multipliers, further variables and constraint forces at given times.

    ``state["name"]`` gives one of them by its name.
    """

    t: Any
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    r: np.ndarray
    w: np.ndarray
    reaction: np.ndarray
    names: StateNames | None = field(default=None, repr=False, compare=False, kw_only=True)

    @property
    def y(self) -> np.ndarray:
        """(q, v, r), stacked."""
        return np.concatenate([self.q, self.v, self.r])

    def __getitem__(self, name: str) -> np.ndarray:
        """A quantity by its name."""
        if self.names is None:
            raise InvalidProblemError("the state does not know the names of its parts")
        return row_named(self.names.quantities(partial(getattr, self)), name)
