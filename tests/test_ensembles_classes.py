"""Semi-explicit problems and models with modes in ensembles: in the compiled loop, with the bits of the driver."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import daedal
from test_ensembles_batch import handed_back, in_rows, of_driver, rows_of  # noqa: F401  (a fixture)

COUNT = 9
K1 = np.linspace(0.03, 0.05, COUNT)
SPAN, START = (0.0, 1e5), ([1.0, 0.0], [0.0])
SHARP = {"rtol": 1e-5, "atol": 1e-8}


def robertson():
    """Robertson's reaction, the sum of its species in place of one equation."""

    def f(t, y, z, p):
        forth, back = p["k1"] * y[0], p["k3"] * y[1] * z[0]
        return [back - forth, forth - back - p["k2"] * y[1] ** 2]

    params = {"k1": 0.04, "k2": 3e7, "k3": 1e4}
    return daedal.SemiExplicitDAE(f, lambda t, y, z, p: [y[0] + y[1] + z[0] - 1.0], 2, 1, params=params)


def test_semi_explicit_problems_run_in_the_loop_with_the_bits_of_the_driver(handed_back):  # noqa: F811
    times = np.array([1.0, 1e3, 1e5])
    options = {"t_eval": times, "events": daedal.Event(lambda t, y, z, p: z[0] - 10.0 * p["k1"], name="much"), **SHARP}
    ensemble = daedal.solve_many(robertson(), SPAN, START, params={"k1": K1}, workers=1, chunk_size=4, **options)
    assert sum(handed_back) == 0 and ensemble.failed.size == 0
    members = (0, 5, COUNT - 1)
    for k, alone in zip(members, of_driver(robertson(), SPAN, START, [{"k1": K1[k]} for k in members], **options)):
        assert_array_equal(ensemble.y[k], alone.y)
        assert rows_of(ensemble, k) == in_rows(alone) and len(rows_of(ensemble, k)) == 1


def test_starts_of_semi_explicit_problems_vary_and_refuse_as_with_the_driver(handed_back):  # noqa: F811
    first = np.linspace(0.5, 1.0, COUNT)
    y, z = np.column_stack([first, np.zeros(COUNT)]), (1.0 - first)[:, None]
    z[3] += 0.1
    ensemble = daedal.solve_many(robertson(), (0.0, 10.0), (y, z), workers=1, chunk_size=4, **SHARP)
    assert sum(handed_back) == 1  # that which the driver refuses
    assert ensemble.failed.tolist() == [3] and "do not satisfy" in ensemble.messages[3]
    alone = daedal.solve(robertson(), (0.0, 10.0), (y[7], z[7]), t_eval=[10.0], **SHARP)
    assert_array_equal(ensemble.final.y[7], alone.y[:, -1])


def test_an_unknown_z_is_left_to_the_driver():
    ensemble = daedal.solve_many(robertson(), (0.0, 1.0), (START[0], None), params={"k1": K1[:3]}, workers=1, **SHARP)
    alone = daedal.solve(robertson(), (0.0, 1.0), (START[0], None), params={"k1": K1[2]}, t_eval=[1.0], **SHARP)
    assert ensemble.failed.size == 0
    assert_array_equal(ensemble.final.y[2], alone.y[:, -1])
