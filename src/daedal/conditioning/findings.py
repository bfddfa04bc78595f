"""Constants of perturbation bounds as functions of time, and what a fundamental matrix on the grid needs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Constant:
    """A constant of a bound along the grid.

    Attributes
    ----------
    symbol : str
        As the source writes it.
    meaning : str
        In words.
    values : numpy.ndarray
        On the grid; the constant itself is the largest of them.
    """

    symbol: str
    meaning: str
    values: np.ndarray = field(repr=False)

    @property
    def value(self) -> float:
        """The constant."""
        return float(np.max(self.values))


@dataclass
class Findings:
    """What was found: constants by name, amplification factors by (effect, source), matrices along the grid by name."""

    constants: dict[str, Constant] = field(default_factory=dict)
    amplification: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    matrices: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, name: str, symbol: str, meaning: str, values: np.ndarray) -> np.ndarray:
        """Keep a constant."""
        self.constants[name] = Constant(symbol, meaning, np.asarray(values, dtype=float))
        return self.constants[name].values


def on_grid(samples: list[np.ndarray]) -> np.ndarray:
    """Values on the grid from samples at the nodes of all intervals: the first of each, and the last of the last."""
    return np.array([*(one[0] for one in samples), samples[-1][-1]])
