"""Functions that remember earlier calls or draw random numbers are told; those that count or keep a log are not."""

import random
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import daedal

mode, count = 1, 0


def outside_dictionary():
    st = {"on": False}

    def thermostat(t, y):
        if y[0] < 18.0:
            st["on"] = True
        elif y[0] > 22.0:
            st["on"] = False
        return [10.0 * st["on"] - 0.1 * y[0]]

    return thermostat, "st"


def outer_variable():
    on = 0

    def thermostat(t, y):
        nonlocal on
        if y[0] < 18.0:
            on = 1
        elif y[0] > 22.0:
            on = 0
        return [10.0 * on - 0.1 * y[0]]

    return thermostat, "on"


def global_variable():
    def thermostat(t, y):
        global mode
        if y[0] > 22.0:
            mode = 0
        return [10.0 * mode - 0.1 * y[0]]

    return thermostat, "mode"


def attribute():
    memory = SimpleNamespace(last=0.0)

    def lagging(t, y):
        before, memory.last = memory.last, y[0]
        return [before - y[0]]

    return lagging, "last"


def log_that_is_read():
    history = [0.0]

    def lagging(t, y):
        history.append(y[0])
        return [history[-2] - y[0]]

    return lagging, "history"


def array():
    held = np.zeros(1)

    def lagging(t, y):
        before = held[0]
        held[0] = y[0]
        return [before - y[0]]

    return lagging, "array"


def generator():
    rng = np.random.default_rng(1)
    return (lambda t, y: [-y[0] + 1e-9 * rng.normal()]), "rng"


def bound_method():
    nr = np.random.default_rng(1).normal
    return (lambda t, y: [-y[0] + 1e-9 * nr()]), "nr"


def module():
    return (lambda t, y: [-y[0] + 1e-9 * random.random()]), "random"


@pytest.mark.parametrize(
    "make",
    [
        outside_dictionary,
        outer_variable,
        global_variable,
        attribute,
        log_that_is_read,
        array,
        generator,
        bound_method,
        module,
    ],
)
def test_a_function_that_remembers_is_told(make):
    function, name = make()
    with pytest.warns(daedal.errors.StatefulFunctionWarning, match=f"(?s)f.*{name}.*Remedy") as caught:
        daedal.solve(daedal.ODE(function, 1), (0.0, 0.1), [20.0], rtol=1e-2, atol=1e-2)
    assert len([w for w in caught if w.category is daedal.errors.StatefulFunctionWarning]) == 1


def counting_in_a_list():
    calls = [0]

    def counted(t, y):
        calls[0] += 1
        return [-y[0]]

    return counted


def counting_in_a_variable():
    calls = 0

    def counted(t, y):
        nonlocal calls
        calls += 1
        return [-y[0]]

    return counted


def counting_globally():
    def counted(t, y):
        global count
        count += 1
        return [-y[0]]

    return counted


def counting_in_an_attribute():
    class Model:
        calls = 0

        def __call__(self, t, y):
            self.calls += 1
            return [-y[0]]

    return Model()


def logging_times():
    times, last = [], {"t": 0.0}

    def logged(t, y):
        times.append(t)
        last["t"] = t
        return [-y[0] if y[0] > 0.0 else 0.0]

    return logged


def counting_in_an_array():
    calls = np.zeros(2, dtype=int)

    def counted(t, y):
        calls[0] += 1
        return [-y[0]]

    return counted


@pytest.mark.parametrize(
    "make",
    [
        counting_in_a_list,
        counting_in_a_variable,
        counting_globally,
        counting_in_an_attribute,
        logging_times,
        counting_in_an_array,
    ],
)
def test_counting_and_logging_are_not_told(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error", daedal.errors.StatefulFunctionWarning)
        sol = daedal.solve(daedal.ODE(make(), 1), (0.0, 1.0), [1.0])
    assert sol.y[0, -1] == pytest.approx(np.exp(-1.0), abs=1e-5)
