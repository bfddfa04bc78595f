"""How structures of linear systems are put into words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.tabular import Tabular

_LINE = 118


def combination(coefficients: np.ndarray, names: Sequence[str], *, digits: int = 4) -> str:
    """A linear combination as text: ``x1 - 2 x3``. Coefficients at the level of rounding errors are left out."""
    size = np.max(np.abs(coefficients), initial=0.0)
    text = ""
    for value, name in zip(coefficients, names):
        if abs(value) <= 1e-9 * size:
            continue
        sign = "-" if value < 0.0 else "+"
        factor = "" if abs(abs(value) - 1.0) < 1e-12 else f"{abs(value):.{digits}g} "
        text += f" {sign} {factor}{name}" if text else f"{'-' if value < 0.0 else ''}{factor}{name}"
    return text or "0"


def numbers(values: Iterable[complex], limit: int = 12) -> str:
    """Numbers as text, complex ones in pairs; many of them shortened."""
    shown = []
    for value in sorted(np.atleast_1d(np.asarray(list(values))), key=lambda z: (round(z.real, 9), abs(z.imag))):
        if value.imag < 0.0:
            continue
        shown.append(f"{value.real:.6g}" + (f" ± {value.imag:.6g}i" if value.imag > 0.0 else ""))
    if len(shown) > limit:
        return ", ".join(shown[:limit]) + f", ... ({len(shown)} in all)"
    return ", ".join(shown) if shown else "none"


def check_names(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """The names of the unknowns, ``x[0]``, ``x[1]``, ... by default."""
    if names is None:
        return tuple(f"x[{j}]" for j in range(n))
    if isinstance(names, str) or len(names) != n:
        raise InvalidProblemError(f"names must be a sequence of {n} names, one for each unknown")
    return tuple(str(name) for name in names)


def check_matrix(value: Any, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """A real matrix with finite entries, of the given shape."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidProblemError(f"{name} must be a real matrix: {error}") from None
    if array.ndim != 2 or (shape is not None and array.shape != shape):
        wanted = "a matrix" if shape is None else f"a matrix of shape {shape}"
        raise InvalidProblemError(f"{name} must be {wanted}, but its shape is {array.shape}")
    if not np.all(np.isfinite(array)):
        i, j = np.argwhere(~np.isfinite(array))[0]
        raise InvalidProblemError(f"{name}[{i}, {j}] is {array[i, j]}, which is not a finite number")
    return array


class Shown:
    """An object that shows itself as a title and tables, as text and in a notebook."""

    def title(self) -> str:
        """The first line."""
        raise NotImplementedError

    def tables(self) -> Sequence[Tabular]:
        """What stands below it."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join([self.title(), *(_indented(table) for table in self.tables())])

    def _repr_html_(self) -> str:
        from markupsafe import Markup

        body = Markup("<p></p>").join(table.__html__() for table in self.tables())
        return str(Markup("<p><b>{}</b></p>{}").format(self.title(), body))


def _indented(table: Tabular) -> str:
    width = _LINE if not table.header else None
    return str(Tabular(table.columns, table.rows, table.header, indent=2, width=width))
