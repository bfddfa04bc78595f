"""What every solution can do: give quantities by name, tables, and a file of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from daedal.common.tabular import duration
from daedal.solution.quantities import Quantity, row_named


class Tabulated:
    """A solution whose quantities have names.

    Attributes
    ----------
    event_names : tuple of str
        The names of the switching functions that were given as `events`.
    params : object
        The parameters of the run, if they are plain numbers, texts, arrays, and lists and mappings of them.
    attributes : dict
        Notes of your own, such as ``{"units": {"x": "m"}, "source": "bench 3"}``; tables and files keep them.
    """

    t: Any
    events: Any
    event_names: tuple[str, ...] = ()
    params: Any = None
    stats: Any

    @property
    def cost_in_words(self) -> str:
        """The time of the run, and beside it what was spent once: ``1.5 ms (+0.4 s first use)``."""
        whole = self.stats.seconds
        once = min(self.stats.first_use, whole)
        later = f" (+{duration(once)} first use)" if once > 0.05 * whole else ""
        return duration(whole - once) + later

    def quantities(self, t: Any = None) -> list[Quantity]:
        """Everything that has a name, at the output points or at the times `t`; computed when it is asked for."""
        raise NotImplementedError

    @property
    def attributes(self) -> dict[str, Any]:
        """Notes of your own, which tables and files keep."""
        return self.__dict__.setdefault("_attributes", {})

    @attributes.setter
    def attributes(self, notes: dict[str, Any]):
        self.__dict__["_attributes"] = dict(notes)

    def __getitem__(self, name: str) -> np.ndarray:
        """A quantity at the output points, by its name: a variable, a derivative, a multiplier, a constraint, ..."""
        return row_named(self.quantities(), name)

    # --- tables -------------------------------------------------------------------------------------------------------

    def to_dataframe(self, columns: Any = None, *, t: Any = None):
        """The solution as a :class:`pandas.DataFrame`, with the times as its index.

        Parameters
        ----------
        columns : str or sequence of str, optional
            Names of quantities; by default variables, derivatives, multipliers, drift and energy, where they exist.
        t : array, optional
            Times, for values from the dense output; the output points by default.

        Examples
        --------
        >>> import daedal
        >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], names=["x"], rtol=1e-9)
        >>> print(sol.to_dataframe(t=[0.0, 0.5, 1.0]).round(4))  # doctest: +NORMALIZE_WHITESPACE
                  x      x'
        t
        0.0  1.0000 -1.0000
        0.5  0.6065 -0.6065
        1.0  0.3679 -0.3679
        """
        from daedal.solution.frames import dataframe

        return dataframe(self._times(t), self._columns(columns, t), self._described())

    def to_xarray(self, *, t: Any = None):
        """The solution as an :class:`xarray.Dataset`: ``y`` over ``variable`` and ``t``, ``lam`` over ``constraint``.

        Parameters
        ----------
        t : array, optional
            Times, for values from the dense output; the output points by default.

        Examples
        --------
        >>> import daedal
        >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], names=["x"], rtol=1e-9)
        >>> print(f"{float(sol.to_xarray().y.sel(variable='x')[-1]):.4f}")
        0.3679
        """
        from daedal.solution.frames import dataset

        shown = [quantity for quantity in self.quantities(t) if quantity.in_tables]
        return dataset(self._times(t), shown, self._further_columns(t), self._described())

    def to_csv(self, path: str | Path | None = None, columns: Any = None, *, t: Any = None) -> str:
        """The solution as comma-separated values, all digits kept; written to `path` if one is given.

        `columns` and `t` are those of :meth:`to_dataframe`.
        """
        from daedal.solution.frames import comma_separated

        return comma_separated(self._times(t), self._columns(columns, t), path)

    def _columns(self, columns: Any, t: Any) -> dict[str, Any]:
        from daedal.solution.frames import columns_of

        further = self._further_columns(t) if columns is None else {}
        return further | columns_of(self.quantities(t), columns)

    def _further_columns(self, t: Any) -> dict[str, Any]:
        """Columns that are no numbers."""
        return {}

    def _times(self, t: Any) -> np.ndarray:
        return self.t if t is None else np.atleast_1d(np.asarray(t, dtype=float))

    def _described(self) -> dict[str, Any]:
        """What tables say of the run."""
        kept = {name: getattr(self, name, None) for name in ("method", "formulation", "status", "message")}
        return {name: text for name, text in kept.items() if text} | self.attributes

    # --- events -------------------------------------------------------------------------------------------------------

    @property
    def t_events(self) -> list[np.ndarray]:
        """The times at which each of the given events fired, as SciPy has them; an empty array for one that did not."""
        return [np.array([event.t for event in fired], dtype=float) for fired in self._fired()]

    @property
    def y_events(self) -> list[np.ndarray]:
        """The states there, a row for each."""
        return [np.array([event.y for event in fired], dtype=float) for fired in self._fired()]

    def _fired(self) -> list[list[Any]]:
        own = [event for event in self.events if event.kind == "event"]
        return [[event for event in own if event.index == i] for i in range(len(self.event_names))]

    # --- files --------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the solution to a file that :func:`daedal.load` reads: an archive of NumPy arrays (.npz), no code.

        What the functions of the problem are needed for is computed now. Returns the path, which ends in ``.npz``.
        """
        from daedal.solution.file import save

        return save(self, path)
