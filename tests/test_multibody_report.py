"""What a report of a model says: degrees of freedom by count and by rank, what is redundant, families of linkages."""

import matplotlib
import numpy as np
import pytest

from daedal.multibody import Body, Model, Prismatic, Revolute, Spherical, ground

matplotlib.use("Agg")


def body(name):
    return Body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))


def four_bar(lengths=(1.0, 3.0, 2.0, 3.0), **options):
    a, b, c = (Body.rod(name, length=length, mass=1.0) for name, length in zip("abc", lengths))
    return Model(
        Revolute("A", ground, a.start),
        Revolute("B", a.end, b.start),
        Revolute("C", b.end, c.end),
        Revolute("D", ground.at(lengths[3], 0.0), c.start),
        **options,
    )


def ring(points, axes, name=""):
    """A closed ring of hinges, closed where it is drawn; the first body is the ground."""
    links = [ground, *(body(f"link{i}") for i in range(1, len(points)))]
    hinges = [
        Revolute(f"J{i}", links[i], links[(i + 1) % len(points)], at=point, axis=axis)
        for i, (point, axis) in enumerate(zip(points, axes))
    ]
    return Model(*hinges, name=name)


def bricard():
    """IFToMM benchmark A04: six hinges on the edges of a cube, each at right angles to the next."""
    points = [(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)]
    return ring(points, ["y", "z", "x", "y", "z", "x"], "Bricard")


def spherical_four_bar():
    angles = np.array([[0.2, 0.1], [0.9, 0.4], [1.6, 1.2], [0.3, 1.5]])
    axes = [(np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)) for a, b in angles]
    return ring([2.0 * np.array(axis) for axis in axes], axes)


def bennett():
    """Opposite links equal, twists a and b with sin(a) / length a = sin(b) / length b; folded flat, axes on a line."""
    twists = np.array([0.7, 0.4])
    lengths = np.sin(twists)
    x = np.array([0.0, lengths[0], lengths[0] + lengths[1], lengths[1]])
    turn = np.array([0.0, twists[0], twists[0] + twists[1], twists[1]])
    return ring([(at, 0.0, 0.0) for at in x], [(0.0, -np.sin(angle), np.cos(angle)) for angle in turn])


@pytest.mark.parametrize(
    ("model", "gruebler", "actual", "family"),
    [
        (four_bar(planar=True), 1, 1, ""),
        (four_bar(), -2, 1, "a planar linkage in space"),
        (bricard(), 0, 1, "a six-bar linkage such as Bricard's or Sarrus's"),
        (spherical_four_bar(), -2, 1, "a spherical linkage"),
        (bennett(), -2, 1, "a Bennett linkage"),
        (ring([(0, 0, 0), (1, 0, 0), (0.3, 1, 0)], "zzz"), -3, 0, "a rigid frame"),
    ],
    ids=["plane four-bar", "four-bar in space", "Bricard", "spherical", "Bennett", "triangle"],
)
def test_degrees_of_freedom_and_families(model, gruebler, actual, family):
    report = model.report()
    assert (report.gruebler, report.degrees_of_freedom) == (gruebler, actual)
    assert len(report.redundant) == actual - gruebler
    assert report.redundant_joints == (() if actual == gruebler else (report.topology.cut[0].name,))
    assert report.configuration.regular and report.configuration.rank.clear
    assert [one.family for one in report.loop_mobilities] == [family]
    assert report.loop_mobilities[0].mobility == actual


def test_redundant_conditions_that_no_single_loop_has():
    """Two parallelograms with one coupler: each loop by itself has one degree of freedom and nothing to spare."""
    rods = [Body.rod(f"rod{i}", length=1.0, mass=1.0) for i in range(3)]
    coupler = Body.rod("coupler", length=2.0, mass=1.0)
    model = Model(
        *(Revolute(f"A{i}", ground.at(i, 0.0), rod.start) for i, rod in enumerate(rods)),
        *(Revolute(f"B{i}", rod.end, coupler.at(i - 1.0, 0.0)) for i, rod in enumerate(rods)),
        planar=True,
    )
    report = model.report()
    assert (report.gruebler, report.degrees_of_freedom, report.redundant) == (0, 1, ("B2.2",))
    assert [one.redundant for one in report.loop_mobilities] == [0, 0]


def test_the_branch_is_the_one_that_is_drawn():
    """A row of rhombi has folded branches with more freedoms; drawn as squares in space it has one, and 18 to spare."""
    n, upright = 6, {"orientation": np.pi / 2}
    rods = [Body.rod(f"rod{i}", length=1.0, mass=1.0, position=(i, 0.5), **upright) for i in range(n + 1)]
    bars = [Body.rod(f"bar{i}", length=1.0, mass=1.0, position=(i + 0.5, 1.0)) for i in range(n)]
    report = Model(
        *(Revolute(f"A{i}", ground.at(i, 0.0), rod.start) for i, rod in enumerate(rods)),
        *(Revolute(f"B{i}", rods[i].end, bar.start) for i, bar in enumerate(bars)),
        *(Revolute(f"C{i}", bar.end, rods[i + 1].end) for i, bar in enumerate(bars)),
    ).report()
    assert (report.gruebler, report.degrees_of_freedom, len(report.redundant)) == (-17, 1, 18)
    assert {one.family for one in report.loop_mobilities} == {"a planar linkage in space"}


def test_a_loop_that_cannot_close_is_named_with_its_gap():
    report = four_bar((1.0, 1.0, 1.0, 9.0), planar=True).report()
    assert report.degrees_of_freedom is None
    assert report.open_joint == "C" and report.configuration.gap == pytest.approx(6.0)
    assert "joint 'C' cannot be closed: a gap of 6 remains" in str(report)


def test_mobility_that_is_only_infinitesimal_is_told():
    """Two rods in one line between fixed points: the middle can move sideways by nothing but an infinitesimal bit."""
    a, b = (Body.rod(name, length=1.0, mass=1.0) for name in "ab")
    model = Model(
        Revolute("A", ground, a.start),
        Revolute("B", a.end, b.start),
        Revolute("C", b.end, ground.at(2, 0)),
        planar=True,
    )
    report = model.report()
    assert not report.configuration.regular
    assert "singular" in str(report)


def test_a_report_reads_well():
    crank, rod = Body.rod("crank", length=1.0, mass=2.0), Body.rod("rod", length=3.0, mass=1.0)
    slider = Body.box("slider", size=(1, 1, 1), mass=0.5)
    report = Model(
        Revolute("A", ground, crank.start),
        Revolute("B", crank.end, rod.start),
        Revolute("C", rod.end, slider),
        Prismatic("D", ground, slider, axis="x"),
        planar=True,
        name="Crank <slider>",
    ).report()
    text = str(report)
    for line in (
        "model     3 bodies, 4 joints and 1 loop, in the plane",
        "Gruebler  1 degree of freedom, assuming independent conditions",
        "C     Revolute   rod - slider     angle         cut",
        "     4  ground -A- crank -B- rod -C- slider -D- ground",
    ):
        assert line in text, text
    assert repr(report) == "<report: 3 bodies, 4 joints, 1 degree of freedom>"
    html = report._repr_html_()
    assert "Crank &lt;slider&gt;" in html and html.count("<table") == 4


def test_the_graph_is_drawn(tmp_path):
    model = bricard()
    figure = model.draw_graph(pyplot=False, save=tmp_path / "graph.png")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert {"ground", "link1", "link5", "J3\nRevolute\n(cut)", "J0\nRevolute"} <= set(texts)
    assert (tmp_path / "graph.png").stat().st_size > 5000
    recut = model.draw_graph(pyplot=False, cut=["J0"])
    assert "J0\nRevolute\n(cut)" in [text.get_text() for text in recut.axes[0].texts]
    assert len(model.report().plot(pyplot=False).axes[0].texts) == len(texts)


def test_a_body_on_ball_joints():
    """A plate on three rods with ball joints: 3 degrees of freedom, and each rod spins by itself."""
    plate = body("plate")
    parts = []
    for i, (x, y) in enumerate([(1.0, 0.0), (-0.5, 0.8), (-0.5, -0.8)]):
        rod = Body.rod(f"rod{i}", length=2.0, radius=0.05, mass=1.0)
        parts += [Spherical(f"low{i}", ground.at(x, y, 0.0), rod.start), Spherical(f"high{i}", rod.end, plate.at(x, y))]
    report = Model(*parts).report()
    assert (report.gruebler, report.degrees_of_freedom, report.redundant) == (6, 6, ())
    assert sorted(len(loop.joints) for loop in report.loops) == [4, 4]
