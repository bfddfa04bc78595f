"""Content of a figure: selection and grouping of variables, times and axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import daedal
from daedal.common.messages import unknown_name

FEW = 8  # number of variables up to which all are shown
HANDFUL = 6  # number of variables selected from more than FEW; largest number in a panel
SMALLEST_SHARE = 0.08  # fraction of the height of a shared panel that each variable must fill
SMOOTH = 800  # number of points of a smooth curve
DRIFT_POINTS = 400  # largest number of points at which drift is computed
ROUND_OFF = 1e-16  # residuals below this value are drawn at this value
EXACT = 1e-14  # residuals up to this value are not drawn
_MOST_SEGMENTS = 2000  # number of segments up to which dense output is used
_NO_JUMP = 1e-3  # changes between segments up to this fraction of the range of a curve are no jumps


@dataclass(frozen=True)
class CurveGroup:
    """Curves of one kind, such as positions or multipliers, which do not share panels with other kinds."""

    kind: str  # "" if the problem class has no kinds
    names: list[str]
    t: np.ndarray
    curves: np.ndarray


# --- available curves -------------------------------------------------------------------------------------------------


def blocks_of(
    sol: daedal.Solution, variables: Any, scale: str, multipliers: bool | None, drift: bool | None
) -> tuple[list[CurveGroup], str]:
    """Curves to show, by default those of the problem class, and a note if some are omitted."""
    everything = variables is None
    wanted = wishes(variables) or []
    asked = multipliers or any(isinstance(name, str) and name not in sol.names for name in wanted)
    # multipliers are computed on access, so they are accessed only if they may be shown
    known = multiplier_names(sol) if asked or (everything and multipliers is None) else []
    chosen: list[tuple[str, list[int]]] = []
    forces: list[Any] = []
    others: list[str] = []
    notes: list[str] = []
    if everything:
        kinds = kinds_of(sol)
        for kind, rows in kinds:
            picked, note = select_variables(sol, among=rows)
            chosen.append((kind, picked))
            notes += [note.replace("variables", kind or "variables")] * bool(note)
        forces = [known[i] for i in _spread(np.arange(len(known)))]
    else:
        forces = [name for name in wanted if name in known and name not in sol.names]
        others = quantity_names(sol, [name for name in wanted if name not in forces])
        states = [name for name in wanted if name not in (*forces, *others)]
        if states or not wanted:
            chosen.append(("", select_variables(sol, states)[0]))
        if multipliers and not forces:
            forces = known
    blocks = []
    if chosen:
        t, values = sample(sol, [row for _, rows in chosen for row in rows], scale)
        parts = np.split(values, np.cumsum([len(rows) for _, rows in chosen])[:-1])
        for (kind, rows), part in zip(chosen, parts, strict=True):
            blocks.append(CurveGroup(kind, [sol.names[row] for row in rows], t, part))
    if others:
        blocks.append(_quantities(sol, others))
    if multipliers and not known:
        raise daedal.InvalidProblemError(
            "multipliers=True: the solution has no multipliers in addition to its variables"
        )
    if forces:
        t, values = sample_multipliers(sol)
        blocks.append(CurveGroup("multipliers", forces, t, values[[known.index(name) for name in forces]]))
        if everything and len(forces) < len(known):
            notes.append(f"{len(forces)} of {len(known)} multipliers shown")
    if drift or (drift is None and everything):
        found = drift_over_time(sol)
        if found is not None and not drift and np.all(found.curves <= EXACT):
            notes.append("drift at round-off level")
        elif found is not None:
            blocks.append(found)
        elif drift:
            raise daedal.InvalidProblemError(
                "drift=True: constraint residuals over time are not available. They require a mechanical system or a "
                "HessenbergDAE, and a formulation whose first unknowns are the variables"
            )
    return blocks, "; ".join(notes)


def wishes(variables: Any, further: Sequence[Any] = ()) -> list[Any] | None:
    """Variables requested as a list or as separate arguments; None if no variables are requested."""
    if variables is None and not further:
        return None
    return [*([variables] if isinstance(variables, (str, int, np.integer)) else list(variables or ())), *further]


def quantity_names(sol: Any, names: Sequence[Any]) -> list[str]:
    """The names that are not variables but quantities accepted by ``sol[name]``."""
    if all(name in sol.names for name in names if isinstance(name, str)):
        return []
    known = {name for quantity in sol.quantities() for name in quantity.names} - set(sol.names)
    return [name for name in names if name in known]


def _quantities(sol: Any, names: list[str]) -> CurveGroup:
    """Quantities by name, from dense output if there are few points, otherwise at the stored points."""
    t = None
    if sol.dense is not None and 1 < sol.t.size < SMOOTH // 2:
        t = _with_few_points(sol)
        known = {name for quantity in sol.quantities(t[:1]) for name in quantity.names}
        t = t if known.issuperset(names) else None
    return CurveGroup("", names, sol.t if t is None else t, quantity_rows(sol.quantities(t), names))


def quantity_rows(quantities: Sequence[Any], names: Sequence[str]) -> np.ndarray:
    """Rows of quantities, by name."""
    found: dict[str, np.ndarray] = {}
    for quantity in quantities:
        if wanted := [name for name in quantity.names if name in names and name not in found]:
            values = quantity.rows()
            found |= {name: values[quantity.names.index(name)] for name in wanted}
    return np.array([found[name] for name in names])


def kinds_of(sol: Any) -> list[tuple[str, list[int]]]:
    """Rows of ``sol.y`` by kind; the kind is "" for problem classes without kinds."""
    n = sol.y.shape[0]
    kinds: dict[str, Sequence[int]]
    if isinstance(sol, daedal.MechanicalSolution):
        kinds = {
            "positions": range(sol.n_q),
            "velocities": range(sol.n_q, 2 * sol.n_q),
            "states": range(2 * sol.n_q, n),
        }
    elif isinstance(sol, daedal.SecondOrderSolution):
        n_x = sol.x.shape[0]
        second = {i for i in range(n_x) if f"{sol.names[i]}'" in sol.names}
        first = {i for i in range(n_x) if i not in second and np.any(sol.xp[i] != 0.0)}
        kinds = {
            "positions": sorted(second),
            "velocities": range(n_x, n),
            "states": sorted(first),
            "multipliers": [i for i in range(n_x) if i not in first | second],
        }
    elif isinstance(sol, daedal.HybridSolution):
        rates = [i for i in range(n) if sol.names[i].endswith("'") and sol.names[i][:-1] in sol.names]
        moving = [sol.names.index(sol.names[i][:-1]) for i in rates]
        others = [i for i in range(n) if i not in (*moving, *rates)]
        kinds = {"positions": moving, "velocities": rates, "states" if rates else "": others}
    elif sol.n_differential:
        kinds = {"states": range(sol.n_differential), "algebraic": range(sol.n_differential, n)}
    else:
        kinds = {"": range(n)}
    return [(kind, list(rows)) for kind, rows in kinds.items() if len(rows)]


def multiplier_names(sol: Any) -> list[str]:
    """Names of the rows of ``sol.lam``, from constraint names or indices; empty without multipliers."""
    if not hasattr(sol, "lam"):
        return []
    count = sol.lam.shape[0]
    if given := getattr(sol, "constraint_names", ()):
        return [f"lambda_{name}" if name.isalnum() else f"\N{GREEK SMALL LETTER LAMDA} {name}" for name in given]
    return ["lambda"] if count == 1 else [f"lambda{i + 1}" for i in range(count)]


def _with_few_points(sol: Any) -> np.ndarray:
    """The stored times, together with evenly spaced times for a smooth curve."""
    low, high = sol.dense.interval
    return np.unique(np.concatenate([np.linspace(low, high, SMOOTH // 2), np.clip(sol.t, low, high)]))


def sample_multipliers(sol: Any) -> tuple[np.ndarray, np.ndarray]:
    """Times and multipliers, from dense output if there are few points, otherwise at the stored points."""
    if isinstance(sol, daedal.MechanicalSolution) and sol.dense is not None and 1 < sol.t.size < SMOOTH // 2:
        t = _with_few_points(sol)
        return t, sol(t).lam
    return sol.t, sol.lam


def drift_over_time(sol: Any) -> CurveGroup | None:
    """Largest constraint residuals over time, before projection of the results; None if unknown."""
    raw, n = getattr(sol, "raw", None), len(sol.names)
    if raw is None or raw.names[:n] != tuple(sol.names) or not raw.t.size or not sol.lam.shape[0]:
        return None
    points = np.unique(np.linspace(0, raw.t.size - 1, min(DRIFT_POINTS, raw.t.size)).round().astype(int))
    found = [sol.drift_at(raw.t[k], raw.y[:n, k]) for k in points]
    if found[0] is None:  # stored solution
        return _stored_drift(sol)
    names = list(found[0])
    curves = np.array([[max(one[name], ROUND_OFF) for one in found] for name in names])
    return CurveGroup("drift", names, raw.t[points], curves)


def _stored_drift(sol: Any) -> CurveGroup | None:
    """Stored constraint residuals at the output points; None if there are none."""
    levels = [name for name in sol.drift if not name.endswith("before projection")]
    for quantity in sol.drift_quantities():
        return CurveGroup("drift", levels, sol.t, np.maximum(quantity.rows(), ROUND_OFF))
    return None


# --- selection --------------------------------------------------------------------------------------------------------


def select_variables(
    sol: daedal.Solution, variables: Any = None, among: Sequence[int] | None = None
) -> tuple[list[int], str]:
    """Rows of ``sol.y`` to show, and a note if these are an automatic selection.

    If there are many variables, the default is a selection, evenly spread over those that change and differ.
    """
    rows = np.arange(sol.y.shape[0]) if among is None else np.array(among)
    n = rows.size
    if variables is not None:
        wanted = [variables] if isinstance(variables, (str, int, np.integer)) else list(variables)
        if not wanted:
            raise daedal.InvalidProblemError("variables is empty; pass at least one variable")
        return [_row(sol, variable) for variable in wanted], ""
    if n <= FEW:
        return rows.tolist(), ""
    picked = _spread(rows[_distinct(sol.y[rows])], HANDFUL)
    return picked, f"{len(picked)} of {n} variables shown"


def _spread(pool: np.ndarray, many: int = FEW) -> list[int]:
    """All rows if there are at most `many`, otherwise HANDFUL of them, evenly spread."""
    if pool.size <= many:
        return [int(row) for row in pool]
    return [int(row) for row in pool[np.linspace(0, pool.size - 1, HANDFUL).round().astype(int)]]


def _distinct(y: np.ndarray, candidates: int = 200, times: int = 100) -> np.ndarray:
    """Evenly spread rows that change and differ from one another; if no row changes, rows that differ."""
    low, high = _extremes(y)
    changing = np.flatnonzero(high - low > _rounding(low, high))
    pool = changing if changing.size else np.arange(y.shape[0])
    pool = pool[np.linspace(0, pool.size - 1, min(candidates, pool.size)).round().astype(int)]
    columns = np.linspace(0, y.shape[1] - 1, min(times, y.shape[1])).round().astype(int)
    looks = y[np.ix_(pool, columns)]
    kept: list[int] = []
    for k, row in enumerate(pool):
        near = 0.01 * (high[row] - low[row])
        if not kept or np.min(np.max(np.abs(looks[kept] - looks[k]), axis=1)) > near:
            kept.append(k)
    return pool[kept]


def _row(sol: daedal.Solution, variable: Any) -> int:
    n = sol.y.shape[0]
    if isinstance(variable, (int, np.integer)) and not isinstance(variable, bool):
        if not -n <= variable < n:
            raise daedal.InvalidProblemError(f"there is no variable {variable}; variables are numbered 0 to {n - 1}")
        return int(variable) % n
    if variable in sol.names:
        return sol.names.index(variable)
    if isinstance(variable, str) and variable.lower().endswith((".png", ".pdf", ".svg", ".jpg")):
        raise daedal.InvalidProblemError(
            f"{variable!r} is not a variable. Remedy: to save the figure, pass save={variable!r}"
        )
    raise unknown_name(variable, sol.names)


def time_scale(t: np.ndarray) -> str:
    """``"log"`` if most points are close to 0 and span several decades, otherwise ``"linear"``."""
    positive = t[t > 0.0]
    if positive.size < 20 or t[0] < 0.0 or positive.size < t.size - 1 or t[-1] <= t[0]:
        return "linear"
    crowded = np.median(positive) < 0.01 * positive[-1]
    return "log" if crowded and positive[-1] > 1e4 * positive[0] else "linear"


def share_panels(curves: np.ndarray) -> list[list[int]]:
    """Divide the rows of `curves` into panels in which the changes of all curves are visible.

    Changes at round-off level are ignored.
    """
    low, high = _extremes(curves)
    ranges = high - low
    rounding = _rounding(low, high)
    panels: list[list[int]] = []
    for row in range(curves.shape[0]):
        for panel in panels:
            together = [*panel, row]
            height = np.max(high[together]) - np.min(low[together])
            seen = ranges[together] >= SMALLEST_SHARE * height
            flat = ranges[together] <= rounding[together]
            if len(panel) < HANDFUL and np.all(seen | flat):
                panel.append(row)
                break
        else:
            panels.append([row])
    return panels


def _extremes(curves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest finite value of each row; 0 if no value is finite."""
    finite = np.isfinite(curves)
    low = np.min(np.where(finite, curves, np.inf), axis=1)
    high = np.max(np.where(finite, curves, -np.inf), axis=1)
    known = finite.any(axis=1)
    return np.where(known, low, 0.0), np.where(known, high, 0.0)


def _rounding(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Largest change of each variable that counts as round-off, from its size and the changes of all variables."""
    return np.maximum(1e-9 * np.maximum(np.abs(low), np.abs(high)), 1e-14 * np.max(high - low))


def sample(sol: daedal.Solution, rows: Sequence[int], scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of smooth curves, from dense output if available, otherwise the stored points."""
    if sol.dense is None or sol.t.size < 2:
        return sol.t, sol.y[list(rows)]
    low, high = sol.dense.interval  # excludes the rest of the last step after a terminal event
    steps = sol.t if sol.history is None else sol.history.t
    nodes = np.unique(np.clip(np.concatenate([[low, high], sol.t, steps]), low, high))
    if scale == "log":
        nodes = nodes[nodes > 0.0]
    pieces = max(1, -(-SMOOTH // nodes.size))
    fractions = np.arange(pieces) / pieces
    if scale == "log":
        between = nodes[:-1, None] * (nodes[1:] / nodes[:-1])[:, None] ** fractions
    else:
        between = nodes[:-1, None] + np.diff(nodes)[:, None] * fractions
    times = np.append(between.ravel(), nodes[-1])
    plain = isinstance(sol, daedal.MechanicalSolution)  # without projection
    return times, (daedal.Solution.__call__(sol, times) if plain else sol(times))[list(rows)]


def logarithmic_part(t: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """Mask of the times shown on a logarithmic axis, which starts a decade before the first visible change."""
    positive = t > 0.0
    low, high = _extremes(curves)
    start = curves[:, np.argmax(positive)]
    moved = positive & np.any(np.abs(curves - start[:, None]) > 0.005 * (high - low)[:, None], axis=0)
    return positive & (t >= 0.1 * t[np.argmax(moved)]) if moved.any() else positive


# --- hybrid solutions -------------------------------------------------------------------------------------------------


def sample_segments(sol: daedal.HybridSolution, rows: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of smooth curves, NaN at jumps between segments."""
    dense = [segment for segment in sol.segments if segment.solution.dense is not None and segment.t0 != segment.t1]
    if not dense or len(dense) > _MOST_SEGMENTS:
        return sol.t, sol.y[list(rows)]
    length = abs(sol.segments[-1].t1 - sol.segments[0].t0)
    times, values, gaps = [], [], []
    for segment in dense:
        share = abs(segment.t1 - segment.t0) / length
        t = np.linspace(segment.t0, segment.t1, max(8, round(SMOOTH * share)))
        found = segment.values(t)
        block = np.full((len(rows), t.size + 1), np.nan)
        for k, row in enumerate(rows):
            if sol.names[row] in segment.names:
                block[k, :-1] = found[segment.names.index(sol.names[row])]
        times.append(np.append(t, t[-1]))
        values.append(block)
        gaps.append(t.size + 1)
    joined = np.concatenate(values, axis=1)
    _close_gaps(joined, np.cumsum(gaps)[:-1] - 1)
    return np.concatenate(times), joined


def segment_multipliers(sol: daedal.HybridSolution) -> list[CurveGroup]:
    """Multipliers of all segments by name, NaN in modes without them; empty if there are none."""
    pairs = [(segment, segment.solution) for segment in sol.segments if segment.t0 != segment.t1]
    segments = [(segment, own) for segment, own in pairs if isinstance(own, daedal.MechanicalSolution)]
    if not segments or len(segments) > _MOST_SEGMENTS:
        return []
    parts = []
    length = abs(sol.segments[-1].t1 - sol.segments[0].t0)
    for segment, own in segments:
        low, high = sorted((segment.t0, segment.t1))
        t, lam = own.t[(own.t >= low) & (own.t <= high)], own.lam[:, (own.t >= low) & (own.t <= high)]
        if own.dense is not None and t.size < (smooth := max(8, round(0.5 * SMOOTH * (high - low) / length))):
            t = np.linspace(segment.t0, segment.t1, smooth)
            lam = own(t).lam
        names, shown = multiplier_names(own), sol.shown_multipliers(segment)
        parts.append((t, {names[i] if len(names) == len(shown) else own.multiplier_names[i]: lam[i] for i in shown}))
    names = list(dict.fromkeys(name for _, rows in parts for name in rows))[:HANDFUL]
    if not names:
        return []
    t = np.concatenate([np.append(times, np.nan) for times, _ in parts])
    curves = [
        np.concatenate([np.append(rows.get(name, np.full(times.size, np.nan)), np.nan) for times, rows in parts])
        for name in names
    ]
    return [CurveGroup("multipliers", names, t, np.array(curves))]


def derived_quantities(sol: daedal.HybridSolution) -> list[CurveGroup]:
    """Quantities computed by the model in addition to the variables, such as friction forces; empty if none."""
    known = [name for quantity in sol.quantities() for name in quantity.names if name in sol.derived_names]
    return [CurveGroup("forces", known, sol.t, quantity_rows(sol.quantities(), known))] if known else []


def _close_gaps(curves: np.ndarray, gaps: np.ndarray) -> None:
    """Fill gaps between segments where a curve has no jump."""
    before, after = curves[:, gaps - 1], curves[:, gaps + 1]
    with np.errstate(invalid="ignore"):
        joined = np.abs(after - before) <= _NO_JUMP * (np.nanmax(curves, axis=1) - np.nanmin(curves, axis=1))[:, None]
    curves[:, gaps] = np.where(joined, before, np.nan)
