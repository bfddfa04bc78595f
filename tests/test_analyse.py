"""``daedal.analyse``: one page on a problem, in text, HTML, SVG and DOT."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import daedal

NAMES = ["x", "y", "u", "v", "lam"]


def pendulum(t, s, sp):
    x, y, u, v, lam = s
    return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 1, x**2 + y**2 - 1]


@pytest.fixture(scope="module")
def analysis():
    problem = daedal.ImplicitDAE(pendulum, 5, names=NAMES)
    return daedal.analyse(problem, at=(0.0, ([0.6, -0.8, 0.4, 0.3, 0.0], None)))


def row(text, name):
    """What stands behind a name on the page, on one line."""
    found = re.search(rf"^  {name} +(.*(?:\n {{20,}}.*)*)", text, re.MULTILINE)
    assert found, name
    return " ".join(found.group(1).split())


def test_all_indices_of_the_pendulum(analysis):
    assert (analysis.index, analysis.structural_index, analysis.strangeness_index) == (3, 3, 2)
    assert analysis.degrees_of_freedom == 2
    assert len(analysis.hidden_constraints) == 2 and analysis.hidden_constraints[0] == "2*x*u + 2*y*v = 0"


def test_the_page_says_it_all(analysis):
    page = str(analysis)
    assert page.startswith("An ImplicitDAE of 5 equations")
    assert row(page, "differentiation index").startswith("3 ")
    assert "The system Jacobian is nonsingular" in row(page, "structural index")
    assert row(page, "degrees of freedom") == "2"
    assert "any 2 of x, y, u, v and lam, but not x and y together" in row(page, "initial values")
    assert row(page, "differentiated") == "twice: equation 4; once: equations 0 and 1"
    assert "2*x*u + 2*y*v = 0" in page
    assert max(map(len, page.splitlines())) <= 120


def test_the_picture_is_valid_and_shows_every_entry(analysis):
    root = ElementTree.fromstring(analysis.svg)
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"equation 0", "equation 4", *NAMES} <= set(texts)
    entries = sum(len(orders) for orders in analysis.structural.signature.sigma)
    assert sum(text.isdigit() for text in texts) == entries + 2 * 5  # and the offsets


def test_the_graph_names_blocks_and_what_they_need():
    def reactor(t, y, yp):
        C, T, R, Tc = y
        return [yp[0] - (1 - C) + R, yp[1] - (1 - T) - R + 0.5 * (T - Tc), R - np.exp(-1 / T) * C, C - np.sin(t)]

    problem = daedal.ImplicitDAE(reactor, 4, names=["C", "T", "R", "Tc"])
    found = daedal.analyse(problem, at=(1.0, {"C": np.sin(1.0), "T": 1.0}))
    assert found.index == 3 and found.degrees_of_freedom == 0
    assert 'b0 [label="C\\nequations 3"]' in found.dot and "b0 -> b1;" in found.dot
    assert found.dot.count("label") == 4


def test_the_notebook_shows_names_without_reading_them_as_markup():
    names = ["<script>", 'a"b', "c&d"]
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[2], y[0] - t], 3, names=names)
    found = daedal.analyse(problem)
    assert "<script>" not in found.html and "&lt;script&gt;" in found.html
    ElementTree.fromstring(found.svg)
    assert '\\"b' in found.dot


@pytest.mark.parametrize("suffix", ["txt", "html", "svg", "dot"])
def test_pages_are_written_by_their_suffix(analysis, tmp_path, suffix):
    path = tmp_path / "new" / f"page.{suffix}"
    analysis.save(path)
    kind = {"txt": "text"}.get(suffix, suffix)
    assert path.read_text(encoding="utf-8").endswith(getattr(analysis, kind))


def test_other_suffixes_are_refused(analysis, tmp_path):
    with pytest.raises(daedal.InvalidProblemError, match=r"must end in \.svg"):
        analysis.save(tmp_path / "page.png")


def test_wrong_models_are_named_and_drawn():
    names = ["level", "flow", "p"]
    problem = daedal.ImplicitDAE(lambda t, y, yp: [y[0] - t, y[0] - 2 * t, yp[1] + y[2]], 3, names=names)
    found = daedal.analyse(problem)
    assert found.index is None and found.structural_index is None and found.degrees_of_freedom is None
    page = " ".join(str(found).split())
    assert "equations 0 and 1 contain only level" in page
    assert "flow and p occur only in equation 2" in page
    kinds = {block.kind for block in found.layout.blocks}
    assert kinds == {"over", "under"}
    ElementTree.fromstring(found.svg)


def test_a_redundant_equation_that_only_the_array_sees():
    def residual(t, y, yp):
        first, second = yp[0] - y[1] * y[2], y[0] + y[2] - np.sin(t)
        return [first, second, 3 * first - y[2] * second]

    found = daedal.analyse(daedal.ImplicitDAE(residual, 3, names=["a", "b", "c"]), at=(0.0, [0.5, 1.0, -0.5]))
    assert found.index is None and found.structural_index is None
    page = " ".join(str(found).split())
    assert "The signature method fails" in page and "they do not determine b'" in page
    assert re.search(r"Among equations [0-9, and]+, with their derivatives, 1 follows from the others", page)


def test_index_1_with_structural_index_3():
    """Reissig, Martinson and Barton: the structural index is an upper bound, and the page says so."""
    A = np.zeros((5, 5))
    A[0:2, 1:3] = A[2:4, 3:5] = 1.0
    found = daedal.analyse(daedal.ImplicitDAE(lambda t, y, yp: A @ yp + y - np.sin(t), 5))
    assert (found.index, found.structural_index, found.strangeness_index) == (1, 3, 0)
    assert "upper bound" in str(found)


@pytest.mark.parametrize(
    ("name", "tractability"),
    [
        ("planar_pendulum", None),
        ("linear_index2", 2),
        ("jay_index2", 2),
        ("stability_example1", 2),
        ("order_reduction", None),
        ("transistor_amplifier", None),
        ("chemical_akzo_nobel", 1),
        ("pollution", 0),
    ],
)
def test_every_class_of_problem(name, tractability):
    model = daedal.library.get(name)
    found = daedal.analyse(model.problem, at=(model.t_span[0], model.initial))
    assert found.index == found.structural_index == model.index
    assert found.degrees_of_freedom == found.structural.degrees_of_freedom
    assert found.tractability_index == tractability
    assert row(str(found), "differentiation index").startswith(f"{model.index} ")


def test_units_that_differ_too_much_are_named():
    def residual(t, y, yp):
        return [yp[0] - 1e9 * y[1], 1e-9 * y[0] + y[1] - 1e-9 * y[2], 1e9 * y[1] + y[2] - t]

    found = daedal.analyse(daedal.ImplicitDAE(residual, 3, names=["volume", "flow", "p"]))
    advice = found.scaling.advice(["volume'", "flow", "p"])
    assert "times as large as flow" in advice and found.scaling.condition > 1e6 * found.scaling.scaled


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (1.0, "at must be"),
        ((0.0, [1.0]), r"y0 of at has shape \(1,\); expected \(5,\)"),
        ((np.nan, [0.0] * 5), "t of at must be finite, got nan"),
        (("now", [0.0] * 5), "t of at must be a number, got 'now'"),
        ((0.0, {"z": 1.0}), "at names 'z'"),
        ((0.0, {"x": np.nan}), "x of at must be finite, got nan"),
        ((0.0, {"x": "here"}), "x of at must be a number, got 'here'"),
        ((0.0, [0.6, np.nan, 0.0, 0.0, 0.0]), r"y0 of at is not finite: y0\[1\] = nan"),
        ((0.0, ([0.6, -0.8, 0.0, 0.0, 0.0], [0.0] * 3)), r"yp0 of at has shape \(3,\)"),
        ((0.0, (["a"] * 5, None)), "y0 of at must hold 5 real numbers"),
    ],
)
def test_points_of_the_wrong_form_are_refused(at, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.analyse(daedal.ImplicitDAE(pendulum, 5, names=NAMES), at=at)


def test_functions_that_cannot_be_traced_are_refused_with_the_reason():
    def residual(t, y, yp):
        return [yp[0] - np.linalg.eigvals(np.array([[y[0], 1.0], [1.0, 2.0]]))[0]]

    with pytest.raises(daedal.InvalidProblemError, match="cannot be analysed: a function of it"):
        daedal.analyse(daedal.ImplicitDAE(residual, 1))


def test_many_unknowns_are_analysed_by_structure():
    n = 2000

    def residual(t, y, yp):
        inner = [yp[k] - (y[k - 1] - 2 * y[k] + y[k + 1]) for k in range(1, n - 1)]
        return [y[0] - np.sin(t), *inner, y[n - 1]]

    found = daedal.analyse(daedal.ImplicitDAE(residual, n))
    assert found.index == found.structural_index == 1 and found.degrees_of_freedom == n - 2
    assert "too many" in row(str(found), "differentiation index")
    assert len(found.svg) < 500_000
    ElementTree.fromstring(found.svg)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("at", [None, (0.0, ([0.0, 0.0], [0.0, 1.0])), (0.5, {"x2": 1.0})])
def test_a_regular_pencil_that_is_not_solvable(at):
    found = daedal.analyse(daedal.library.get("unsolvable_pencil").problem, at)
    assert isinstance(found.singular, daedal.errors.StructurallySingularError)
    assert "equations 0 and 1 are dependent" in " ".join(str(found).split())
    assert found.index is None and "equation 1" in found._repr_html_()


def test_conditioning_at_the_point():
    found = daedal.analyse(daedal.library.nearly_index2(1e-6).problem)
    assert found.index == 1 and found.conditioning.effective_index == 2
    page = str(found)
    assert page.index("Conditioning") > page.index("Structure")
    assert row(page, "effective index") == "2" and row(page, "because of") == "y"
    assert found.conditioning.norms["D_inverse"] == pytest.approx(1e6)
    assert "canonical projector" in found._repr_html_()


def test_conditioning_is_left_out_where_the_matrices_at_a_point_do_not_tell(analysis):
    assert analysis.conditioning.effective_index == 3 and not analysis.conditioning.norms
    ordinary = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
    moving = daedal.library.get("singular_pencil").problem  # index 2, though its pencil is singular at all times
    large = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], *(y[1:] - y[:-1] - t)], 61)
    for problem, index in ((ordinary, 0), (moving, 2), (large, 1)):
        found = daedal.analyse(problem)
        assert found.index == index and found.conditioning is None and "Conditioning" not in str(found)
