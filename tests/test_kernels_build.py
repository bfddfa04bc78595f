"""Kernels as object code: how they are named, built, kept, loaded and called."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from conftest import one_at_a_time
from daedal.common import object_store
from daedal.kernels.building import KernelBuildError, build, missing
from daedal.kernels.levels import host_levels, shipped_levels
from daedal.kernels.sources import source_stamp, sources
from daedal.kernels.units import Compiled, all_units, find, key

PACKAGE = Path(daedal.__file__).parent

TINY = '''
"""A unit of its own."""
from daedal.kernels.compilation import entry, part
from daedal.kernels.signatures import boolean, f64, i64, void


@part
def _half(x):
    return 0.5 * x


@entry(f64(f64, i64))
def scaled(x, n):
    return _half(x) * n


@entry(f64(i64, f64, f64[:, :], i64[:], boolean[:], f64[:]))
def total(k, x, matrix, integers, flags, result):
    value = k * x
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            value += matrix[i, j] * (i + 1) * (j + 2)
    for i in range(integers.size):
        value += integers[i] if flags[i] else 0
    result[0] = value
    return value


@entry(void(f64[:]))
def double(x):
    for i in range(x.size):
        x[i] *= 2.0


@entry(boolean(i64))
def is_even(k):
    return k % 2 == 0
'''


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A folder with a unit, on the path, and an empty cache; runs code in a new process that imports the unit."""
    (tmp_path / "tiny_unit.py").write_text(TINY, encoding="utf-8")
    monkeypatch.setenv("DAEDAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))

    def start(code, **environment):
        whole = "import numpy as np, tiny_unit\n" + textwrap.dedent(code)
        return subprocess.Popen(
            [sys.executable, "-c", whole],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(code, **environment):
        process = start(code, **environment)
        out, err = process.communicate()
        assert process.returncode == 0, err
        return out, err

    run.start, run.folder = start, tmp_path / "cache"
    return run


@pytest.fixture(scope="session")
def tiny_code(shared_folder):
    """The folder with the code of the unit, compiled once for all processes of a test run."""
    place = shared_folder / "tiny"
    with one_at_a_time(shared_folder / "tiny.lock"):
        if not place.exists():
            part = shared_folder / "tiny-part"
            part.mkdir()
            (part / "tiny_unit.py").write_text(TINY, encoding="utf-8")
            paths = os.pathsep.join([str(part), os.environ.get("PYTHONPATH", "")])
            environment = {**os.environ, "DAEDAL_CACHE_DIR": str(part / "cache"), "PYTHONPATH": paths}
            subprocess.run([sys.executable, "-c", f"import tiny_unit\n{USE}"], env=environment, check=True)
            part.rename(place)
    return place / "cache"


@pytest.fixture
def compiled_tiny(tiny, tiny_code):
    """The same as `tiny`, where code is at hand: compiling is not what is tried."""
    shutil.copytree(tiny_code, tiny.folder)
    return tiny


USE = "print(tiny_unit.scaled(3.0, 5))"
MESSAGE = "daedal: compiling tiny_unit (once, about"


# --- what code is made from -------------------------------------------------------------------------------------------


def names(path):
    return {str(file.relative_to(PACKAGE)) for file in sources(PACKAGE / path)}


def test_the_sources_of_the_linear_algebra_are_complete():
    found = names("kernels/linear.py")
    assert {"kernels/linear.py", "kernels/matrix.py", "kernels/gmres.py", "kernels/dense.py"} <= found


def test_the_sources_of_a_step_reach_into_other_rooms():
    found = names("methods/half_explicit/half_explicit_step.py")
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


def test_keys_differ_by_unit_and_level():
    units = ["daedal.methods.one_step", "daedal.methods.advance"]
    found = {key(unit, level) for unit in units for level in shipped_levels(units[0])}
    assert len(found) == 2 * len(shipped_levels(units[0]))
    assert set(host_levels()) >= set(shipped_levels(units[0])[-1:])


# --- building and keeping ---------------------------------------------------------------------------------------------


def test_a_unit_is_compiled_once_and_then_loaded(tiny):
    out, err = tiny(USE)
    assert out == "7.5\n"
    assert MESSAGE in err
    out, err = tiny(USE + "\nimport sys; print('numba' in sys.modules)")
    assert (out, err) == ("7.5\nFalse\n", "")


def test_another_source_is_another_unit(compiled_tiny, tmp_path):
    assert compiled_tiny(USE)[0] == "7.5\n"
    (tmp_path / "tiny_unit.py").write_text(TINY.replace("0.5 * x", "0.25 * x"), encoding="utf-8")
    out, err = compiled_tiny(USE)
    assert out == "3.75\n"
    assert MESSAGE in err
    assert len(list(compiled_tiny.folder.glob("kernel-*.o"))) > 1


def _cut(content):
    return content[: len(content) // 2]


def _flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes(255 - byte for byte in content[middle : middle + 64]) + content[middle + 64 :]


@pytest.mark.parametrize("damage", [_cut, _flipped, lambda content: b"", lambda content: b"no code at all" * 9])
def test_damaged_code_is_made_again_and_the_file_is_named(compiled_tiny, damage):
    [file] = compiled_tiny.folder.glob("kernel-*.o")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    out, err = compiled_tiny(USE)
    assert out == "7.5\n"
    assert f"{file} is damaged" in err
    assert compiled_tiny(USE) == ("7.5\n", "")


@pytest.mark.parametrize("obstacle", ["a file in its place", "read-only", "no home"])
def test_where_nothing_can_be_kept_code_is_made_in_each_process(tiny, tmp_path, obstacle):
    place = tmp_path / "elsewhere"
    environment = {"DAEDAL_CACHE_DIR": str(place / "below")}
    if obstacle == "a file in its place":
        place.write_text("")
    elif obstacle == "read-only":
        if os.geteuid() == 0:
            pytest.skip("root may write everywhere")
        place.mkdir(mode=0o500)
    else:
        environment = {"DAEDAL_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": str(place / "nobody"), "USER": "nobody"}
        place.write_text("")
    out, err = tiny(USE, **environment)
    assert out == "7.5\n"
    assert "object code cannot be stored" in err
    assert "set DAEDAL_CACHE_DIR to a writable folder" in err


@pytest.mark.race
def test_processes_that_begin_at_once_compile_a_unit_once(tiny):
    running = [tiny.start(USE) for _ in range(8)]
    results = [process.communicate() for process in running]
    assert [out for out, _ in results] == ["7.5\n"] * 8
    assert sum(MESSAGE in err for _, err in results) == 1
    assert not list(tiny.folder.glob("*.lock"))


@pytest.mark.race
def test_a_process_that_was_killed_does_not_keep_others_waiting(tiny, tmp_path):
    tiny.folder.mkdir()
    code = "import daedal.kernels.building as b; b._STALE = 0.5; from daedal.kernels.units import key\n"
    code += "from daedal.kernels.levels import level_of_unit\nfrom pathlib import Path\n"
    code += f"Path({str(tiny.folder)!r}, key('tiny_unit', level_of_unit('tiny_unit')) + '.lock').touch()\n"
    out, _ = tiny(code + USE)
    assert out == "7.5\n"


REFUSED = {
    "allocates": ("result[:] = x\n    return np.zeros(3)[0]", "kernels do not allocate"),
    "makes a temporary array": ("result[:] = x * 2.0\n    return 0.0", "kernels do not allocate"),
    "raises": ("if x[0] > 1.0:\n        raise ValueError('large')\n    return 0.0", "may raise an exception"),
    "indexes a tuple": ("return (1.0, 2.0)[int(x[0])]", "may raise an exception"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_code_that_needs_more_than_memory_is_refused(tmp_path, monkeypatch, what):
    body, reason = REFUSED[what]
    source = (
        "import numpy as np\nfrom daedal.kernels.compilation import entry\nfrom daedal.kernels.signatures import f64\n"
    )
    source += f"\n\n@entry(f64(f64[:], f64[:]))\ndef function(x, result):\n    {body}\n"
    (tmp_path / "refused_unit.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("DAEDAL_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(KernelBuildError, match="refused_unit could not be compiled") as raised:
        build(["refused_unit"])
    assert reason in str(raised.value)


def test_without_numba_what_is_missing_is_named(tiny):
    code = "import importlib.util as u\nfind = u.find_spec\n"
    code += "u.find_spec = lambda name, *rest: None if name == 'numba' else find(name, *rest)\n"
    code += "try:\n    tiny_unit.scaled(3.0, 5)\nexcept Exception as error:\n    print(type(error).__name__, error)\n"
    out, _ = tiny(code)
    assert out.startswith("KernelBuildError this installation has no machine code for tiny_unit on this processor")
    assert "pip install numba" in out


def test_all_units_mention_only_what_everyone_has():
    units = all_units()
    assert len(units) > 50
    built = set(units) - set(missing(units))
    assert len(built) > 20
    for unit in built:
        compiled = find(unit)
        assert not [name for name in compiled.mentioned if name.lower().startswith(("py", "_py", "nrt", "numba"))]
        assert all(entry.startswith(f"{unit}.") for entry in compiled.entries)


def test_symbols_that_code_generation_adds_are_seen():
    from_object = find("daedal.methods.bdf.dassl_step").mentioned
    assert "pow" in from_object and "memset" in from_object


def test_a_unit_of_a_user_is_made_again_when_a_part_changes(tiny, tmp_path):
    part = tmp_path / "parts_of_mine.py"
    part.write_text("from daedal.kernels.compilation import part\n\n@part\ndef half(x):\n    return 0.5 * x\n")
    whole = TINY.replace("return _half(x) * n", "return half(x) * n") + "\n"
    first = "from daedal.kernels.compilation"
    whole = whole.replace(first, f"from parts_of_mine import half\n{first}")
    (tmp_path / "tiny_unit.py").write_text(whole, encoding="utf-8")
    assert tiny(USE)[0] == "7.5\n"
    part.write_text(part.read_text().replace("0.5", "0.25"))
    out, err = tiny(USE)
    assert out == "3.75\n" and MESSAGE in err


def test_a_unit_that_is_named_twice_is_built_once(tiny):
    code = "from daedal.kernels.building import build\nprint(list(build(['tiny_unit', 'tiny_unit'])))"
    out, err = tiny(code)
    assert out == "['tiny_unit']\n" and err.count(MESSAGE) == 1


def test_settings_of_numba_do_not_reach_the_compiler(tiny):
    assert tiny(USE, NUMBA_DISABLE_JIT="1", NUMBA_BOUNDSCHECK="1")[0] == "7.5\n"


@pytest.mark.race
def test_an_interrupted_build_leaves_no_process(tiny):
    code = """
    import signal, subprocess, threading
    import daedal.kernels.building as b
    begun, start = [], subprocess.Popen
    def note(*arguments, **options):
        begun.append(start(*arguments, **options))
        threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
        return begun[0]
    b.subprocess.Popen = note
    try:
        b.build(["tiny_unit"])
    except KeyboardInterrupt:
        print("interrupted", begun[0].poll() is not None)
    """
    assert tiny(code)[0] == "interrupted True\n"
    assert not list(tiny.folder.glob("*.lock"))
    assert tiny(USE)[0] == "7.5\n"


def test_what_is_built_by_default_exists():
    from daedal.build import DEFAULT
    from daedal.kernels.units import all_units

    assert {f"daedal.{unit}" for unit in DEFAULT} <= set(all_units())


def test_the_defaults_need_only_what_is_built_by_default():
    """README, events, an ensemble and a machine, in one process; nothing else is loaded."""
    from daedal.build import DEFAULT

    code = """
    import numpy as np, daedal
    from daedal.kernels import units
    from daedal.multibody import Body, Model, Revolute, ground
    rod = daedal.MechanicalSystem(2.0, lambda t, q, v: [0, -19.62], lambda t, q: [q @ q - 1], n_q=2, n_constraints=1)
    start = ([1.0, 0.0], [0.0, 0.0])
    daedal.solve(rod, (0, 10), start, events=lambda t, q, v: q[0])
    daedal.solve_many(rod, (0, 1), [start] * 9)
    daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0] - y[1], y[0] + y[1] - np.cos(t)], (0, 10), [1.0, 0.0], None)
    for name in ("robertson", "pendulum", "car_axis", "seven_body"):
        model = daedal.library.get(name)
        daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    arm = Body.rod("arm", length=1.0, mass=1.0)
    model = Model(Revolute("pivot", ground, arm.start), gravity=(0.0, -9.81))
    daedal.solve(model.system(), (0.0, 1.0), model.assemble(pivot=0.1))
    print(*(unit for unit, _ in units._loaded))
    """
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert {unit.removeprefix("daedal.") for unit in process.stdout.split()} <= set(DEFAULT)


def test_a_file_describes_its_code():
    compiled = find("daedal.kernels.calls")
    again = Compiled.unpacked(compiled.packed())
    assert again == compiled
    assert set(again.versions) == {"numba", "llvmlite"}


@given(st.binary(max_size=300))
def test_what_is_sealed_is_read_again(content):
    place = Path(os.environ.get("TMPDIR", "/tmp")) / f"daedal-sealed-{os.getpid()}.o"
    try:
        object_store.write(place, content)
        assert object_store.read(place) == content
    finally:
        place.unlink(missing_ok=True)


# --- calls from Python ------------------------------------------------------------------------------------------------


def test_numbers_and_arrays_arrive_as_they_are(compiled_tiny):
    out, _ = compiled_tiny(
        """
        rng = np.random.default_rng(1)
        for rows, columns in [(0, 0), (1, 1), (3, 2), (2, 5)]:
            matrix, result = rng.standard_normal((rows, columns)), np.zeros(1)
            integers, flags = rng.integers(-9, 9, rows), rng.integers(0, 2, rows).astype(bool)
            value = tiny_unit.total(np.int64(3), 0.5, matrix, integers, flags, result)
            weights = np.outer(np.arange(1, rows + 1), np.arange(2, columns + 2))
            expected = 1.5 + (matrix * weights).sum() + integers[flags].sum()
            assert type(value) is float and value == result[0] and abs(value - expected) < 1e-12, (value, expected)
        x = np.arange(3.0)
        assert tiny_unit.double(x) is None and x.tolist() == [0.0, 2.0, 4.0]
        assert tiny_unit.is_even(4) is True and tiny_unit.is_even(-3) is False
        print(tiny_unit.scaled(2, 3))
        """
    )
    assert out == "3.0\n"


WRONG = {
    "a list": "tiny_unit.double([1.0, 2.0])",
    "integers": "tiny_unit.double(np.arange(3))",
    "single precision": "tiny_unit.double(np.zeros(3, dtype=np.float32))",
    "every second entry": "tiny_unit.double(np.zeros(6)[::2])",
    "a matrix": "tiny_unit.double(np.zeros((2, 2)))",
    "too few arguments": "tiny_unit.double()",
    "too many arguments": "tiny_unit.double(np.zeros(2), 1)",
    "no number": "tiny_unit.total('one', 0.0, np.zeros((1, 1)), np.zeros(1, int), np.zeros(1, bool), np.zeros(1))",
    "another byte order": "tiny_unit.double(np.zeros(3, dtype='>f8'))",
}


def test_arguments_of_another_kind_are_refused(compiled_tiny):
    code = "".join(
        f"try:\n    {call}\n    print('accepted: {name}')\nexcept TypeError as error:\n    print(error)\n"
        for name, call in WRONG.items()
    )
    out, _ = compiled_tiny(code)
    assert "accepted" not in out
    lines = out.splitlines()
    assert lines[0] == "double: x must be a contiguous array f64[:]"
    assert "double takes 1 arguments" in lines


def test_read_only_arrays_are_read_and_never_changed(compiled_tiny, tmp_path):
    np.arange(3.0).tofile(tmp_path / "numbers")
    out, _ = compiled_tiny(
        f"""
        whole = np.memmap({str(tmp_path / "numbers")!r}, dtype=float, mode="r")
        fixed = np.arange(3.0)
        fixed.flags.writeable = False
        for x in (whole, fixed):
            matrix, result = x.reshape(1, 3), np.zeros(1)
            print(tiny_unit.total(0, 0.0, matrix, np.zeros(0, int), np.zeros(0, bool), result))
            try:
                tiny_unit.double(x)
            except ValueError as error:
                print(error, x.tolist())
        """
    )
    expected = ["11.0", "double: x is read-only, but the function writes it [0.0, 1.0, 2.0]"]
    assert out.splitlines() == 2 * expected


@pytest.mark.race
def test_threads_call_at_once(compiled_tiny):
    out, _ = compiled_tiny(
        """
        from concurrent.futures import ThreadPoolExecutor
        def work(k):
            x = np.full(10_000, float(k))
            for _ in range(50):
                tiny_unit.double(x)
            return float(x[-1]) == k * 2.0 ** 50
        with ThreadPoolExecutor(4) as pool:
            print(all(pool.map(work, range(16))))
        """
    )
    assert out == "True\n"


# --- interpreted kernels ----------------------------------------------------------------------------------------------


def test_interpreted_entries_do_what_compiled_ones_do(compiled_tiny):
    code = USE + "\nx = np.arange(3.0); tiny_unit.double(x); print(x.tolist(), tiny_unit.is_even(3))"
    assert compiled_tiny(code, DAEDAL_KERNELS="python") == compiled_tiny(code, DAEDAL_KERNELS="objects")[:1] + ("",)


def test_an_unknown_mode_is_refused(tiny):
    process = tiny.start(USE, DAEDAL_KERNELS="fast")
    assert "DAEDAL_KERNELS='fast' is unknown" in process.communicate()[1]
