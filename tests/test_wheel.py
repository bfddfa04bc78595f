"""The wheel in an empty environment: without Numba, without a compiler, read-only, without a home."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from daedal.kernels.levels import level_of_unit
from daedal.kernels.units import all_units, shipped_path

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow


def run(*command, **environment):
    whole = {**os.environ, "PYTHONPATH": "", **environment}
    process = subprocess.run([str(part) for part in command], env=whole, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of the sources with the kernels of this processor, which the user's cache has already."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "out", "*.egg-info", "__pycache__", "tests", "docs")
    shutil.copytree(ROOT, source, ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run(*command, "--wheel-dir", folder, source, DAEDAL_BUILD="host")
    [made] = folder.glob("*.whl")
    return made


def test_a_wheel_is_for_a_platform_and_any_python(wheel):
    assert wheel.name.startswith("daedal-")
    assert "-py3-none-" in wheel.name and not wheel.name.endswith("-any.whl")
    assert wheel.stat().st_size < 15e6
    names = zipfile.ZipFile(wheel).namelist()
    objects = {Path(name).name for name in names if name.startswith("daedal/kernels/objects/")}
    assert objects == {shipped_path(Path(), unit, level_of_unit(unit)).name for unit in all_units()}
    assert {f"daedal/{name}" for name in ("library/contents.json", "library/data/kinetics.toml", "py.typed")} <= set(
        names
    )


def what_it_depends_on(name: str, seen: set[str]) -> set[str]:
    """The distributions that this one needs without extras, and those that they need."""
    for text in distribution(name).requires or []:
        needed = Requirement(text)
        if needed.name not in seen and (needed.marker is None or needed.marker.evaluate({"extra": ""})):
            seen.add(needed.name)
            what_it_depends_on(needed.name, seen)
    return seen


def link(name: str, place: Path) -> None:
    """Put the files of an installed distribution into another environment."""
    home = Path(str(distribution(name).locate_file("")))
    for top in {file.parts[0] for file in distribution(name).files or []} - {"..", "__pycache__"}:
        if not (place / top).exists():
            (place / top).symlink_to(home / top)


@pytest.fixture(scope="module", params=["linked", pytest.param("downloaded", marks=pytest.mark.soak)])
def installed(request, wheel, tmp_path_factory):
    """The interpreter of an environment that has the wheel and what it depends on, and nothing else."""
    place = tmp_path_factory.mktemp("empty") / "environment"
    python = place / "bin" / "python"
    if request.param == "linked":  # to the packages of this environment, without Numba
        run(sys.executable, "-m", "venv", "--without-pip", place)
        packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        for name in what_it_depends_on("daedal", set()):
            link(name, packages)
        run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-compile", wheel)
        return python
    run(sys.executable, "-m", "venv", place)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No matching distribution" in process.stderr:
        pytest.skip("the packages that Daedal depends on cannot be downloaded here")
    assert process.returncode == 0, process.stderr
    return python


NOWHERE = {
    "DAEDAL_CACHE_DIR": "",
    "XDG_CACHE_HOME": "",
    "HOME": "/proc/nobody",
    "PATH": "/nowhere",
    "PYTHONPATH": "",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MPLCONFIGDIR": "",
}


def test_ten_problems_without_numba_compiler_home_or_a_writable_package(installed):
    package = Path(run(installed, "-c", "import daedal; print(daedal.__file__)").strip()).parent
    for path in [package, *package.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        out = run(installed, ROOT / "packaging" / "try_wheel.py", **NOWHERE)
    finally:
        for path in [package, *package.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert out.count("right") == 10 and "WRONG" not in out and "compiled" not in out


def test_what_only_numba_can_do_is_said(installed):
    code = "import daedal; p = daedal.ODE(lambda t, y: -y, 1)\n"
    code += "try: p.compiled('numba')\nexcept daedal.InvalidProblemError as error: print(error)"
    assert "pip install numba" in run(installed, "-c", code)


def test_the_doctor_finds_all_kernels_installed(installed):
    out = run(installed, "-m", "daedal", "doctor")
    assert f"{len(all_units())} of {len(all_units())} units installed" in out
    assert "All is well." in out
