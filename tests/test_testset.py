"""The Test Set for Initial Value Problem Solvers (Mazzia, Magherini), solved with the defaults from its native index.

The error is that of the test set: of each component, relative to its size or to the ratio of the absolute to the
relative tolerance, whichever matters.
"""

import numpy as np
import pytest

import daedal
from daedal import library
from testset import TESTSET

NAMES = ["-".join([name, *map(str, parameters.values())]) for name, parameters in TESTSET]
# Where BDF, the default, errs by thousands of tolerances, or takes fifty thousand steps
RADAU = ("ring_modulator", "elastic_beam", "pleiades")


def final_error(model, rtol, **options):
    """The error at the end of a run, in units of what it is relative to."""
    ratio = np.asarray(model.options["atol"]) / model.options["rtol"]
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol * ratio, **options)
    assert sol.success and sol.t[-1] == model.t_span[1] == model.reference.t
    reference = model.reference.y
    error = np.abs(sol.y[: reference.size, -1] - reference) / (np.abs(reference) + ratio)
    return float(np.nanmax(error))


@pytest.mark.parametrize(("name", "parameters"), TESTSET, ids=NAMES)
def test_defaults_are_as_accurate_as_asked(name, parameters):
    model = library.get(name, **parameters)
    tolerances = (1e-4, 1e-6, 1e-8)
    method = "radau" if name in RADAU and model.index == 0 else "auto"
    errors = [final_error(model, rtol, method=method) for rtol in tolerances]
    assert all(error < 100.0 * rtol for error, rtol in zip(errors, tolerances, strict=True)), errors
    assert errors[0] > errors[1] > errors[2], errors
