"""The quick tier reaches every public name; the tiers leave nothing out."""

import ast
import inspect
import textwrap
from types import SimpleNamespace

import pytest

import daedal
import tiers
from conftest import COLLECTED
from test_public_names import SURFACE, module_of

pytestmark = pytest.mark.quick


def names_in(function) -> set[str]:
    """The names and attributes in the code of a test, and of the helpers of its module that it mentions."""
    found: set[str] = set()
    waiting = [function]
    while waiting:
        node = _syntax(waiting.pop())
        new = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        new |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
        new |= {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}  # fixtures
        for name in new - found:
            helper = getattr(inspect.getmodule(function), name, None)
            helper = inspect.unwrap(getattr(helper, "__wrapped__", None) or helper) if callable(helper) else None
            if inspect.isfunction(helper) and helper.__module__ == function.__module__:
                waiting.append(helper)
        found |= new
    return found


_known: dict[object, ast.AST] = {}


def _syntax(function) -> ast.AST:
    """The body of a function, without what decorates it."""
    code = function.__code__
    if code not in _known:
        [tree] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
        tree.decorator_list = []
        _known[code] = tree
    return _known[code]


def words_of(value) -> set[str]:
    """What a parameter of a test mentions: its type, its name, or itself if it is a string."""
    return {type(value).__name__, getattr(value, "__name__", "")} | ({value} if isinstance(value, str) else set())


@pytest.fixture
def collected(request):
    """All tests of the suite."""
    items = request.config.stash[COLLECTED]
    if len({item.path for item in items}) < 200:
        pytest.skip("only a part of the suite was collected")
    return items


def is_called(value) -> bool:
    """Whether users call the value by name: functions, methods and formulations, not the types of results."""
    bases = (daedal.methods.Method, daedal.formulations.Formulation)
    return inspect.isfunction(value) or (inspect.isclass(value) and issubclass(value, bases) and value not in bases)


def test_every_public_name_is_in_a_quick_test(collected):
    mentioned: set[str] = set()
    for item in tiers.quick(collected, tiers.known_durations()):
        mentioned |= names_in(item.function)
        for value in getattr(getattr(item, "callspec", None), "params", {}).values():
            mentioned |= words_of(value)
    called = {
        name for module, names in SURFACE.items() for name in names if is_called(getattr(module_of(module), name))
    }
    missing = sorted(called - mentioned)
    assert missing == [], f"in no quick test: {', '.join(missing)}"


def test_names_in_comments_and_in_other_tests_do_not_count():
    def one():
        """solve_dae"""
        return names_in  # solve_ivp

    assert "names_in" in names_in(one)
    assert not {"solve_dae", "solve_ivp"} & names_in(one)


def item(name, *marks, path="file"):
    marked = {mark: True for mark in marks}
    return SimpleNamespace(nodeid=f"{path}::{name}", path=path, get_closest_marker=marked.get)


ITEMS = [item("a[1]"), item("a[2]"), item("b[1]", "slow"), item("b[2]"), item("c[1]", "soak"), item("c[2]")]
ITEMS += [item("d"), item("e[1]", "quick"), item("e[2]", "quick"), item("f", "slow", path="other")]


def chosen(tier, durations):
    return {one.nodeid.partition("::")[2] for one in tiers.of_tier(tier, ITEMS, durations)}


def test_quick_has_one_short_case_of_each_test():
    assert chosen("quick", {"file::d": 3.0}) == {"a[1]", "b[2]", "c[2]", "e[1]", "e[2]"}
    assert chosen("quick", {"file::a[1]": 3.0}) == {"a[2]", "b[2]", "c[2]", "d", "e[1]", "e[2]"}


def test_every_test_is_in_the_suite_or_in_the_soak_run():
    assert chosen("soak", {}) == {"c[1]"}
    assert chosen("soak", {}) | chosen("test", {}) == {one.nodeid.partition("::")[2] for one in ITEMS}


def test_files_with_long_tests_come_first_and_stay_together():
    order = tiers.longest_files_first(ITEMS, {"other::f": 9.0, "file::c[2]": 3.0})
    assert order == [ITEMS[-1], *ITEMS[:-1]]


def test_a_random_order_has_all_tests_and_depends_on_the_seed_alone():
    assert tiers.shuffled(ITEMS, 1) == tiers.shuffled(ITEMS, 1) != tiers.shuffled(ITEMS, 2)
    assert sorted(map(id, tiers.shuffled(ITEMS, 1))) == sorted(map(id, ITEMS))


def test_cases_that_are_not_chosen_are_left_to_the_soak_run():
    cases = tiers.sampled([("a", 1), ("b", 2), ("c", 3)], [("b", 2)])
    assert [case.values for case in cases] == [("a", 1), ("b", 2), ("c", 3)]
    assert [bool(case.marks) for case in cases] == [True, False, True]
    assert [bool(case.marks) for case in tiers.sampled("abcde", 2)] == [False, True, False, True, False]
    with pytest.raises(AssertionError, match="none of the cases"):
        tiers.sampled("abc", ["d"])


def test_recorded_durations_are_of_tests_that_exist(collected):
    """So that a test that has got another name is not taken for a short one."""
    functions = {item.nodeid.partition("[")[0] for item in collected}
    stale = {name.partition("[")[0] for name in tiers.known_durations()} - functions
    assert len(stale) < 20, sorted(stale)
