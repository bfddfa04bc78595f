"""Compiled code on disk: its stamp covers all sources that it may contain, and damaged files are compiled anew."""

import importlib.util
from pathlib import Path

import pytest

import daedal
from daedal.kernels.cache import say_once
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


# --- files that are damaged ---


@pytest.fixture
def loaded(tmp_path):
    """Loads a module with one kernel, as a new process would; the compiled code lies beside it."""
    place = tmp_path / "with_kernel.py"
    place.write_text("from daedal.kernels.compilation import kernel\n\n@kernel\ndef doubled(x):\n    return 2.0 * x\n")

    def load():
        spec = importlib.util.spec_from_file_location("with_kernel", place)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.doubled

    say_once.cache_clear()
    return load


def _cut(content):
    return content[: len(content) // 2]


def _flipped(content):
    """Wrong bytes in the middle: in the names of an index, or in machine code."""
    middle = len(content) // 2
    return content[:middle] + bytes(255 - byte for byte in content[middle : middle + 64]) + content[middle + 64 :]


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", [_cut, _flipped, lambda content: b"", lambda content: b"no pickle at all" * 9])
def test_a_damaged_file_of_the_cache_is_written_anew(loaded, tmp_path, capfd, damage, suffix):
    assert loaded()(3.0) == 6.0
    [file] = tmp_path.rglob(f"*{suffix}")
    file.write_bytes(damage(file.read_bytes()))
    again = loaded()
    assert again(3.0) == 6.0
    assert sum(again.stats.cache_hits.values()) == 0
    assert "Traceback" not in capfd.readouterr().err
    repaired = loaded()
    assert repaired(3.0) == 6.0
    assert sum(repaired.stats.cache_hits.values()) == 1


def test_the_message_names_the_damaged_file(loaded, tmp_path, capfd):
    loaded()(3.0)
    [file] = tmp_path.rglob("*.nbc")
    file.write_bytes(_cut(file.read_bytes()))
    loaded()(3.0)
    assert f"was damaged ({file})" in capfd.readouterr().err


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_cache_that_can_neither_be_read_nor_written_is_done_without(loaded, tmp_path, capfd, suffix):
    loaded()(3.0)
    [file] = tmp_path.rglob(f"*{suffix}")
    file.unlink()
    file.mkdir()  # what opens for nobody, whoever runs the tests
    assert loaded()(3.0) == 6.0
    assert "compiled anew" in capfd.readouterr().err
