"""One-line and tabular descriptions of problems, for notebooks."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from daedal.common.tabular import Tabular, plural
from daedal.problems.symbols import Driven, given_params, named_params

_MOST_NAMED = 12
_SIZES = {
    "n_constraints": "constraints",
    "n_velocity_constraints": "velocity constraints",
    "n_z": "algebraic variables",
}


def titled(title: str, table: Tabular) -> str:
    """A table with a heading, as HTML; both are escaped."""
    from markupsafe import Markup

    return str(Markup("<p><strong>{}</strong></p>{}").format(title, table))


def problem_html(problem: Any) -> str:
    """Class, unknowns, constraints, functions and parameters of a problem."""
    return titled(type(problem).__name__, Tabular("ll", problem_rows(problem)))


def problem_line(problem: Any) -> str:
    """One-line description, for ``repr``."""
    parts = []
    for what, shown in problem_rows(problem):
        count, _, names = shown.partition(": ")
        if not count.isdecimal():
            parts.append(f"{what} {shown}")
        else:
            parts.append(plural(int(count), what.removesuffix("s")) + (f" ({names})" if names else ""))
    return f"<{type(problem).__name__}: {'; '.join(parts)}>"


def problem_rows(problem: Any) -> list[tuple[str, str]]:
    """The rows of the table."""
    n = getattr(problem, "n_q", problem.n)
    what = "coordinates" if hasattr(problem, "n_q") else "unknowns"
    rows = [(what, _listed(n, [problem.label(i) for i in range(min(n, _MOST_NAMED))]))]
    for name, words in _SIZES.items():
        if count := getattr(problem, name, 0):
            names = list(getattr(problem, "constraint_names", None) or ()) if name == "n_constraints" else []
            rows.append((words, _listed(count, names[:count][:_MOST_NAMED])))
    made = {"residual"} if hasattr(problem, "f") else set()  # residual assembled from M and f
    given = [
        field.name for field in fields(problem) if callable(getattr(problem, field.name)) and field.name not in made
    ]
    rows.append(("functions", ", ".join(given) or "constants"))
    if getattr(problem, "bandwidth", None) is not None:
        rows.append(("structure", "banded, {} below and {} above the diagonal".format(*problem.bandwidth)))
    elif getattr(problem, "sparsity", None) is not None:
        rows.append(("structure", f"sparse, {problem.sparsity.nnz} entries"))
    return rows + parameter_rows(problem.params)


def parameter_rows(params: Any) -> list[tuple[str, str]]:
    """One row describing the parameters; empty if there are none."""
    driven, params = params if isinstance(params, Driven) else None, given_params(params)
    rows = [] if driven is None else [("inputs", _shown(driven.inputs))]
    if params is None:
        return rows
    named = named_params(params)
    shown = _short(params) if named is None else _shown(named)
    return [("parameters", shown), *rows]


def _shown(named: Mapping[Any, Any]) -> str:
    return ", ".join(f"{key} = {_short(value)}" for key, value in named.items())


def _listed(count: int, names: Sequence[str]) -> str:
    if not names:
        return str(count)
    return f"{count}: {', '.join(names)}" + (", ..." if count > len(names) else "")


def _short(value: Any) -> str:
    import reprlib

    return reprlib.repr(value)
