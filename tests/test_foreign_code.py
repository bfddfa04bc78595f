"""Functions that call compiled code of other packages: called with numbers, never run on symbols."""

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from types import ModuleType

import numpy as np
import pytest

import daedal
from daedal.symbolic.substitution import _is_foreign


def solved(function, n=1, **options):
    problem = daedal.ODE(function, n, **options)
    return daedal.solve(problem, (0.0, 1.0), np.ones(n)), str(problem.functions)


@pytest.fixture
def extension(monkeypatch):
    """A package with compiled code: objects of it take floats only."""
    package = ModuleType("fast_code")
    package.__file__ = f"/somewhere/fast_code{EXTENSION_SUFFIXES[0]}"
    source = (
        "class Handle:\n"
        "    def __init__(self, k): self.k = k\n"
        "    def __call__(self, y):\n"
        "        assert type(self) is Handle and type(y) in (float, np.float64), 'a crash'\n"
        "        return -self.k * y\n"
        "def rate(y):\n"
        "    assert type(y) in (float, np.float64), 'a crash'\n"
        "    return -y\n"
    )
    package.np = np
    exec(source, vars(package))
    monkeypatch.setitem(sys.modules, "fast_code", package)
    _is_foreign.cache_clear()
    yield package
    _is_foreign.cache_clear()


class Model:
    """A class of the user's that holds an object of another package."""

    def __init__(self, handle):
        self.handle = handle

    def f(self, t, y):
        return [self.handle(y[0])]


def test_compiled_code_is_called_with_numbers(extension):
    handle = extension.Handle(1.0)

    class Derived(extension.Handle):
        pass

    derived = Derived(1.0)
    for function in (
        lambda t, y: [handle(y[0])],
        lambda t, y: [extension.rate(y[0])],
        lambda t, y: [extension.Handle(1.0)(y[0])],
        Model(handle).f,
        lambda t, y: [-derived.k * y[0]],
    ):
        sol, words = solved(function)
        assert sol.y[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-5)
        assert "uses fast_code, whose code accepts only numbers" in words
    sol, _ = solved(lambda t, y, p: [p["rate"](y[0])], params={"rate": handle})
    assert sol.y[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-5)


def test_a_module_that_wraps_compiled_code_is_called_with_numbers(extension, monkeypatch):
    """As SWIG writes them, wherever they lie: functions in Python that hand their arguments to a compiled module."""
    wrapper, compiled = ModuleType("wrapper"), ModuleType("_wrapper")
    wrapper.__file__, compiled.__file__ = "/somewhere/wrapper.py", f"/somewhere/_wrapper{EXTENSION_SUFFIXES[0]}"
    wrapper._wrapper, compiled.rate = compiled, extension.rate
    exec("def rate(y): return _wrapper.rate(y)", vars(wrapper))
    for module in (wrapper, compiled):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    sol, words = solved(lambda t, y: [wrapper.rate(y[0])])
    assert sol.y[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-5)
    assert "uses wrapper, whose code accepts only numbers" in words


def test_a_casadi_function_does_not_crash():
    casadi = pytest.importorskip("casadi")
    x = casadi.SX.sym("x", 2)
    f = casadi.Function("f", [x], [-x])
    sol, words = solved(lambda t, y: np.array(f(y)).ravel(), 2)
    assert sol.y[:, -1] == pytest.approx(np.exp([-1.0, -1.0]), rel=1e-5)
    assert "uses casadi, whose code accepts only numbers" in words


def test_tables_of_pandas_and_xarray():
    pd, xr = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    series, frame = pd.Series([1.0, 2.0], index=["a", "b"]), pd.DataFrame({"k": [1.0, 2.0]})
    array = xr.DataArray([1.0, 2.0], dims="x")
    for function, package in (
        (lambda t, y: -series * y, "pandas"),
        (lambda t, y: [-series["a"] * y[0], -series["b"] * y[1]], "pandas"),
        (lambda t, y: -frame["k"].to_numpy() * y, "pandas"),
        (lambda t, y: -np.asarray(frame["k"]) * y, "pandas"),
        (lambda t, y: -array * y, "xarray"),
        (lambda t, y: -array.values * y, "xarray"),
    ):
        sol, words = solved(function, 2)
        assert sol.y[:, -1] == pytest.approx(np.exp([-1.0, -2.0]), rel=1e-4)
        assert f"uses {package}, whose code accepts only numbers" in words
    sol, _ = solved(lambda t, y, p: [-p["a"] * y[0]], params=series)
    assert sol.y[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-5)
    series["a"] = 2.0  # numbers are read when the function is called
    sol, _ = solved(lambda t, y: [-series["a"] * y[0]])
    assert sol.y[0, -1] == pytest.approx(np.exp(-2.0), rel=1e-5)
