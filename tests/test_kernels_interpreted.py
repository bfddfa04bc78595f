"""Kernels run once with bounds checked: interpreted, every method and formulation has the bits of compiled code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "interpreted_runs.py"


def run(mode, *names):
    process = subprocess.run(
        [sys.executable, str(SCRIPT), *names],
        env={**os.environ, "DAEDAL_KERNELS": mode},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "ignored" not in process.stderr, process.stderr
    return process.stdout.splitlines()


@pytest.mark.slow
def test_interpreted_kernels_have_the_bits_of_compiled_ones():
    compiled, interpreted = run("objects"), run("python")
    assert len(compiled) > 50
    assert interpreted == compiled


def interpreted(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "DAEDAL_KERNELS": "python"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_view_that_is_longer_than_its_memory_is_an_error_of_interpreted_kernels():
    """Compiled code would read and write beyond the array."""
    code = (
        "from daedal.kernels.records import Record, Struct, floats\nfrom daedal.kernels.signatures import f64\n"
        "record = Record.allocated(Struct('KIND', [('x', f64[3]), ('y', f64[5])]))\n"
        "print(floats(record['x'], 3).size, floats(record['y'] + 16, 3).size)\n"
        "for address, n in ((record['x'], 4), (record['y'] + 16, 4)):\n"
        "    try:\n        floats(address, n)\n    except IndexError as error:\n        print(error)\n"
    )
    assert interpreted(code).splitlines() == [
        "3 3",
        "a view of 4 numbers ends 8 bytes beyond its memory",
        "a view of 4 numbers ends 8 bytes beyond its memory",
    ]


def test_an_index_out_of_bounds_is_an_error_of_interpreted_kernels():
    code = (
        "import numpy as np\nfrom daedal.kernels.compilation import caller, entry\n"
        "from daedal.kernels.records import floats\nfrom daedal.kernels.signatures import f64, i64\n"
        "@entry(f64(i64))\ndef inner(address):\n    return floats(address, 3)[3]\n"
        "call = caller(f64(i64))\n"
        "@entry(f64(i64, i64))\ndef outer(function, address):\n    return call(function, address)\n"
        "x = np.zeros(3)\n"
        "try:\n    outer(inner.address, x.ctypes.data)\nexcept IndexError as error:\n    print(error)\n"
    )
    assert interpreted(code) == "index 3 is out of bounds for axis 0 with size 3\n"
