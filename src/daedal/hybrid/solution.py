"""What came out of a run through modes."""

from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.tabular import plural
from daedal.errors import InvalidProblemError
from daedal.hybrid.output import HybridOutput
from daedal.solution.machine_record import PartsOfMachine, RecordedMachine, joined
from daedal.solution.solution import History


class HybridSolution(PartsOfMachine, HybridOutput):
    r"""The solution of a :class:`HybridProblem`.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
        The output times. Without `t_eval` those of transitions stand twice: before and after.
    mode : numpy.ndarray of str, shape (nt,)
        The mode at each of them; ``mode_index`` is its number in `modes`.
    y : numpy.ndarray, shape (n, nt)
        The variables, named by `names`; nan where the mode does not have a variable.
    q, v, a, lam : numpy.ndarray
        Positions, velocities, accelerations and multipliers, if all modes are mechanical systems with as many
        coordinates; multipliers that a mode does not have are nan.
    segments : list of HybridSegment
        The stretches between transitions, each with the solution of its mode. Not kept with `t_eval` and
        ``dense_output=False``.
    events : EventTable
        What happened, in order.
    n_events : int
        How many transitions were taken, recorded or not.
    success : bool
        Whether the end of the interval or a terminal event was reached.
    status : str
        ``"finished"``, ``"event"``, ``"interrupted"``, ``"zeno"``, ``"chattering"`` or ``"failed"``.
    message : str
        How it ended, in words.
    stats : Statistics
        Sums over all segments.
    drift : dict
        The largest residuals of the constraints over all segments.
    functions : dict
        For each mode that the run went through how its functions were evaluated.
    """

    @property
    def method(self) -> str:
        """The methods of all segments, each once; empty where the segments were not kept (``dense_output=False``)."""
        return ", then ".join(dict.fromkeys(segment.solution.method for segment in self.segments))

    @property
    def history(self) -> History | None:
        """The steps of all segments; None where these were not kept."""
        parts = [one for segment in self.segments if (one := segment.solution.history) is not None]
        if not parts:
            return None
        return History(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("t", "h", "order")))

    # --- contacts ---------------------------------------------------------------------------------------------------

    def contact(self, name: str, t: Any = None):
        """Gap, forces and state of a contact of :func:`daedal.unilateral`, at the output points or at the times `t`.

        Parameters
        ----------
        name : str
            Of the contact.
        t : array, optional
            Times in increasing order.

        Returns
        -------
        ContactHistory
            With `t`, `state` ("open", "closed", "stick", "slip+", "slip-"), `gap`, `normal`, `friction` and `slip`.
        """
        if self._contacts is None:
            raise InvalidProblemError("contact: the problem was not made by daedal.unilateral; it has no contacts")
        return self._contacts.history(self, name, t)

    @property
    def contact_lanes(self) -> dict[str, list[tuple[float, float, str]]]:
        """For each contact the stretches in which it is not open, with its state; empty without contacts."""
        return {} if self._contacts is None else self._contacts.lanes(self.segments)

    # --- of a machine made of bodies and joints ---------------------------------------------------------------------

    @cached_property
    def _results(self) -> Any:
        found: list[Any] = [getattr(segment.solution, "machine", None) for segment in self.segments]
        if not found or None in found:
            raise InvalidProblemError(
                "the solved modes were not made of bodies and joints, so nothing is known of them (see "
                "daedal.multibody), or the segments were not kept; call solve with dense_output=True"
            )
        if isinstance(found[0], RecordedMachine):
            return joined(found, self.points_of_segments)
        return found[0].results(self)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_results"}
        return kept | {"_contacts": self.stored_contacts(), "_derived": self.stored_derived()}

    def stored_contacts(self) -> Any:
        """What is known of contacts without the functions of their gaps; None without contacts."""
        return None if self._contacts is None else self._contacts.stored(self)

    def stored_derived(self) -> Any:
        """What the model computes beside the variables, without its functions."""
        return None if self._derived is None else self._derived.stored(self)

    @property
    def ends(self) -> np.ndarray:
        """The beginning of the run and the ends of all steps."""
        steps = [segment.solution.dense.ends for segment in self.segments if segment.solution.dense is not None]
        return np.concatenate([[self.segments[0].t0], *steps])

    def states(self, times: np.ndarray) -> np.ndarray:
        """(q, v, r) at `times`, in columns, if all modes are mechanical systems with as many coordinates."""
        return self(times).y

    @property
    def parts(self) -> Any:
        """Bodies, joints and forces of a machine."""
        return self._results

    # --- how it is shown --------------------------------------------------------------------------------------------

    def plot(self, *args: Any, **options: Any):
        """Plot the solution with its events and modes; see :func:`daedal.viz.plot_hybrid`."""
        from daedal.viz import plot_hybrid

        return plot_hybrid(self, *args, **options)

    def animate(self, path=None, drawing=None, **options: Any):
        """The motion as a player, which a notebook shows, or written to a page (.html) or a picture (.gif).

        See :func:`daedal.viz.animate`.
        The motion of a :class:`daedal.multibody.Model` is shown in space: see :meth:`daedal.multibody.Results.animate`.
        """
        if drawing is None and self.segments and getattr(self.segments[0].solution, "machine", None) is not None:
            return self._results.animate(path, **options)
        from daedal.viz import animate

        return animate(self, path, drawing, **options)

    def summary(self) -> list[tuple[str, str]]:
        """The rows of the small table shown for a solution."""
        run = self._run_in_words()
        return [
            ("status", self.status),
            ("time", run["time"]),
            ("modes", ", ".join(dict.fromkeys(self.mode.tolist()))),
            ("transitions", f"{self.n_events}"),
            *((name, run[name]) for name in ("steps", "evaluations", "seconds")),
            *self._functions_in_short(),
        ]

    def _functions_in_short(self) -> list[tuple[str, str]]:
        """How functions were evaluated; mode by mode, where it is not the same in all of them."""
        short = {mode: "; ".join(words for _, words in table.summary()) for mode, table in self.functions.items()}
        if len(set(short.values())) == 1:
            return [("functions", next(iter(short.values())))]
        return [("functions" if k == 0 else "", f"{mode}: {words}") for k, (mode, words) in enumerate(short.items())]

    @property
    def title(self) -> str:
        """What it is a solution of."""
        return f"Solution of a hybrid problem with {plural(len(self.modes), 'mode')}"
