"""Constants of perturbation bounds as functions of time, and all else that was found."""

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
        On the grid, NaN where it does not apply; the constant itself is the largest of them.
    """

    symbol: str
    meaning: str
    values: np.ndarray = field(repr=False)

    @property
    def value(self) -> float:
        """The constant."""
        return float(np.nanmax(self.values))


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
