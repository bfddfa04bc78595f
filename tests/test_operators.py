"""Solutions inside JAX, PyTorch and PyTensor: gradients by the checks of these packages, compiled and in batches."""

from functools import partial

import numpy as np
import pytest

import daedal
from differentiable_cases import CASES
from oracles import oracle

TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def decay():
    return daedal.ODE(lambda t, y, p, u: [-p["k"] * y[0] + u], 1, params={"k": 1.0}, inputs=["u"])


def varied(case, array):
    """The arguments of a case with all of their numbers as arrays of a package, and the function of these."""
    initial, mode = case.initial, None
    if isinstance(initial, tuple) and isinstance(initial[0], str):
        mode, initial = initial
    parts = [initial] if isinstance(initial, list) else list(initial)
    names = [] if case.params is None else list(case.params) if isinstance(case.params, dict) else [None]
    values = [np.asarray(x, dtype=float) for x in parts if x is not None]
    values += [np.asarray(case.params if name is None else case.params[name], dtype=float) for name in names]
    samples = case.inputs or {}
    values += [np.asarray(x[1], dtype=float) for x in samples.values()]

    def arguments(*given):
        left = iter(given)
        made = tuple(None if x is None else next(left) for x in parts)
        made = made if mode is None else (mode, made)
        params = None if not names else {name: next(left) for name in names}
        params = params[None] if names == [None] else params
        return made, params, {name: (x[0], next(left)) for name, x in samples.items()} or None

    return [array(value) for value in values], arguments


# --- JAX --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def jax():
    package = oracle("jax")
    package.config.update("jax_enable_x64", True)
    return package


@pytest.mark.parametrize("name", CASES)
def test_jax_checks_forward_and_reverse_derivatives(jax, name):
    from jax.test_util import check_grads

    case = CASES[name]()
    run = case.solver(daedal.jax)
    values, arguments = varied(case, jax.numpy.asarray)
    check_grads(lambda *x: run(*arguments(*x)), values, 1, modes=["fwd", "rev"], atol=1e-3, rtol=1e-3, eps=case.eps)


def test_jax_checks_adjoint_derivatives(jax):
    from jax.test_util import check_grads

    case = CASES["mechanism"]()
    run = case.solver(daedal.jax, derivatives="adjoint")
    values, arguments = varied(case, jax.numpy.asarray)
    check_grads(lambda *x: run(*arguments(*x)), values, 1, modes=["rev"], atol=1e-4, rtol=1e-4, eps=1e-4)


def test_jax_compiles_maps_and_differentiates(jax):
    np_ = jax.numpy
    run = daedal.jax.solve(decay(), (0.0, 1.0), **TIGHT)

    def end(k, u):
        return run([1.0], {"k": k}, {"u": ([0.0, 0.5], u)})[0]

    k, u = np_.array([1.0, 2.0, 3.0]), np_.array([0.5, -0.5])
    alone = np_.stack([end(x, u) for x in k])
    assert np.array_equal(jax.vmap(end, (0, None))(k, u), alone)
    assert np.array_equal(jax.jit(jax.vmap(end, (0, None)))(k, u), alone)
    slopes = jax.vmap(jax.grad(end, (0, 1)), (0, None))(k, u)
    assert slopes[1].shape == (3, 2)
    for row in range(3):
        expected = jax.jacfwd(end, (0, 1))(k[row], u)
        assert slopes[0][row] == pytest.approx(float(expected[0]), rel=1e-9)
        assert np.asarray(slopes[1][row]) == pytest.approx(np.asarray(expected[1]), rel=1e-9)
    total = jax.jit(jax.grad(lambda k: np_.sum(jax.vmap(end, (0, None))(k, u))))(k)
    assert np.asarray(total) == pytest.approx(np.asarray(slopes[0]), rel=1e-9)


def test_jax_batches_are_arguments_with_one_more_axis(jax):
    run = daedal.jax.solve(decay(), (0.0, 1.0), t_eval=[0.5, 1.0], **TIGHT)
    k = jax.numpy.array([1.0, 2.0])
    assert np.asarray(run([1.0], {"k": k})[:, 0]) == pytest.approx(np.exp(-np.outer([1.0, 2.0], [0.5, 1.0])), abs=1e-8)
    with pytest.raises(daedal.InvalidProblemError, match="batches of different lengths"):
        run(jax.numpy.ones((3, 1)), {"k": k})


def test_jax_passes_on_errors_and_nan(jax):
    blows_up = daedal.ODE(lambda t, y, p: [p["k"] * y[0] ** 2], 1, params={"k": 1.0})
    raises, gives_nan = (daedal.jax.solve(blows_up, (0.0, 1.0), failed=failed) for failed in ("raise", "nan"))
    k = jax.numpy.array([0.5, 2.0])
    with pytest.raises(daedal.IntegrationError, match="singularity"):
        raises([1.0], {"k": k[1]})
    with pytest.raises(Exception, match="singularity"):
        jax.jit(lambda k: raises([1.0], {"k": k}))(k[1]).block_until_ready()
    assert np.isnan(jax.vmap(lambda k: gives_nan([1.0], {"k": k})[0])(k)).tolist() == [False, True]
    with pytest.raises(NotImplementedError, match="second derivatives"):
        jax.hessian(lambda k: raises([1.0], {"k": k})[0])(0.5)
    with pytest.raises(daedal.InvalidProblemError, match="times of samples must be known"):
        run = daedal.jax.solve(decay(), (0.0, 1.0))
        jax.jit(lambda t: run([1.0], None, {"u": ([0.0, t], [1.0, 2.0])}))(0.5)


def test_jax_gives_nan_where_functions_are_not_finite_at_the_start_or_an_event_ends_the_run(jax):
    np_, log = jax.numpy, daedal.ODE(lambda t, y, p: [-np.log(p["k"]) * y[0]], 1, params={"k": 2.0})
    gives_nan = daedal.jax.solve(log, (0.0, 1.0), failed="nan")
    end = jax.vmap(lambda k: gives_nan([1.0], {"k": k})[0])
    assert np.isnan(end(np_.array([2.0, -1.0, 0.0, np.nan]))).tolist() == [False, True, True, True]
    assert np.isnan(end(np_.array([-2.0, -1.0]))).all()
    assert np.isnan(jax.grad(lambda k: gives_nan([1.0], {"k": k})[0])(-1.0))
    with pytest.raises(daedal.InvalidProblemError, match="f is not finite at the initial values"):
        daedal.jax.solve(log, (0.0, 1.0))([1.0], {"k": np_.array(-1.0)})
    half = daedal.Event(lambda t, y: y[0] - 0.5, terminal=True)
    raises, gives_nan = (daedal.jax.solve(log, (0.0, 3.0), events=[half], failed=failed) for failed in ("raise", "nan"))
    with pytest.raises(daedal.IntegrationError, match=r"the run ended before t = 3\."):
        raises([1.0])
    assert np.isnan(gives_nan([1.0])).all()


def test_jax_keeps_single_precision(jax):
    found = daedal.jax.solve(decay(), (0.0, 1.0))(jax.numpy.ones(1, dtype="float32"))
    assert found.dtype == np.float32


# --- PyTorch ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_torch_checks_reverse_and_forward_derivatives(name):
    torch = oracle("torch")
    case = CASES[name]()
    run = case.solver(daedal.torch)
    values, arguments = varied(case, partial(torch.tensor, dtype=torch.float64, requires_grad=True))
    check = partial(torch.autograd.gradcheck, eps=1e-5, atol=1e-3, rtol=1e-3, check_forward_ad=True)
    assert check(lambda *x: run(*arguments(*x)), values)


def test_torch_batches_and_maps():
    torch = oracle("torch")
    run = daedal.torch.solve(decay(), (0.0, 1.0), **TIGHT)
    k = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda k: run([1.0], {"k": k}), k, eps=1e-5, atol=1e-4)
    alone = torch.stack([run([1.0], {"k": x}) for x in k])
    assert torch.equal(run([1.0], {"k": k}), alone) and torch.equal(
        torch.vmap(lambda x: run([1.0], {"k": x}))(k), alone
    )
    (slopes,) = torch.autograd.grad(alone.sum(), k)
    mapped = torch.func.vmap(torch.func.grad(lambda x: run([1.0], {"k": x})[0]))(k.detach())
    assert torch.allclose(slopes, mapped, rtol=1e-10)
    jacobian = torch.func.jacfwd(lambda k: run([1.0], {"k": k})[:, 0])(k.detach())
    assert torch.allclose(jacobian, torch.diag(slopes), atol=1e-12)
    assert run(torch.ones(1)).dtype == torch.float32


def test_torch_refuses_second_derivatives_and_passes_on_errors():
    torch = oracle("torch")
    blows_up = daedal.ODE(lambda t, y, p: [p["k"] * y[0] ** 2], 1, params={"k": 1.0})
    run = daedal.torch.solve(blows_up, (0.0, 1.0))
    k = torch.tensor(0.5, requires_grad=True)
    (slope,) = torch.autograd.grad(run([1.0], {"k": k})[0], k, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad(slope, k)
    with pytest.raises(daedal.IntegrationError):
        run([1.0], {"k": 4.0 * k})


# --- PyTensor ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_pytensor_checks_gradients(name):
    oracle("pytensor")
    from pytensor.gradient import verify_grad

    case = CASES[name]()
    run = case.solver(daedal.pytensor)
    values, arguments = varied(case, np.array)
    verify_grad(lambda *x: run(*arguments(*x)), values, rng=np.random.default_rng(1), rel_tol=1e-3, abs_tol=1e-3)


def test_pytensor_batches_and_forward_products():
    oracle("pytensor")
    import pytensor
    import pytensor.tensor as pt
    from pytensor.gradient import Rop, verify_grad

    run = daedal.pytensor.solve(decay(), (0.0, 1.0), failed="nan", **TIGHT)
    verify_grad(lambda k: run([1.0], {"k": k}), [np.array([1.0, 2.0])], rng=np.random.default_rng(1))
    k, change = pt.dscalar("k"), pt.dscalar("change")
    end = run([1.0], {"k": k})
    assert end.type.shape == (1,)
    assert Rop(end, k, change).eval({k: 2.0, change: 3.0}) == pytest.approx([-3.0 * np.exp(-2.0)], abs=1e-8)
    function = pytensor.function([k], [end, pt.grad(end[0], k)])
    assert all(np.isnan(x).all() for x in function(np.nan))


@pytest.mark.slow
def test_models_of_pymc_are_sampled_with_gradients():
    pymc = oracle("pymc")
    run = daedal.pytensor.solve(decay(), (0.0, 2.0), t_eval=[0.5, 1.0, 1.5, 2.0], **TIGHT)
    measured = np.exp(-1.3 * np.array([0.5, 1.0, 1.5, 2.0]))
    with pymc.Model():
        k = pymc.LogNormal("k", 0.0, 1.0)
        pymc.Normal("y", run([1.0], {"k": k})[0], 0.01, observed=measured)
        options = {"chains": 1, "cores": 1, "progressbar": False, "random_seed": 1, "compute_convergence_checks": False}
        trace = pymc.sample(40, tune=60, **options)
    assert float(trace.posterior["k"].mean()) == pytest.approx(1.3, abs=0.05)
