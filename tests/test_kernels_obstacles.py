"""Kernels where something is in the way: sources that change, modules that cannot be imported, forks, interrupts."""

import os
import stat
import subprocess
import sys
import textwrap
import threading

import pytest

from daedal import build
from daedal.common import object_store
from daedal.kernels import building, sources, units
from daedal.kernels.levels import level_of_unit
from daedal.kernels.units import Compiled, find, key
from test_kernels_build import MESSAGE, TINY, USE, compiled_tiny, tiny, tiny_code  # noqa: F401

QUARTER = TINY.replace("0.5 * x", "0.25 * x")
IN_WORKER = "import os\nif os.environ.get('DAEDAL_KERNELS') == 'build':\n"


@pytest.fixture
def run(tiny):  # noqa: F811
    """Run code in a process that must end within two minutes."""

    def run(code, **environment):
        process = tiny.start(code, **environment)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
        assert process.returncode == 0, err
        return out, err

    run.folder = tiny.folder
    return run


@pytest.fixture
def compiled(run, compiled_tiny):  # noqa: F811
    """The same where the code of the unit is at hand."""
    return run


# --- which source is compiled -----------------------------------------------------------------------------------------


def test_code_is_kept_under_the_key_of_the_text_that_was_compiled(run, tmp_path):
    """The unit is saved when the process that compiles imports it."""
    file, text = tmp_path / "tiny_unit.py", tmp_path / "new"
    text.write_text(QUARTER)
    file.write_text(f"{IN_WORKER}    os.replace({str(text)!r}, {str(file)!r})\n{TINY}")
    out, err = run(USE)
    assert out == "7.5\n"  # as this process has imported it
    assert "runs interpreted" in err and "was changed after it was imported" in err
    assert run(USE) == ("3.75\n", "")


def test_a_unit_that_was_saved_after_its_import_is_interpreted(run, tmp_path):
    code = f"open({str(tmp_path / 'tiny_unit.py')!r}, 'w').write({QUARTER!r})\n{USE}"
    out, err = run(code)
    assert out == "7.5\n" and "was changed after it was imported" in err
    assert run(USE)[0] == "3.75\n"


def test_a_module_that_another_file_hides_is_interpreted(run, tmp_path):
    hidden = tmp_path / "hidden" / "tiny_unit.py"
    hidden.parent.mkdir()
    hidden.write_text(QUARTER)
    code = f"""
    import importlib.util, sys
    spec = importlib.util.spec_from_file_location("tiny_unit", {str(hidden)!r})
    tiny_unit = sys.modules["tiny_unit"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tiny_unit)
    """
    out, err = run(textwrap.dedent(code) + USE)
    assert out == "3.75\n"
    assert f"another process would import {tmp_path / 'tiny_unit.py'} instead of {hidden}" in err
    assert run(USE)[0] == "7.5\n"


@pytest.mark.parametrize("statement", ["from .parts import half", "from . import parts\nhalf = parts.half"])
def test_relative_imports_of_a_package_of_a_user_are_followed(tmp_path, statement):
    package = tmp_path / "package_of_mine"
    package.mkdir()
    for name, text in {"__init__": "", "parts": "half = 0.5\n", "unit": f"{statement}\n"}.items():
        (package / f"{name}.py").write_text(text)
    assert package / "parts.py" in sources.sources(package / "unit.py")


def test_an_upgrade_of_an_installed_package_makes_another_key(tmp_path, monkeypatch):
    place = tmp_path / "site-packages"
    (place / "parts_package").mkdir(parents=True)
    (place / "parts_package" / "__init__.py").write_text("half = 0.5\n")
    (place / "other-1.0.dist-info").mkdir()
    (place / "other-1.0.dist-info" / "RECORD").write_text("other.py,sha256=1,2\n")
    record = place / "named_otherwise-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("parts_package/__init__.py,sha256=1,2\n")
    unit = tmp_path / "unit_of_mine.py"
    unit.write_text("from parts_package import half\n")
    monkeypatch.syspath_prepend(str(place))
    before = sources.source_stamp(unit)
    assert record in sources.sources(unit)
    record.write_text("parts_package/__init__.py,sha256=2,2\n")
    assert sources.source_stamp(unit) == before and sources.changed(unit)
    sources.forget()
    assert sources.source_stamp(unit) != before


def test_object_code_of_sources_edited_since_the_import_is_not_used(monkeypatch):
    """The records of imported modules might not fit object code of newer ones."""
    unit, edited = units.all_units()[0], set()
    monkeypatch.setattr(sources, "edited", edited)
    monkeypatch.setattr(units, "edited", edited)
    sources.forget()
    assert key(unit, "x86-64-v3").startswith("kernel-")
    monkeypatch.setitem(sources._states, str(units.source_of(unit)), (0, 0))
    sources.forget()
    with pytest.raises(units.SourceMismatch, match="changed after Daedal was imported"):
        key(unit, "x86-64-v3")
    sources.forget()


@pytest.mark.race
def test_a_reloaded_unit_has_new_code(run, tmp_path):
    code = f"""
    import importlib
    print(tiny_unit.scaled(3.0, 5))
    old = tiny_unit.scaled
    with open({str(tmp_path / "tiny_unit.py")!r}, "w") as file:
        file.write({QUARTER!r})
    importlib.reload(tiny_unit)
    print(tiny_unit.scaled(3.0, 5), old(3.0, 5))
    """
    out, err = run(code)
    assert out == "7.5\n3.75 7.5\n" and err.count(MESSAGE) == 2


# --- modules that cannot be imported elsewhere ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "reason"),
    [("raise RuntimeError('no display')", "RuntimeError: no display"), ("raise SystemExit(3)", "SystemExit: 3")],
)
def test_a_module_that_only_this_process_can_import_is_interpreted(run, tmp_path, statement, reason):
    (tmp_path / "tiny_unit.py").write_text(f"{IN_WORKER}    {statement}\n{TINY}")
    out, err = run(f"{USE}\nprint(tiny_unit.is_even(3))")
    assert out == "7.5\nFalse\n"
    assert "scaled runs interpreted" in err and reason in err and err.count(MESSAGE) == 1


def test_a_unit_may_print_and_read_when_it_is_imported(run, tmp_path):
    begin = f"{IN_WORKER}    import sys\n    print('no end of line', end='', flush=True)\n    sys.stdin.read()\n"
    (tmp_path / "tiny_unit.py").write_text(begin + TINY)
    assert run(USE)[0] == "7.5\n"
    assert run(USE) == ("7.5\n", "")


def test_what_is_not_a_string_in_the_path_of_modules_is_ignored(run):
    assert run(f"import pathlib, sys\nsys.path.insert(0, pathlib.Path('/nowhere'))\n{USE}")[0] == "7.5\n"


# --- forks and interrupts ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.race
def test_a_process_that_is_forked_during_a_build_goes_on(run):
    """The child neither waits for locks of a thread that it does not have nor keeps the compiling process running."""
    code = """
    import os, subprocess, threading, time
    began, start = threading.Event(), subprocess.Popen
    def note(*arguments, **options):
        process = start(*arguments, **options)
        threading.Timer(0.3, began.set).start()
        return process
    subprocess.Popen = note
    thread = threading.Thread(target=lambda: print(tiny_unit.scaled(3.0, 5), flush=True))
    thread.start()
    began.wait()
    ready, tell = os.pipe()
    if os.fork() == 0:
        os.close(tell)
        os.read(ready, 1)  # until the parent has ended its build
        print("child", tiny_unit.scaled(3.0, 5), flush=True)
        os._exit(0)
    thread.join()
    os.close(tell)
    os.wait()
    """
    assert run(code)[0] == "7.5\nchild 7.5\n"


@pytest.mark.race
def test_an_interrupt_ends_the_wait_for_another_process(run):
    run.folder.mkdir()
    code = """
    import signal, threading
    import daedal.kernels.building as b
    from daedal.kernels.units import key
    from daedal.kernels.levels import level_of_unit
    b._STALE = 1e9
    (b.store.folder() / (key("tiny_unit", level_of_unit("tiny_unit")) + ".lock")).touch()
    main = threading.main_thread().ident
    threading.Timer(0.5, signal.pthread_kill, [main, signal.SIGINT]).start()
    try:
        tiny_unit.scaled(3.0, 5)
    except KeyboardInterrupt:
        print("interrupted")
    """
    assert run(code)[0] == "interrupted\n"


@pytest.mark.parametrize("event", ["call", "return"])
def test_an_interrupt_beside_an_interpreted_kernel_is_not_lost(run, event):
    """It arrives when the function that ctypes calls begins or ends, outside the block that records exceptions."""
    code = f"""
    import sys
    from daedal.kernels.compilation import Entry, caller
    from daedal.kernels.signatures import f64, i64
    call, count = caller(f64(f64, i64)), []
    def outer(address):
        for k in range(3):
            count.append(call(address, 3.0, 5))
        return 0
    outer = Entry(outer, i64(i64))
    address = tiny_unit.scaled.address
    def interrupt(frame, event, argument):
        if event == {event!r} and frame.f_code.co_name == "interpreted_entry":
            sys.setprofile(None)
            raise KeyboardInterrupt
    sys.setprofile(interrupt)
    try:
        outer(address)
    except KeyboardInterrupt:
        print("interrupted", count[1:])
    """
    out, err = run(code, DAEDAL_KERNELS="python")
    assert out == "interrupted [-1.0, -1.0]\n" and err == ""


# --- messages and files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", ["None", "sys.__stderr__.close() or sys.__stderr__", "open('/dev/full', 'w')"])
def test_a_message_that_cannot_be_printed_is_dropped(run, stream):
    code = f"import os, sys\nsys.stderr = {stream}\nprint(tiny_unit.scaled(3.0, 5), flush=True)\nos._exit(0)"
    assert run(code)[0] == "7.5\n"


WRONG = {
    "no description": lambda compiled: b"no description",
    "of another format": lambda compiled: b'{"unit": "tiny_unit"}\n',
    "of another unit": lambda compiled: compiled._replace(unit="other").packed(),
    "of another text": lambda compiled: compiled._replace(key="other").packed(),
    "no code": lambda compiled: compiled._replace(code=b"no code").packed(),
}


@pytest.mark.parametrize("what", WRONG)
def test_content_that_is_not_the_code_of_the_unit_is_made_again(compiled, what):
    run = compiled
    [file] = run.folder.glob("kernel-*.o")
    object_store.write(file, WRONG[what](Compiled.unpacked(object_store.read(file))))
    out, err = run(USE)
    assert out == "7.5\n" and MESSAGE in err
    assert run(USE) == ("7.5\n", "")


def test_building_again_replaces_what_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("DAEDAL_CACHE_DIR", str(tmp_path))
    unit = "daedal.kernels.interpolation"
    assert build.main(["kernels.interpolation", "--quiet"]) == 0
    file = tmp_path / f"{key(unit, level_of_unit(unit))}.o"
    before = find(unit)
    assert before is not None
    object_store.write(file, before._replace(seconds=[-1.0, -1.0]).packed())
    assert build.main(["kernels.interpolation", "--quiet", "--again"]) == 0
    after = find(unit)
    assert after.code == before.code and after.seconds[0] > 0.0


def test_an_unknown_level_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        build.main(["--into", str(tmp_path), "--level", "bogus"])
    assert "--level bogus is unknown; known" in capsys.readouterr().err
    with pytest.raises(building.KernelBuildError, match="the level 'bogus' is unknown"):
        building.build(["daedal.kernels.interpolation"], levels=lambda unit: ["bogus"], into=str(tmp_path))


def test_a_folder_that_was_removed_is_made_again_for_the_lock(tmp_path):
    lock = tmp_path / "removed" / "unit.lock"
    assert building._acquire(lock, "unit", lambda: False, threading.Event())
    assert lock.exists()


def test_files_have_the_permissions_of_new_files(tmp_path):
    (tmp_path / "other").touch()
    object_store.write(tmp_path / "unit.o", b"code")
    assert stat.S_IMODE((tmp_path / "unit.o").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_a_home_folder_is_expanded(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DAEDAL_CACHE_DIR", "~/code")
    assert object_store.folder() == tmp_path / "code"


def test_a_build_needs_no_folder_for_temporary_files_and_closes_what_it_opens(run):
    code = """
    import tempfile
    def refuse(*arguments, **options):
        raise FileNotFoundError("No usable temporary directory found")
    tempfile.TemporaryFile = tempfile.TemporaryDirectory = tempfile.mkstemp = refuse
    """
    out, err = run(textwrap.dedent(code) + USE, PYTHONDEVMODE="1", DAEDAL_KERNELS="")
    assert out == "7.5\n" and "ResourceWarning" not in err


def test_a_script_has_its_entries_interpreted(tmp_path):
    (tmp_path / "script.py").write_text(TINY + "\nprint(scaled(3.0, 5))\n")
    process = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=120)
    assert process.stdout == "7.5\n", process.stderr
    assert "it must be in a module file" in process.stderr
