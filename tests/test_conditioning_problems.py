"""Conditioning of any problem: along solutions, with fast coefficients, in words and pictures; what is refused."""

import numpy as np
import pytest

import daedal
from conditioning_problems import constant, random_index2, turning
from daedal import LinearDAE, library, linear
from daedal.analysis import analyse_conditioning
from daedal.analysis.conditioning.measure import local_conditioning

# --- fast coefficients, different units -------------------------------------------------------------------------------


def pulse(height, width):
    return linear.TimeVarying(np.eye(1), lambda t: [[-height * np.exp(-(((t - 0.5) / width) ** 2))]], n=1)


def test_the_grid_is_refined_where_coefficients_change_fast():
    found = analyse_conditioning(pulse(500.0, 0.01), (0.0, 1.0), points=21)
    assert found["k1"] == pytest.approx(np.exp(500.0 * 0.01 * np.sqrt(np.pi)), rel=0.02)
    assert found.t.size == 21 and not found.unresolved


def test_coefficients_that_are_too_fast_are_reported():
    found = analyse_conditioning(
        linear.TimeVarying(np.eye(1), lambda t: [[1e5 * np.sin(1e6 * t)]], n=1), (0.0, 1.0), points=5
    )
    assert found.unresolved and "too fast" in found.advice[0]


def test_a_jump_of_the_coefficients_is_found():
    found = analyse_conditioning(
        linear.TimeVarying(np.eye(1), lambda t: [[-9.0 if t > 0.37 else 1.0]], n=1), (0.0, 1.0)
    )
    assert found["k1"] == pytest.approx(np.exp(9.0 * 0.63 - 0.37), rel=0.01)
    assert not found.unresolved


def test_a_jump_of_the_solution_is_followed_step_by_step():
    """The relaxation oscillation of van der Pol: between slow parts the velocity rises as it does in the solution."""
    model = library.van_der_pol()
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-7, atol=1e-7)
    found = analyse_conditioning(model.problem, sol)
    speed = np.linalg.norm(sol.yp, axis=0)
    reached = np.max(speed[1:] / np.minimum.accumulate(speed)[:-1])
    assert reached / 3.0 <= found["k1"] <= 30.0 * reached


def test_equations_in_tiny_units_are_no_constraints():
    assert analyse_conditioning(linear.Pencil(np.diag([1.0, 1e-13]), np.eye(2)), (0.0, 1.0), points=5).index == 0


def test_a_large_gain_is_not_a_higher_index():
    """y occurs with 1e-4 beside x in its constraint, but the layer would be as long as the interval."""
    found = analyse_conditioning(constant([[-1.0]], [[1e-3]], [[1.0]], [[1e-4]]), (0.0, 1.0))
    assert found["layer_thickness"] == pytest.approx(0.1)
    assert found.effective.index == 2 and found.effective_index == 1 and found.variable_index == [1, 1]
    assert "large gain" in found.advice[0] and repr(found).endswith("index 1>")


# --- the three statements of a problem --------------------------------------------------------------------------------


def test_statements_of_one_problem_agree():
    """As a LinearDAE, and along a solution as SemiExplicitDAE, ImplicitDAE (traced, and by differences)."""
    problem = turning(eps=0.8)
    T = 0.9
    expected = analyse_conditioning(problem, (0.0, T), points=41)
    semi = problem.semi_explicit()

    def untraceable(t, y, yp):
        return semi.implicit().evaluate(float(t), np.array(y, dtype=float), np.array(yp, dtype=float))

    statements = [
        (daedal.SemiExplicitDAE(semi.f, semi.g, 3, 1), ([1.0, 0.5, -0.2], None)),
        (daedal.ImplicitDAE(untraceable, 4), ([1.0, 0.5, -0.2, -1.25], None)),
    ]
    for one, start in statements:
        sol = daedal.solve(one, (0.0, T), start, rtol=1e-8, atol=1e-8)
        found = analyse_conditioning(one, sol, points=41)
        assert found.index == 1 and not found.is_linear and expected.is_linear
        for name in ("k1", "k2", "D_inverse_C", "D_inverse", "kappa1", "kappa3", "kappa4", "gamma_s"):
            assert found[name] == pytest.approx(expected[name], rel=1e-3), name


def test_a_linear_problem_may_be_looked_at_along_a_solution():
    """The grid is that of the steps, short ones in the initial layer."""
    model = library.nearly_index2(1e-4)
    sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, rtol=1e-6, atol=1e-6)
    found = analyse_conditioning(model.problem, sol)
    assert found.t[0] == 0.0 and found.t[-1] == 1.0 and found.t[5] < 1e-3
    assert found["k2"] == pytest.approx(1e-4, rel=0.02)
    assert found["layer_k2_hat"] == pytest.approx(1.0, rel=0.02)


def test_functions_may_use_parameters_and_names():
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z, p: [-p["k"] * z[0]],
        lambda t, y, z, p: [z[0] ** 3 + z[0] - y[0]],
        1,
        1,
        params={"k": 2.0},
        names=["level", "flow"],
    )
    sol = daedal.solve(problem, (0.0, 1.0), ([2.0], [1.0]), rtol=1e-8, atol=1e-10)
    found = analyse_conditioning(problem, sol)
    assert found.variables == {"level": 0, "flow": 1}
    slopes = 1.0 / (3.0 * sol.z[0] ** 2 + 1.0)  # dz/dy
    assert found["D_inverse"] == pytest.approx(slopes.max(), rel=1e-3)


# --- index changes, singular problems, words --------------------------------------------------------------------------


def test_an_index_that_changes_is_said_where():
    problem = LinearDAE([[0.0]], [[1.0]], [[1.0]], lambda t: [[t - 0.5]], [0.0], [0.0], n_x=1, n_y=1)
    found = analyse_conditioning(problem, (0.0, 1.0))
    assert found.index is None and not found.constants
    assert "changes near t = 0.5" in found.advice[0]


def test_a_singular_problem_names_what_is_not_determined():
    problem = LinearDAE(
        np.zeros((2, 2)),
        np.eye(2),
        [[1.0, 0.0], [2.0, 0.0]],
        np.zeros((2, 2)),
        [0, 0],
        [0, 0],
        n_x=2,
        n_y=2,
        names=["a", "b", "force", "heat"],
    )
    found = analyse_conditioning(problem, (0.0, 1.0))
    assert found.index is None and "heat" in found.advice[0] and "force" not in found.advice[0]


def test_index_3_is_left_to_index_reduction():
    A = [[0.0, 1.0], [0.0, 0.0]]
    found = analyse_conditioning(constant(A, [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]]), (0.0, 1.0))
    assert found.index == found.effective_index == 3 and not found.constants
    assert "index is 3" in found.advice[0]
    assert "index 3" in str(found)


def test_an_effective_index_that_changes_is_said():
    problem = LinearDAE([[0.0]], [[-1.0]], [[1.0]], lambda t: [[-np.exp(-20.0 * t)]], [0.0], [0.0], n_x=1, n_y=1)
    found = analyse_conditioning(problem, (0.0, 1.0))
    assert found.index == 1 and found.effective_index == 2
    assert found.indices[0] == 1 and found.indices[-1] == 2
    assert any("changes along the interval" in text and "t = 0.35" in text for text in found.advice)


def test_advice_for_nearly_index_2_can_be_followed():
    model = library.nearly_index2(1e-6)
    found = analyse_conditioning(model.problem, model.t_span)
    assert "Integrate it as index 2" in found.advice[0] and "stabilised_reduction" in found.advice[0]
    assert found.variable_index == [1, 2]
    start = [1.0], [0.0]
    options = {"rtol": 1e-6, "atol": 1e-6}
    for way in ({"formulation": "stabilised_reduction"}, {"method": "dassl", "variable_index": found.variable_index}):
        sol = daedal.solve(model.problem, (0.0, 1.0), start, **way, **options)
        assert sol.success and sol.y[1, -1] == pytest.approx(2.0 * np.sin(1.0), abs=1e-3)


def test_a_well_conditioned_problem_is_called_so():
    found = analyse_conditioning(constant([[-1.0]], [[1.0]], [[1.0]], [[2.0]]), (0.0, 5.0))
    assert found.advice == ["All factors are moderate: the problem is well conditioned, and can be solved as given."]


def test_growth_is_warned_about():
    found = analyse_conditioning(constant([[2.0]], [[0.0]], [[1.0]], [[1.0]]), (0.0, 10.0))
    assert found["k1"] == pytest.approx(np.exp(20.0), rel=1e-6)
    assert any("amplified by a factor of" in text for text in found.advice)


def test_shown_as_text_html_and_picture(tmp_path):
    found = analyse_conditioning(library.ill_conditioned_constraints().problem, (0.0, 1.0), points=11)
    text, page = str(found), found._repr_html_()
    for part in ("index 1, effective index 2", "k2^", "Theorem 4.6", "y2", "Consequences"):
        assert part in text and part in page, part
    assert "constraints, rate q'" in text and "index 1, effective index 2" in repr(found)
    assert all(len(line) <= 120 for line in text.splitlines())
    figure = found.plot(save=tmp_path / "conditioning.png", pyplot=False, title="Example 6.7")
    assert (tmp_path / "conditioning.png").stat().st_size > 0
    assert [axes.get_ylabel() for axes in figure.axes] == ["moves x by", "moves y by", "index"]
    unbounded = analyse_conditioning(constant([[0.0]], [[1.0]], [[1.0]], [[-1e-4]]), (0.0, 1e-2), points=5)
    assert "unbounded" in str(unbounded)
    unbounded.plot(pyplot=False)
    analyse_conditioning(linear.Pencil(np.eye(2), np.eye(2)), (0.0, 1.0), points=5).plot(pyplot=False)


def test_local_conditioning_of_every_kind():
    at = local_conditioning(library.nearly_index2(1e-6).problem)
    assert (at.index, at.effective_index, at.variables) == (1, 2, {"x": 0, "y": 2})
    assert at.norms["D_inverse"] == pytest.approx(1e6)
    assert "because of" in str(at) and "<table" in at._repr_html_()
    mixed = local_conditioning(constant(*random_index2(4)), 0.0)
    assert mixed.index == 2 and mixed.norms["P"] >= 1.0
    pendulum = daedal.SemiExplicitDAE(
        lambda t, y, z: [y[1], -z[0] * y[0]], lambda t, y, z: [y[0] ** 2 - 1.0], 2, 1, names=["x", "v", "force"]
    )
    there = local_conditioning(pendulum, 0.0, [1.0, 0.0, 0.0])
    assert there.index == 3 and there.variables["force"] == 3 and not there.norms


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((library.linear_index2().problem, (0.0, 0.0)), {}, "t0 different from t1"),
        ((library.linear_index2().problem, "soon"), {}, "solution or an interval"),
        ((library.linear_index2().problem, (0.0, 1.0)), {"points": 1}, "points"),
        ((library.linear_index2().problem, (0.0, 1.0)), {"threshold": 2.0}, "threshold"),
        ((daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1), (0.0, 1.0)), {}, "solve it first"),
        ((42, (0.0, 1.0)), {}, "not an int"),
        ((linear.Pencil(np.ones((1, 2)), np.ones((1, 2))), (0.0, 1.0)), {}, "as many equations"),
        ((linear.TimeVarying(lambda t: [[t]], [[1.0]], n=1), (0.0, 1.0)), {}, "rank of dF/dx' changes"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_in_words(arguments, options, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        analyse_conditioning(*arguments, **options)


def test_constants_that_do_not_exist_are_named():
    found = analyse_conditioning(library.linear_index2().problem, (0.0, 1.0), points=5)
    with pytest.raises(KeyError, match="k1, k2, P"):
        found["kappa"]
    with pytest.raises(KeyError, match="no factor"):
        found.factor("y", "z")
    with pytest.raises(daedal.InvalidProblemError, match="initial layer"):
        found.initial_layer([1.0], [0.0])
    near = analyse_conditioning(library.nearly_index2().problem, (0.0, 1.0), points=5)
    with pytest.raises(daedal.InvalidProblemError, match="index 2"):
        near.perturbed()
    with pytest.raises(daedal.InvalidProblemError, match="dA must have the shape"):
        found.perturbed(dA=[1.0, 2.0])


def test_the_solution_of_another_problem_is_refused():
    def decay(t, y, yp):
        return yp + y

    sol = daedal.solve(daedal.ImplicitDAE(decay, 2, names=["x", "v"]), (0.0, 1.0), ([1.0, 1.0], None))
    with pytest.raises(daedal.InvalidProblemError, match=r"it has 2 unknowns \(x and v\), .* 1 \(x\)"):
        analyse_conditioning(daedal.ImplicitDAE(decay, 1, names=["x"]), sol)
    with pytest.raises(daedal.InvalidProblemError, match="its unknown 1 is v, that of the problem is w"):
        analyse_conditioning(daedal.ImplicitDAE(decay, 2, names=["x", "w"]), sol)
