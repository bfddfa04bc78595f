"""Solutions as functions of numbers: values, both products with the Jacobian, batches, failures, bad arguments."""

import subprocess
import sys

import numpy as np
import pytest

import daedal
from daedal.exchange.differentiable import DifferentiableSolve
from differentiable_cases import CASES


def bound(case, initial=None, params=None, inputs=None, **further):
    """The run of a case, and its numbers."""
    options = {"rtol": 1e-9, "atol": 1e-11, **case.options}
    given = {"hold": "zero", "derivatives": "auto", "failed": "raise", **further}
    problem = DifferentiableSolve(case.problem, case.span, case.t_eval, case.outputs, **given, options=options)
    run, form = problem.bound(initial or case.initial, params or case.params, inputs or case.inputs)
    return run, np.concatenate([np.ravel(np.asarray(value, dtype=float)) for value in form.values])


@pytest.mark.parametrize("name", CASES)
def test_products_are_those_of_differences_and_transposes_of_each_other(name):
    case = CASES[name]()
    run, theta = bound(case, derivatives="forward")
    generator = np.random.default_rng(1)
    change, weights = (
        generator.normal(size=theta.size) * np.maximum(np.abs(theta), 0.1),
        generator.normal(size=run.shape),
    )
    h = case.eps
    ends = run.values(np.stack([theta + h * change, theta - h * change]))
    slope = (ends[0] - ends[1]) / (2.0 * h)
    size = np.abs(slope).max()
    pushed = run.pushed(theta[None], change[None])[0]
    assert pushed == pytest.approx(slope, abs=3e-5 * size)
    pulled = run.pulled(theta[None], weights[None])[0]
    assert pulled @ change == pytest.approx(np.sum(weights * pushed), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name]().has_adjoint])
def test_adjoint_equations_give_the_product_of_sensitivities(name):
    case = CASES[name]()
    weights = np.random.default_rng(2).normal(size=bound(case)[0].shape)
    forward, backward = (
        run.pulled(theta[None], weights[None])[0]
        for run, theta in (bound(case, derivatives=kind) for kind in ("forward", "adjoint"))
    )
    assert backward == pytest.approx(forward, abs=1e-5 * np.abs(forward).max())


@pytest.mark.parametrize("name", CASES)
def test_batches_have_the_bits_of_single_runs(name):
    case = CASES[name]()
    run, theta = bound(case)
    rows = np.stack([theta, theta * (1.0 + 1e-3), theta])
    together = run.values(rows)
    assert together.shape == (3, *run.shape)
    for row, found in zip(rows, together):
        assert np.array_equal(run.values(row[None])[0], found)


def test_values_are_those_of_solve():
    case = CASES["mechanism"]()
    run, theta = bound(case)
    given = {"params": case.params, "inputs": case.inputs, "rtol": 1e-9, "atol": 1e-11, "t_eval": [1.0]}
    assert np.array_equal(
        run.values(theta[None])[0], daedal.solve(case.problem, case.span, case.initial, **given).y[:, 0]
    )


def test_starts_by_name_and_numbers_in_nested_parameters():
    problem = daedal.ODE(
        lambda t, y, p: [p["net"]["w"][0, 1] * y[1], -p["net"]["w"][1, 0] * y[0] * p["scale"]],
        2,
        params={"net": {"w": np.array([[0.0, 1.0], [4.0, 0.0]]), "depth": 2}, "scale": 1},
        names=["x", "y"],
    )
    solver = DifferentiableSolve(problem, (0.0, 1.0), None, ["x"], "zero", "auto", "raise", {"rtol": 1e-10})
    run, _ = solver.bound({"x": 1.0, "y": 0.0}, {"net": {"w": np.array([[0.0, 1.0], [9.0, 0.0]])}}, None)
    assert run.labels == ["x(0)", "y(0)", "net.w[0, 0]", "net.w[0, 1]", "net.w[1, 0]", "net.w[1, 1]"]
    theta = np.array([1.0, 0.0, 0.0, 1.0, 9.0, 0.0])
    assert run.values(theta[None])[0] == pytest.approx([np.cos(3.0)], abs=1e-7)
    slopes = run.pulled(theta[None], np.ones((1, 1)))[0]
    assert slopes[[0, 1, 4]] == pytest.approx([np.cos(3.0), np.sin(3.0) / 3.0, -np.sin(3.0) / 6.0], abs=1e-6)


def explosive():
    return daedal.ODE(lambda t, y, p: [p["k"] * y[0] ** 2], 1, params={"k": 1.0})


def test_members_that_fail_raise_or_are_nan():
    def run(failed):
        given = DifferentiableSolve(explosive(), (0.0, 1.0), None, None, "zero", "auto", failed, {})
        return given.bound([1.0], {"k": 0.5}, None)[0]

    theta = np.array([[1.0, 0.5], [1.0, 2.0], [1.0, np.nan], [1.0, 0.25]])
    found = run("nan").values(theta)
    assert found[[0, 3], 0] == pytest.approx([2.0, 4.0 / 3.0], rel=1e-5) and np.isnan(found[1:3]).all()
    assert np.isnan(run("nan").pulled(theta[1:2], np.ones((1, 1)))).all()
    with pytest.raises(daedal.IntegrationError):
        run("raise").values(theta[:2])
    with pytest.raises(daedal.IntegrationError):
        run("raise").pulled(theta[1:2], np.ones((1, 1)))


@pytest.mark.parametrize("failed", ["raise", "nan"])
def test_exceptions_of_functions_arrive_unchanged(failed):
    class Broken(Exception):
        pass

    def f(t, y, p):
        if float(p["k"]) > 1.5:
            raise Broken("out of order")
        return [-p["k"] * y[0]]

    problem = daedal.ODE(f, 1, params={"k": 1.0})
    given = DifferentiableSolve(problem, (0.0, 1.0), None, None, "zero", "auto", failed, {"compile": "never"})
    run = given.bound([1.0], {"k": 1.0}, None)[0]
    for theta in ([[1.0, 2.0]], [[1.0, 1.0], [1.0, 2.0]]):
        with pytest.raises(Broken, match="out of order"):
            run.values(np.array(theta))


def test_runs_that_end_before_their_output_times_have_failed():
    stop = daedal.Event(lambda t, y: y[0] - 0.5, terminal=True)
    decay = daedal.ODE(lambda t, y, p: [-p["k"] * y[0]], 1, params={"k": 1.0})
    given = DifferentiableSolve(decay, (0.0, 1.0), [0.5, 1.0], None, "zero", "auto", "raise", {"events": stop})
    with pytest.raises(daedal.IntegrationError, match=r"ended before t = 1\. The event 'event 0' stopped"):
        given.bound([1.0], None, None)[0].values(np.array([[1.0]]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0, 2.0], {"k": 1.0}), r"initial\['y0'\] has shape \(2,\); expected \(1,\)"),
        (([1.0], {"k": [[1.0]]}), r"params\['k'\] has shape \(1, 1\); expected \(\)"),
        (([1.0], {"q": 1.0}), "there is no parameter 'q'"),
        (([1.0], [1.0]), "params must be a mapping"),
        (([1.0], None, {"w": 1.0}), "'w' is not an input"),
        (([1.0], None, {"u": ([0.0, 1.0], [1.0])}), r"inputs\['u'\] has shape \(1,\); expected \(2,\)"),
        (({"x": 1.0}, None), "there is no variable 'x'"),
        ((None, None), "initial is missing"),
        ((([1.0], None, 3.0), None), "initial has 3 entries"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    problem = daedal.ODE(lambda t, y, p, u: [-p["k"] * y[0] + u], 1, params={"k": 1.0}, inputs=["u"])
    given = DifferentiableSolve(problem, (0.0, 1.0), None, None, "zero", "auto", "raise", {})
    with pytest.raises(daedal.DaedalError, match=words):
        given.bound(*arguments, *[None] * (3 - len(arguments)))


@pytest.mark.parametrize(
    ("further", "words"),
    [
        ({"derivatives": "backward"}, "derivatives must be 'auto' or 'forward' or 'adjoint'"),
        ({"failed": "ignore"}, "failed must be 'raise' or 'nan'"),
        ({"outputs": ["b"]}, "there is no variable 'b'"),
        ({"outputs": []}, "outputs is empty"),
        ({"t_eval": 1.0}, "t_eval must be a vector"),
        ({"sensitivities": ["k"]}, "sensitivities cannot be given"),
    ],
)
def test_wrong_settings_are_refused(further, words):
    decay = daedal.ODE(lambda t, y: [-y[0]], 1)
    given = {"t_eval": None, "outputs": None, "hold": "zero", "derivatives": "auto", "failed": "raise"}
    options = {name: further[name] for name in further if name not in given}
    with pytest.raises(daedal.DaedalError, match=words):
        DifferentiableSolve(
            decay, (0.0, 1.0), **(given | {k: further[k] for k in further if k in given}), options=options
        )


@pytest.mark.parametrize("package", ["jax", "torch", "pytensor"])
def test_a_missing_package_is_named_with_the_extra_that_brings_it(package):
    code = f"""
import subprocess
import sys
sys.modules["{package}"] = None
import daedal
try:
    daedal.{package}.solve(daedal.ODE(lambda t, y: [-y[0]], 1), (0.0, 1.0))
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"daedal.{package} needs {package}" in run.stdout and f"pip install daedal[{package}]" in run.stdout
