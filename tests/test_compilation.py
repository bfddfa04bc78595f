"""The stamp of cached kernels covers all sources whose code they may contain."""

from pathlib import Path

import pytest

import daedal
from daedal.kernels.compilation import source_stamp, sources

PACKAGE = Path(daedal.__file__).parent


def names(path):
    return {str(file.relative_to(PACKAGE)) for file in sources(PACKAGE / path)}


def test_the_sources_of_the_linear_algebra_are_complete():
    found = names("kernels/linear.py")
    assert {"kernels/linear.py", "kernels/matrix.py", "kernels/gmres.py", "kernels/dense.py"} <= found


def test_the_sources_of_a_step_reach_into_other_rooms():
    found = names("methods/half_explicit_step.py")
    assert {"mechanics/augmented.py", "kernels/records.py", "methods/one_step.py", "kernels/endings.py"} <= found


@pytest.mark.parametrize(
    "statement",
    [
        "import tiny.room.other",
        "from tiny.room import other",
        "from tiny.room.other import value",
        "from tiny.room.other import (\n    value,\n    second,\n)",
        "from . import other",
        "from .other import value",
        "from ..room import other",
        "from ..room.other import value",
        "from tiny import room",
        "from .between import value",
    ],
)
def test_every_form_of_import_is_followed(tmp_path, statement):
    package = tmp_path / "tiny"
    room = package / "room"
    room.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    whole_room = statement == "from tiny import room"
    (room / "__init__.py").write_text("from tiny.room.other import value\n" if whole_room else "")
    (room / "other.py").write_text("value = second = 1\n")
    (room / "between.py").write_text("from tiny.room.other import value\n")
    (room / "kernel.py").write_text(f'"""Text.\n\nfrom here on, prose.\n"""\n\nimport numpy as np\n{statement}\n')
    assert room / "other.py" in sources(room / "kernel.py", package)


def test_the_stamp_changes_with_an_import(tmp_path):
    stamps = []
    for value in (1, 1, 2):
        package = tmp_path / str(len(stamps)) / "tiny"
        package.mkdir(parents=True)
        (package / "kernel.py").write_text("from tiny import other\n")
        (package / "other.py").write_text(f"value = {value}\n")
        stamps.append(source_stamp(package / "kernel.py", package))
    assert stamps[0] == stamps[1] != stamps[2]
