"""Orders of the book that are whole numbers: those that Daedal finds are near them, not only round to them."""

import pytest

from daedal.studies import reproduce

TABLES = ("book/4.3.1", "book/4.4.1", "book/4.4.2")


@pytest.mark.parametrize("identifier", TABLES)
def test_observed_orders_are_near_whole_numbers(identifier, reproduced):
    for values in reproduced(identifier):
        for name in ("kg", "kgx", "kgy"):
            if name in values:
                assert abs(values[name] - round(values[name])) < 0.08


def test_orders_that_are_higher_than_theorems_promise(reproduced):
    """Extrapolation and Lobatto IIIC converge one order faster than theorem 4.3.1 says."""
    (table,) = reproduce.find(["book/4.3.1"])
    gain = {
        row["method"]: round(values["kg"]) - values["kG"]
        for row, values in zip(table.rows, reproduced("book/4.3.1"), strict=True)
    }
    assert {name for name, more in gain.items() if more} == {"seven-stage extrapolation", "Lobatto IIIC"}


def test_the_algebraic_variables_of_the_trajectory_are_of_third_order(reproduced):
    """As the text of the book says of the three-stage SIRK; its table has 2, the order on the pendulum."""
    (table,) = reproduce.find(["book/4.4.2"])
    position = [row["method"] for row in table.rows].index("three-stage SIRK")
    assert 2.9 < reproduced("book/4.4.2")[position]["kgy"] < 3.1
    assert 1.9 < reproduced("book/4.4.1")[position]["kgy"] < 2.1


@pytest.mark.parametrize(("identifier", "order"), [("book/6.3.5", 3), ("book/6.3.6", 2)])
def test_errors_fall_with_the_order_where_the_print_ends_in_round_off(identifier, order, reproduced):
    (table,) = reproduce.find([identifier])
    for row, values in zip(table.rows, reproduced(identifier), strict=True):
        if row["variable"] in ("V", "xi", "lambda"):
            assert 2.0 ** (order - 0.2) < values["h1"] / values["h2"] < 2.0 ** (order + 0.2)
