"""A reduction is made once and begins from many starts: what comes out is the same as from a fresh one, bit for bit."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import daedal
from daedal.mechanics.formulations import FORMULATIONS, GGL, Baumgarte, Formulation, Index2
from daedal.mechanics.formulations.constraint_levels import VelocityConstraints
from daedal.mechanics.formulations.formulation import ACCELERATION, Shape, Sizes
from daedal.mechanics.formulations.reformulation import attach_monitor
from daedal.mechanics.formulations.second_order_forms import second_order_form
from daedal.mechanics.hessenberg_workspace import HessenbergWorkspace
from daedal.mechanics.sparse.sparse_workspace import SparseWorkspace
from daedal.mechanics.system_workspace import SystemWorkspace

PENDULUM = daedal.library.get("planar_pendulum").problem
DISC = daedal.library.get("rolling_disc")
FORMS = [
    *[form() for form in FORMULATIONS.values()],
    VelocityConstraints(),
    GGL(projection="unit"),
    GGL(projection=lambda t, q: 2.0 * q[:, None]),
    GGL(multipliers="derivative"),
    Index2(gamma=2.0),
    Baumgarte(gamma=5.0),
]


def name_of(form):
    return "GGL(projection=function)" if "lambda" in repr(form) else repr(form)


def swinging(angle, direction=1):
    """An assembled pendulum and a start on its circle."""
    q = np.array([np.sin(angle), -np.cos(angle)])
    assembly = SystemWorkspace(PENDULUM, 0.0, np.array([1.0, 1.0]), autonomous=True)
    start = assembly.start(0.1 * angle, np.concatenate([q, 0.7 * np.array([np.cos(angle), np.sin(angle)])]))
    return assembly, replace(start, direction=direction)


def fingerprint(reduction):
    """All that a method takes from a reduction, at its start and beside it."""
    y, yp, t = reduction.y0, reduction.yp0, reduction.start.t
    beside = 0.3 * np.cos(1.0 + np.arange(y.size))
    values = [y, yp]
    if reduction.rate is not None:
        values.append(reduction.rate.evaluate_block(t, (y + 1e-3 * beside,)))
    values.append(reduction.problem.residual(t, *_arguments(reduction, y + 1e-3 * beside, yp + beside)))
    if reduction.monitor is not None:
        values += [reduction.monitor.array("basis"), reduction.monitor.array("norms"), [reduction.monitor["t"]]]
    if reduction.multiplier_sizes is not None:
        values += reduction.multiplier_sizes(reduction.start)
    values.append(reduction.states(np.array([t]), y[:, None].copy()).ravel())
    return np.concatenate([np.ravel(v) for v in values])


def _arguments(reduction, y, yp):
    if not hasattr(reduction.problem, "source"):
        return y, yp
    x, xp = reduction.problem.split(y)
    return x, xp, 0.1 * xp


@pytest.mark.parametrize("form", FORMS, ids=name_of)
@pytest.mark.parametrize("built", [False, True], ids=["records made later", "records at hand"])
def test_a_reduction_begins_anew_like_a_fresh_one(form, built):
    assembly, first = swinging(0.3)
    second = swinging(-1.2, direction=-1)[1]
    again = form.reduce(assembly, first)
    attach_monitor(again, amplification=True)
    if built:
        fingerprint(again)
    again.begin(second)
    other_assembly, _ = swinging(0.3)
    fresh = form.reduce(other_assembly, second)
    attach_monitor(fresh, amplification=True)
    assert np.array_equal(fingerprint(again), fingerprint(fresh))


@pytest.mark.parametrize("name", ["index3", "index2", "index1", "baumgarte", "ggl", "minimal_extension"])
def test_a_form_of_second_order_begins_anew_like_a_fresh_one(name):
    assembly, first = swinging(0.3)
    second = swinging(-1.2, direction=-1)[1]
    again, fresh = (second_order_form(FORMULATIONS[name](), assembly, start, project=True) for start in (first, second))
    fingerprint(again)
    again.begin(second)
    assert np.array_equal(fingerprint(again), fingerprint(fresh))


def test_a_linear_form_begins_anew_like_a_fresh_one():
    model = daedal.library.stability_example2(nu=10.0)
    assembly = HessenbergWorkspace(model.problem)
    z = np.asarray(model.initial[0], dtype=float)
    first, second = assembly.start(0.0, z), assembly.start(0.2, 1.1 * z)
    for name in ("essential", "state_space", "ggl", "baumgarte"):
        again, fresh = (FORMULATIONS[name]().reduce(assembly, start) for start in (first, second))
        fingerprint(again)
        again.begin(second)
        assert np.array_equal(fingerprint(again), fingerprint(fresh))


def test_explicit_methods_cost_no_implicit_problem():
    assembly, start = swinging(0.3)
    reduction = VelocityConstraints().reduce(assembly, start)
    attach_monitor(reduction)
    assert reduction.n == reduction.n_state == 4 and reduction.hook[1] is reduction.monitor
    assert reduction.names == tuple(assembly.state_names()) and reduction.options == {}
    assert "problem" not in vars(reduction) and "record" not in vars(reduction)
    assert reduction.rate is not None and "problem" not in vars(reduction)


def test_a_monitor_is_attached_once():
    assembly, start = swinging(0.3)
    reduction = VelocityConstraints().reduce(assembly, start)
    own = reduction.hook[1]
    attach_monitor(reduction)
    record = reduction.monitor
    attach_monitor(reduction, amplification=True, usual_norms=np.array([50.0]))
    assert reduction.monitor is record and record["inner_record"] == own.data.ctypes.data
    assert record["amplification"] == 1 and record.array("norms")[0] == 50.0
    assert reduction.rate.hook[1] is record and reduction.problem.residual.hook[1] is record


def test_the_basis_of_the_monitor_is_orthonormal_and_spans_the_gradients():
    q, v = (np.asarray(x, dtype=float) for x in DISC.initial)
    assembly = SystemWorkspace(DISC.problem, 0.0, q)
    start = assembly.start(0.0, np.concatenate([q, v]))
    reduction = VelocityConstraints().reduce(assembly, start)
    attach_monitor(reduction)
    basis = reduction.monitor.array("basis").reshape(assembly.n_c, assembly.nx)
    jacobian = assembly.evaluate(0.0, start.z)["jacobian"]
    assert np.allclose(basis @ basis.T, np.eye(assembly.n_c), atol=1e-14)
    assert np.allclose(jacobian - jacobian @ basis.T @ basis, 0.0, atol=1e-12)
    assert np.linalg.det(jacobian @ basis.T) > 0.0
    assert np.allclose(reduction.monitor.array("norms"), np.linalg.norm(jacobian, axis=1), rtol=1e-15)


@pytest.mark.parametrize(
    ("form", "levels"),
    [
        (FORMULATIONS["index3"](), (1.0, 0.0, 0.0)),
        (FORMULATIONS["index2"](), (0.0, 1.0, 0.0)),
        (Index2(gamma=2.0), (-2.0, 1.0, 0.0)),
        (FORMULATIONS["index1"](), (0.0, 0.0, 1.0)),
        (Baumgarte(alpha=3.0, beta=4.0), (16.0, -6.0, 1.0)),
        (GGL(), (0.0, 1.0, 0.0)),
    ],
    ids=name_of,
)
def test_damping_changes_its_sign_with_the_direction_of_time(form, levels):
    shape = form.shape(Sizes(2, 1, 1))
    assert shape.directed(-1) == levels
    assert shape.directed(1) == tuple(map(abs, levels)) == shape.levels


@dataclass(frozen=True)
class Damped(Formulation):
    """g'' + 4 g' + 4 g = 0."""

    name = "damped"
    ordinary = True

    def shape(self, system):
        return Shape((4.0, 4.0, 1.0), top=ACCELERATION)


def test_a_new_formulation_is_its_declaration():
    model = daedal.library.get("planar_pendulum")
    for method in ("auto", "dassl", "modified_bdf"):
        new, known = (
            daedal.solve(model.problem, (0.0, 0.3), model.initial, formulation=form, method=method)
            for form in (Damped(), Baumgarte(gamma=2.0))
        )
        assert new.formulation == "Damped" and np.array_equal(new.y, known.y)


def test_ordinary_formulations_are_those_with_a_rate():
    assembly, start = swinging(0.3)
    for name, form in FORMULATIONS.items():
        assert form.ordinary == (form().reduce(assembly, start).rate is not None), name


def test_damping_stays_with_the_formulation():
    """Accelerations off the constraints, of the system itself, know nothing of Baumgarte's terms."""
    assembly, start = swinging(0.3)
    off = start.z + np.array([0.1, 0.0, 0.0, 0.2])
    before = assembly.accelerate(0.0, off)[0]
    reduction = Baumgarte(gamma=50.0).reduce(assembly, start)
    rate = reduction.rate.evaluate_block(0.0, (off,))
    assert np.array_equal(assembly.accelerate(0.0, off)[0], before)
    assert np.max(np.abs(rate[2:] - before[0])) > 10.0


def test_a_sparse_reduction_begins_anew_like_a_fresh_one():
    from scipy.sparse import csr_array

    system = replace(PENDULUM, mass=csr_array(np.eye(2)), constraint_jacobian=lambda t, q, p: csr_array(q[None]))
    assembly = SparseWorkspace(system, 0.0, np.array([1.0, 1.0]), autonomous=True)
    first, second = swinging(0.3)[1], swinging(-1.2, direction=-1)[1]
    for form in (GGL(), Index2(gamma=2.0), Baumgarte(gamma=3.0)):
        again, fresh = (form.reduce(assembly, start) for start in (first, second))
        again.begin(second)
        assert np.array_equal(again.y0, fresh.y0) and np.array_equal(again.yp0, fresh.yp0)
        t, y, yp = second.t, second.t + again.y0, again.yp0 + 0.5
        assert np.array_equal(again.problem.residual(t, y, yp), fresh.problem.residual(t, y, yp))
