"""The mechanical models of the library: consistent data, right derivatives, sound references.

The references are checked without Daedal's integrators: the accelerations from the augmented system are given to SciPy.
"""

import math
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import daedal
from daedal import library
from daedal.mechanics.system_workspace import SystemWorkspace
from tiers import sampled

VARIANTS = [
    ("car_axis", {}),
    ("crank_slider", {}),
    ("crank_slider", {"m1": 2.0, "l2": 1.5, "phi1": 0.3, "rate": 1.0, "t1": 1.0}),
    ("double_pendulum", {}),
    ("double_pendulum", {"ill_conditioned": True}),
    ("double_pendulum", {"t1": 1.0}),
    ("double_pendulum", {"ill_conditioned": True, "t1": 10.0}),
    ("fekete", {"t1": 20.0}),
    ("flexible_slider_crank", {}),
    ("flexible_slider_crank", {"damped": True}),
    ("knife_edge", {}),
    ("knife_edge", {"gravity": 3.0, "omega": -1.0, "mass": 2.0, "t1": 4.0}),
    ("knife_edge_on_paraboloid", {}),
    ("knife_edge_on_paraboloid", {"gravity_z": 9.81, "mass": 2.0}),
    ("particle_on_paraboloid", {}),
    ("planar_pendulum", {}),
    ("planar_pendulum", {"mass": 3.0, "length": 0.7, "gravity": 9.81, "angle": -2.5, "t1": 3.0}),
    ("rod_pendulum", {}),
    ("rod_pendulum", {"m": 2.0, "l": 0.5, "gravity": 9.81, "angle": 1.0, "t1": 3.0}),
    ("rolling_disc", {}),
    ("rolling_disc", {"mass": 2.0, "gravity": 0.0}),
    ("seven_body", {}),
    ("seven_body", {"t1": 0.025}),
    ("spatial_pendulum", {}),
    ("spatial_pendulum", {"mass": 2.0, "length": 2.0, "t1": 1.0}),
    ("stability_example3", {}),
    ("stability_example3", {"nu": 100.0, "kappa": 0.0}),
    ("stability_example3", {"nu": 1000.0, "kappa": 2.0}),
]
MODELS = {
    name + "".join(f"-{key}={value}" for key, value in parameters.items()): library.get(name, **parameters)
    for name, parameters in VARIANTS
}


def every_model(condition=lambda model: True):
    """Run a test with every model that fulfils the condition."""
    chosen = {name: model for name, model in MODELS.items() if condition(model)}
    return pytest.mark.parametrize("model", list(chosen.values()), ids=list(chosen))


def split(model, y):
    n = model.problem.n_q
    return y[:n], y[n:]


def flow(model):
    """The underlying ODE (q, v)' = (v, a), as ``problem.at`` evaluates it but prepared once."""
    assembly = SystemWorkspace(model.problem, model.t_span[0], model.initial[0])

    def rate(t, y):
        acceleration, *_, statuses = assembly.accelerate(t, y)
        assert statuses[0] == 0
        return np.concatenate([split(model, y)[1], acceleration[0]])

    return rate


@cache
def early_state(name, fraction=0.3, limit=1.0):
    """A state inside the interval: (t, q, v)."""
    model = MODELS[name]
    t = min(fraction * model.t_span[1], limit)
    run = solve_ivp(flow(model), (0.0, t), np.concatenate(model.initial), rtol=1e-9, atol=1e-11, method="DOP853")
    return (t, *split(model, run.y[:, -1]))


def state_of(model):
    return early_state(next(name for name, other in MODELS.items() if other is model))


def size(v):
    """1 + the largest velocity."""
    return 1.0 + np.max(np.abs(v))


# --- the data -------------------------------------------------------------------------------------------------


@every_model()
def test_texts_and_names_are_complete(model):
    system = model.problem
    assert isinstance(system, daedal.MechanicalSystem)
    assert model.title and model.source and model.description
    assert model.equations.count(r"\begin") == model.equations.count(r"\end")
    assert set(model.plot["variables"]) <= set(system.names)
    assert len(system.constraint_names) == system.n_lambda == system.n_constraints + system.n_velocity_constraints
    assert model.index == (3 if system.n_constraints else 2)


@every_model()
def test_every_function_has_its_shape(model):
    system = model.problem
    n, m = system.n_q, system.n_lambda
    point = system.at(0.0, *model.initial)
    shapes = {
        "mass": (n, n),
        "force": (n,),
        "constraint": (system.n_constraints,),
        "velocity": (m,),
        "jacobian": (m, n),
        "bias": (m,),
        "acceleration": (n,),
        "multipliers": (m,),
    }
    assert {name: np.shape(getattr(point, name)) for name in shapes} == shapes


@every_model()
def test_initial_values_satisfy_the_constraints(model):
    point = model.problem.at(0.0, *model.initial)
    np.testing.assert_allclose(point.constraint, 0.0, atol=1e-13)
    np.testing.assert_allclose(point.velocity, 0.0, atol=1e-13)


@every_model()
def test_mass_is_symmetric_and_positive_definite(model):
    mass = np.asarray(model.problem.at(*state_of(model)).mass)
    np.testing.assert_array_equal(mass, mass.T)
    assert np.min(np.linalg.eigvalsh(mass)) > 0.0


@every_model(lambda model: model.problem.n_constraints > 0)
def test_jacobian_is_that_of_the_constraint(model):
    system, (t, q, v) = model.problem, state_of(model)
    jacobian = system.at(t, q, v).jacobian[: system.n_constraints]
    for k in range(system.n_q):
        shift = np.zeros(system.n_q)
        shift[k] = 1e-5
        difference = (system.at(t, q + shift, v).constraint - system.at(t, q - shift, v).constraint) / 2e-5
        np.testing.assert_allclose(jacobian[:, k], difference, atol=1e-8)


@every_model(lambda model: model.problem.n_constraints > 0)
def test_velocity_constraint_is_the_rate_of_the_position_constraint(model):
    system, (t, q, v) = model.problem, state_of(model)
    v = v + np.cos(np.arange(v.size))  # off the constraint
    h = 1e-5 / size(v)
    rate = (system.at(t + h, q + h * v, v).constraint - system.at(t - h, q - h * v, v).constraint) / (2.0 * h)
    np.testing.assert_allclose(system.at(t, q, v).velocity[: system.n_constraints], rate, atol=1e-8 * size(v))


@every_model()
def test_bias_is_the_rate_of_the_velocity_constraint(model):
    """d/dt (K v + k) = K a - gamma for any acceleration a."""
    system, (t, q, v) = model.problem, state_of(model)
    a = np.sin(1.0 + np.arange(v.size)) * size(v)
    h = 1e-5 / size(v)
    plus = system.at(t + h, q + h * v + 0.5 * h * h * a, v + h * a).velocity
    minus = system.at(t - h, q - h * v + 0.5 * h * h * a, v - h * a).velocity
    point = system.at(t, q, v)
    scale = size(v) ** 2
    np.testing.assert_allclose(point.jacobian @ a - point.bias, (plus - minus) / (2.0 * h), atol=3e-8 * scale)


FIRST = {model.name: key for key, model in reversed(MODELS.items())}  # parameters do not change the functions
COMPILED = ("crank_slider", "knife_edge_on_paraboloid")
"""Position constraints alone, and velocity constraints as well; others are compiled by ``make soak``."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(FIRST.values(), COMPILED))
def test_functions_compile_unchanged(name):
    model = MODELS[name]
    t, q, v = state_of(model)
    plain, compiled = model.problem.at(t, q, v), model.problem.compiled("numba").at(t, q, v)
    for name in ("mass", "force", "constraint", "velocity", "jacobian", "bias"):
        expected = getattr(plain, name)
        # derivatives that Daedal computes are differences in one case and complex steps in the other
        np.testing.assert_allclose(getattr(compiled, name), expected, rtol=1e-7, atol=1e-8 * size(v) ** 2, err_msg=name)


def test_models_can_be_had_compiled():
    for name in sorted({name for name, _ in VARIANTS}):
        plain, compiled = library.get(name), library.get(name, compiled=True)
        assert compiled.problem.n_q == plain.problem.n_q
        np.testing.assert_array_equal(compiled.initial[0], plain.initial[0])


@every_model(lambda model: "energy" in model.extra)
def test_energy_is_constant_along_the_flow(model):
    t, q, v = state_of(model)
    energy, a = model.extra["energy"], model.problem.at(t, q, v).acceleration
    h = 1e-6 / size(v)
    before = energy(q - h * v + 0.5 * h * h * a, v - h * a)
    after = energy(q + h * v + 0.5 * h * h * a, v + h * a)
    power = abs(v) @ abs(model.problem.at(t, q, v).mass @ a)
    assert abs(after - before) / (2.0 * h) < 1e-7 * (1.0 + power)


@every_model(lambda model: "energy" in model.extra)
def test_energy_of_many_states(model):
    q, v = model.initial
    many = model.extra["energy"](np.stack([q, q], axis=1), np.stack([v, 0.0 * v], axis=1))
    np.testing.assert_allclose(many, [model.extra["energy"](q, v), model.extra["energy"](q, 0.0 * v)], rtol=1e-14)


# --- the references ---------------------------------------------------------------------------------------------


@every_model(lambda model: model.reference is not None)
def test_reference_satisfies_the_constraints(model):
    q, v = split(model, model.reference.y)
    point = model.problem.at(model.reference.t, q, v)
    np.testing.assert_allclose(point.constraint, 0.0, atol=1e-12)
    np.testing.assert_allclose(point.velocity, 0.0, atol=1e-12 * size(v))


@every_model(lambda model: "lam" in model.extra)
def test_reference_multipliers_follow_from_the_reference(model):
    q, v = split(model, model.reference.y)
    lam = model.problem.at(model.reference.t, q, v).multipliers
    np.testing.assert_allclose(lam, model.extra["lam"], rtol=1e-7, atol=1e-8)


@every_model(lambda model: "exact" in model.extra)
def test_closed_solution_solves_the_equations(model):
    exact, h = model.extra["exact"], 1e-5
    np.testing.assert_allclose(exact(0.0), np.concatenate(model.initial), atol=1e-13)
    for t in np.linspace(0.0, model.t_span[1], 8):
        q, v = split(model, exact(t))
        point = model.problem.at(t, q, v)
        np.testing.assert_allclose(point.constraint, 0.0, atol=1e-12)
        np.testing.assert_allclose(point.velocity, 0.0, atol=1e-12)
        rates = (exact(t + h) - exact(t - h)) / (2.0 * h)
        np.testing.assert_allclose(rates, np.concatenate([v, point.acceleration]), atol=2e-7)
        np.testing.assert_allclose(model.extra["exact_lam"](t), point.multipliers, rtol=1e-7, atol=1e-8)


@every_model(lambda model: model.reference is not None and "exact" not in model.extra)
def test_reference_follows_from_the_underlying_ode(model):
    run = solve_ivp(flow(model), model.t_span, np.concatenate(model.initial), method="DOP853", rtol=1e-12, atol=1e-12)
    y, known = run.y[:, -1], model.reference.y
    assert np.max(np.abs(y - known) / np.maximum(1.0, np.abs(known))) < 1e-8


def test_planar_pendulum_agrees_with_the_published_values():
    expected = [-0.81158644619130383427, -0.58423235134539570106, -0.63152914906501758095, 0.87728879884106932896]
    model = library.planar_pendulum()
    np.testing.assert_allclose(model.reference.y, expected, atol=1e-13)
    np.testing.assert_allclose(model.extra["lam"], [1.7526970540361871032], atol=1e-13)


def test_rod_pendulum_is_back_after_50_periods():
    model = library.rod_pendulum()
    np.testing.assert_allclose(model.reference.y, [0.0, 1.0, math.pi / 2, 0.0, 0.0, 0.0], atol=1e-11)
    np.testing.assert_allclose(model.extra["lam"], [4.5834572, 0.0], atol=1e-7)


def test_double_pendulum_obeys_the_equations_of_its_source():
    model = library.double_pendulum()
    (m1, m2, l1, l2), g = (1.0, 2.0, 1.0, 2.0), 9.81
    q, v = model.extra["configuration"]((0.4, -1.1), (0.7, 2.0))
    point = model.problem.at(0.0, q, v)
    a, (k1, k2, k3, k4) = point.acceleration, point.multipliers
    first = (k2 + 2.0 * k4) * l1 * math.cos(q[2]) - (k1 + 2.0 * k3) * l1 * math.sin(q[2])
    second = k4 * l2 * math.cos(q[5]) - k3 * l2 * math.sin(q[5])
    expected = [m1 * g - k1, -k2, first, m2 * g - k3, -k4, second]
    masses = [m1, m1, m1 * l1**2 / 3.0, m2, m2, m2 * l2**2 / 3.0]
    np.testing.assert_allclose(masses * a, expected, atol=1e-10)


@pytest.mark.parametrize(("ill_conditioned", "condition"), [(True, 2.0e10), (False, 33.6)])
def test_condition_of_the_double_pendulum(ill_conditioned, condition):
    model = library.double_pendulum(ill_conditioned=ill_conditioned)
    point = model.problem.at(0.0, *model.initial)
    multiplier_matrix = point.jacobian @ np.linalg.solve(point.mass, point.jacobian.T)
    assert np.linalg.cond(multiplier_matrix) == pytest.approx(condition, rel=0.02)


def test_rods_of_the_crank_slider_stay_at_the_same_height():
    q, v = library.crank_slider().extra["configuration"](0.8, 2.0)
    assert q[1] == pytest.approx(q[4], abs=1e-15)
    assert v[1] == pytest.approx(v[4], abs=1e-15)


def test_crank_slider_of_equal_rods_loses_rank_when_upright():
    model = library.crank_slider(l1=1.0, l2=1.0, phi1=1.0)
    q, v = model.extra["configuration"](math.pi / 2 - 1e-7, 0.0)
    smallest = np.linalg.svd(model.problem.at(0.0, q, v).jacobian, compute_uv=False)[-1]
    assert smallest < 1e-6


def test_squeezer_starts_with_the_known_accelerations():
    model = library.seven_body()
    point = model.problem.at(0.0, *model.initial)
    expected = [14222.4439199541138705911625887, -10666.8329399655854029433719415, 0.0, 0.0, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(point.acceleration, expected, rtol=1e-11, atol=1e-7)
    expected = [98.5668703962410896057654982170, -6.12268834425566265503114393122, 0.0, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(point.multipliers, expected, rtol=1e-11, atol=1e-10)


def test_squeezer_mass_is_that_of_the_bodies():
    """The kinetic energy from the centres of gravity, differentiated numerically along the motion."""
    from daedal.library import squeezer as data

    model = MODELS["seven_body"]
    t, q, v = state_of(model)

    def centres(q):
        b, th, g, p, d, o, e = q
        k, w = data.E - data.EA, data.ZF - data.FA
        return np.array(
            [
                [data.RA * math.cos(b), data.RA * math.sin(b)],
                [
                    data.RR * math.cos(b) - data.DA * math.cos(b + th),
                    data.RR * math.sin(b) - data.DA * math.sin(b + th),
                ],
                [data.SA * math.sin(g) + data.SB * math.cos(g), -data.SA * math.cos(g) + data.SB * math.sin(g)],
                [data.ZT * math.cos(d) + k * math.sin(p + d), data.ZT * math.sin(d) - k * math.cos(p + d)],
                [data.TA * math.cos(d) - data.TB * math.sin(d), data.TA * math.sin(d) + data.TB * math.cos(d)],
                [data.U * math.sin(e) + w * math.cos(o + e), -data.U * math.cos(e) + w * math.sin(o + e)],
                [data.UA * math.sin(e) - data.UB * math.cos(e), -data.UA * math.cos(e) - data.UB * math.sin(e)],
            ]
        )

    masses = np.array([data.M1, data.M2, data.M3, data.M4, data.M5, data.M6, data.M7])
    inertias = np.array([data.I1, data.I2, data.I3, data.I4, data.I5, data.I6, data.I7])
    h = 1e-8
    velocities = (centres(q + h * v) - centres(q - h * v)) / (2.0 * h)
    rates = np.array([v[0], v[0] + v[1], v[2], v[3] + v[4], v[4], v[5] + v[6], v[6]])
    kinetic = 0.5 * masses @ np.sum(velocities**2, axis=1) + 0.5 * inertias @ rates**2
    assert 0.5 * v @ model.problem.at(t, q, v).mass @ v == pytest.approx(kinetic, rel=1e-8)


def test_angular_momentum_of_the_spatial_pendulum_is_constant():
    model = library.spatial_pendulum()
    momentum = model.extra["angular_momentum"]
    assert momentum(*split(model, model.reference.y)) == pytest.approx(momentum(*model.initial), rel=1e-13)


@pytest.mark.parametrize("nu", [1.0, 100.0])
def test_direction_of_the_constraint_force_in_the_turning_problem(nu):
    """M^-1 C^T = (2 + t) ((2 - t) nu, nu - 1): the data that fit the tables of the paper."""
    t = 0.4
    point = library.stability_example3(nu).problem.at(t, np.ones(2), np.ones(2))
    expected = (2.0 + t) * np.array([(2.0 - t) * nu, nu - 1.0])
    np.testing.assert_allclose(np.linalg.solve(point.mass, point.jacobian[0]), expected, rtol=1e-8, atol=1e-10)


# --- parameters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("car_axis", {"eps": 0.1}),
        ("crank_slider", {"l2": 3.0}),
        ("double_pendulum", {"m1": 5.0}),
        ("double_pendulum", {"t1": 2.0}),
        ("knife_edge_on_paraboloid", {"gravity_z": 1.0}),
        ("particle_on_paraboloid", {"t1": 2.0}),
        ("seven_body", {"torque": 0.1}),
        ("spatial_pendulum", {"speed": 1.0}),
    ],
)
def test_changed_parameters_have_no_reference(name, parameters):
    model = library.get(name, **parameters)
    assert model.reference is None
    assert "lam" not in model.extra


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("planar_pendulum", {"angle": 4.0}, "between -pi and pi"),
        ("rod_pendulum", {"angle": -4.0}, "between -pi and pi"),
        ("knife_edge", {"omega": 0.0}, "other than 0"),
        ("rolling_disc", {"radius": 0.0}, "radius=0.0 must be a positive number"),
        ("crank_slider", {"l2": 0.4}, "cannot join the crank"),
        ("stability_example3", {"nu": 0.0}, "nu=0.0 must be a positive number"),
    ],
)
def test_impossible_parameters_are_refused(name, parameters, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        library.get(name, **parameters)
