"""Solutions as files: what is written of each class, and the way back."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from daedal.errors import InvalidFileError, InvalidProblemError
from daedal.solution import archive
from daedal.solution.schema import Arrays, Format, Plain, RecordFormat, expect, is_plain

FORMAT = "daedal solution"
VERSION = 1
_LAYOUTS = {  # the classes that a file may hold: the module with the layout of each
    "Solution": "daedal.solution.solution_layout",
    "SecondOrderSolution": "daedal.solution.solution_layout",
    "MechanicalSolution": "daedal.solution.solution_layout",
    "HessenbergSolution": "daedal.solution.solution_layout",
    "RecognisedSolution": "daedal.index.reduction.recognised_layout",
    "HybridSolution": "daedal.hybrid.solution_layout",
    "KinematicSolution": "daedal.solution.machine_record",
    "Ensemble": "daedal.ensembles.ensemble",
}
_KEYS = ("format", "version", "daedal", "class", "solution", "params", "attributes")


def layout_of(name: str) -> RecordFormat:
    """What is written of a class of solutions."""
    return import_module(_LAYOUTS[name]).LAYOUTS[name]


def save(solution: Any, path: str | Path) -> Path:
    """Write a solution to a file; see :meth:`daedal.Solution.save`."""
    target = _checked_path(path)
    name = type(solution).__name__
    if name not in _LAYOUTS:
        raise InvalidProblemError(f"a {name} cannot be saved; {', '.join(_LAYOUTS)} can")
    if not is_plain(solution.attributes):
        raise InvalidProblemError(
            "attributes must hold numbers, texts, arrays, and lists and mappings (with texts as keys) of them"
        )
    arrays = archive.ArraysToWrite()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "daedal": import_module("daedal").__version__,
        "class": name,
        "solution": layout_of(name).encode(solution, "", arrays),
        "params": Plain().encode(solution.params if is_plain(solution.params) else None, "params", arrays),
        "attributes": Plain().encode(solution.attributes, "attributes", arrays),
    }
    archive.write(target, header, arrays.members)
    return target


def load(path: str | Path) -> Any:
    """Read a solution or an ensemble from a file that ``sol.save(path)`` has written.

    The file holds numbers and words, and nothing of it is run. The solution has the same values, names, events and
    statistics, and is asked and plotted in the same way, without the functions of the problem.

    Parameters
    ----------
    path : path

    Returns
    -------
    Solution or Ensemble
        Of the class that was saved.

    Raises
    ------
    InvalidFileError
        If the file is damaged, of a newer version, or not of Daedal; the message says what is wrong.

    Examples
    --------
    >>> import daedal
    >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], names=["x"])
    >>> again = daedal.load(sol.save("decay.npz"))
    >>> bool(again["x"][-1] == sol["x"][-1] and again(0.5) == sol(0.5))
    True
    """
    source = Path(path)
    try:
        header, members = archive.read(source)
        return _solution(header, members)
    except InvalidFileError as error:
        raise InvalidFileError(f"{source} cannot be read: {error}") from error
    except RecursionError as error:
        raise InvalidFileError(f"{source} cannot be read: its header is nested too deeply") from error


def _solution(header: dict[str, Any], members: dict[str, Any]) -> Any:
    expect(header.get("format") == FORMAT, "", "says that this is no solution of Daedal")
    version = header.get("version")
    expect(isinstance(version, int) and not isinstance(version, bool), "", "names no version of the format")
    if version != VERSION:
        raise InvalidFileError(
            f"it has version {version} of the format, and this Daedal reads version {VERSION}; "
            "a newer Daedal may read it: pip install --upgrade daedal"
        )
    expect(set(header) == set(_KEYS), "", "does not have the parts of a solution")
    name = header["class"]
    expect(isinstance(name, str) and name in _LAYOUTS, "", f"names the class {str(name)[:40]!r}, which is no solution")
    arrays = archive.ArraysThatWereRead(members)
    solution = layout_of(name).decode(header["solution"], "", arrays, {})
    solution.params = Plain().decode(header["params"], "params", arrays, {})
    attributes = Plain().decode(header["attributes"], "attributes", arrays, {})
    expect(isinstance(attributes, dict), "attributes", "is no mapping")
    solution.attributes = attributes
    return solution


def _checked_path(path: str | Path) -> Path:
    target = Path(path)
    if target.suffix == "":
        return target.with_name(f"{target.name}.npz")
    if target.suffix.lower() != ".npz":
        raise InvalidProblemError(
            f"path={str(path)!r} must end in .npz; for other programs there are sol.to_csv(path), sol.to_dataframe() "
            "and sol.to_xarray()"
        )
    return target


class AnySolution(Format):
    """A solution of one of some classes, inside another."""

    def __init__(self, *classes: str):
        self._classes = classes

    def encode(self, value, path: str, arrays: Arrays):
        """Its class and its layout."""
        name = type(value).__name__
        return {"class": name, "solution": layout_of(name).encode(value, f"{path}/solution", arrays)}

    def decode(self, data, path, arrays, sizes):
        """The solution again."""
        expect(isinstance(data, dict) and set(data) == {"class", "solution"}, path, "is no solution")
        expect(data["class"] in self._classes, path, f"is not one of {', '.join(self._classes)}")
        return layout_of(data["class"]).decode(data["solution"], f"{path}/solution", arrays, {})
