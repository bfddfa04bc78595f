"""Twelve significant digits at rtol = 1e-13, by two families of methods in agreement.

Absolute tolerances are what round-off of the largest terms leaves: 1e-14 beside terms of size 1.
"""

import numpy as np
import pytest

import daedal

TWELVE = 1e-12


def relative(first, second):
    return np.max(np.abs(first - second) / np.abs(second))


def test_robertson_by_dassl_and_radau():
    model = daedal.library.get("robertson")
    found = [
        daedal.solve(model.problem, (0.0, 40.0), model.initial, method=method, rtol=1e-13, atol=[1e-14, 1e-19, 1e-14])
        for method in ("dassl", "radau")
    ]
    dassl, radau = (sol.y[:, -1] for sol in found)
    assert relative(dassl, radau) < TWELVE
    assert radau == pytest.approx([0.7158270687194, 9.185534764558e-06, 0.2841637457458], rel=TWELVE)
    assert found[1].stats.steps < found[0].stats.steps / 10


def test_transistor_amplifier_by_radau_and_bdf():
    """The whole interval. DASSL with variable steps stops at t = 0.012: its orders fall where round-off is seen."""
    model = daedal.library.get("transistor_amplifier")
    radau = daedal.solve(model.problem, model.t_span, model.initial, method="radau", rtol=1e-13, atol=1e-13)
    bdf = daedal.solve(
        model.problem,
        model.t_span,
        model.initial,
        method=daedal.methods.Multistep("bdf6"),
        fixed_step=0.2 / 16000,
        t_eval=[0.2],
        dense_output=False,
    )
    assert relative(bdf.y[:, -1], radau.y[:, -1]) < TWELVE
    assert relative(radau.y[:, -1], model.reference.y) < 1e-10  # as many digits as are printed


def test_transistor_amplifier_beyond_the_tolerances_that_dassl_reaches():
    """DASSL stops at round-off, and the run continues with Radau."""
    model = daedal.library.get("transistor_amplifier")
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-11, atol=1e-13)
    assert relative(sol.y[:, -1], model.reference.y) < 1e-9


def test_seven_body_mechanism_by_dopri5_and_phem56():
    model = daedal.library.get("seven_body")
    dopri5, phem56 = (
        daedal.solve(model.problem, (0.0, 0.03), model.initial, method=method, rtol=1e-13, atol=1e-15)
        for method in ("dopri5", "phem56")
    )
    assert relative(phem56.q[:, -1], dopri5.q[:, -1]) < TWELVE
    largest = np.abs(dopri5.v[:, -1]).max()  # velocities differ by a factor of 4000
    assert np.abs(phem56.v[:, -1] - dopri5.v[:, -1]).max() < TWELVE * largest


def test_seven_body_mechanism_by_dassl():
    """Up to t = 0.01: the stabilised form is of index 2, and beyond that round-off, divided by h, is above rtol."""
    model = daedal.library.get("seven_body")
    dopri5, dassl = (
        daedal.solve(model.problem, (0.0, 0.01), model.initial, rtol=1e-13, atol=1e-15, **options)
        for options in ({"method": "dopri5"}, {"method": "dassl", "formulation": "ggl"})
    )
    assert relative(dassl.q[:, -1], dopri5.q[:, -1]) < TWELVE
