"""Packaging of what pyproject.toml cannot say: a wheel carries the machine code of all kernels for its platform.

An editable installation builds the kernels of the default methods into the user's cache instead. The environment
variable DAEDAL_BUILD chooses otherwise: "all" (every unit, for the levels of the platform), "host" (every unit, for
this processor), "default" (in editable installations: what the default methods need) or "none".
"""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

SOURCES = Path(__file__).resolve().parent / "src"


class BuildWithKernels(build_py):
    """Copy the package, then build its kernels."""

    def run(self):
        super().run()
        wanted = os.environ.get("DAEDAL_BUILD", "default" if self.editable_mode else "all")
        if wanted not in ("all", "host", "default", "none"):
            raise SystemExit(f"DAEDAL_BUILD={wanted!r} is not known; it is all, host, default or none")
        if wanted == "none":
            return
        arguments = ["--quiet", "--verbose"]
        if not self.editable_mode:
            arguments += ["--into", str(Path(self.build_lib).resolve() / "daedal" / "kernels" / "objects")]
            arguments += ["--host"] if wanted == "host" else []
        elif wanted in ("all", "host"):
            arguments.append("--all")
        environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
        subprocess.run([sys.executable, "-m", "daedal.build", *arguments], env=environment, check=True)


class PlatformWheel(bdist_wheel):
    """A wheel for one platform and any version of Python 3: object code does not depend on the interpreter."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithObjectCode(Distribution):
    """A package that is not the same on all platforms."""

    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": BuildWithKernels, "bdist_wheel": PlatformWheel}, distclass=WithObjectCode)
