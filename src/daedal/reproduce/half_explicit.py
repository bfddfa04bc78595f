"""Brasey and Hairer: order conditions and coefficients; the runs are in :mod:`daedal.reproduce.half_explicit_runs`."""

from collections.abc import Mapping
from typing import Any

from daedal import order_conditions
from daedal.reproduce import half_explicit_runs
from daedal.reproduce.printed_table import PrintedTable, Row

Values = list[Mapping[str, Any] | None]
HIGHEST = {"1": 4, "3": 3, "4": 3}


def conditions(table: PrintedTable) -> Values:
    """Tables 1, 3 and 4: conditions generated from trees."""
    found = {c.number: c for c in order_conditions.conditions(HIGHEST[table.number], int(table.number))}
    return table.each(lambda row: {"order": found[row["nr"]].order, "condition": found[row["nr"]].formula()})


def coefficients(table: PrintedTable) -> Values:
    """Tables 2 and 5; HEM4 by the construction of section 4.2 from c_2 and the node c_3 of Radau."""
    hem4 = order_conditions.TABLEAUX["hem4"]
    tableau = {
        "2": lambda: order_conditions.TABLEAUX["hem3"],
        "5": lambda: order_conditions.hem4_family("3/10", hem4.c[2]),
    }[table.number]()

    def values(row: Row) -> Mapping[str, Any]:
        stage = row["stage"]
        entries = tableau.b if stage == "b" else tableau.a[int(stage) - 1]
        node = {} if stage == "b" else {"c": tableau.c[int(stage) - 1]}
        return {key: str(value) for key, value in (node | {f"a{j}": x for j, x in enumerate(entries, 1)}).items()}

    return table.each(values)


def numbers_of_conditions(table: PrintedTable) -> Values:
    """How many conditions there are up to an order."""

    def values(row: Row) -> Mapping[str, Any]:
        counts = {
            linear: len(order_conditions.conditions(row["order"], linear_in_z=linear)) for linear in (False, True)
        }
        return {"general": counts[False], "linear": counts[True]}

    return table.each(values)


def conditions_that_hold(table: PrintedTable) -> Values:
    """How many conditions of each order a method satisfies."""

    def values(row: Row) -> Mapping[str, Any]:
        counts = order_conditions.verify(row["method"], len(row.cells)).counts()
        return {f"p{order}": held for order, (held, _) in counts.items()}

    return table.each(values)


TABLES = {
    **dict.fromkeys(("1", "3", "4"), conditions),
    **dict.fromkeys(("2", "5"), coefficients),
    "trees": numbers_of_conditions,
    "methods": conditions_that_hold,
    **half_explicit_runs.TABLES,
}
