"""What the tables of Brenan, Campbell and Petzold, chapter 6, show; the tables are in the reproduction book."""

import numpy as np
import pytest

from daedal import library
from daedal.studies import reproduce
from daedal.studies.reproduce.tables_book import solve_pendulum, solve_tppc3, tppc3_truth


def test_stabilised_pendulum_converges_below_the_tolerances_of_the_book():
    """The book's corrector did not converge at 1e-8; in double precision it does."""
    sol, model = solve_pendulum("ggl", 1e-8, error_test="differential")
    np.testing.assert_allclose(sol.y[:4, -1], model.reference.y[:4], rtol=1e-5)


@pytest.mark.slow
def test_stabilised_pendulum_crawls_when_the_multipliers_are_tested():
    """About 18 500 steps at 1e-5, where 38 are enough when the multipliers are left out."""
    sol, _ = solve_pendulum("ggl", 1e-5, error_test="all")
    assert 10_000 < sol.stats.steps < 30_000


def test_trajectory_control_of_index_2_needs_fewer_steps_than_of_index_1(reproduced):
    (table,) = reproduce.find(["book/6.3.2"])
    computed = zip(table.rows, reproduced(table.identifier), strict=True)
    steps = {(row["coordinates"], row["index"], row["rtol"]): values["steps"] for row, values in computed}
    for rtol in (1e-6, 0.5e-6, 1e-8):
        assert steps["relative", 2, rtol] < 0.6 * steps["relative", 1, rtol]
        assert steps["relative", 2, rtol] < steps["inertial", 2, rtol]


@pytest.mark.parametrize("h", [0.2, 0.1, 0.05])
def test_the_bank_angle_of_index_3_is_of_first_order_from_the_second_step_on(h):
    """After one step of implicit Euler its relative error is 1.2: Table 6.3.4."""
    end = library.tppc3().t_span[0] + 2.0 * h
    sol = solve_tppc3(h, end)
    error = np.abs(sol.y[:, 2] / tppc3_truth(end) - 1.0)
    assert error[list(sol.names).index("beta")] < 5e-3 * h
