"""Circuits from netlists: parser, forms of the equations, loops and cutsets, operating points, runs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import circuits
from daedal.circuits.elements import THERMAL_VOLTAGE, depletion_charge
from daedal.circuits.netlist import EXPONENTS, in_engineering

FORMS = ("nodal", "charge", "tableau")
AMPLIFIER = daedal.library.transistor_amplifier().extra["netlist"]


# --- numbers and lines ------------------------------------------------------------------------------------------------


@given(
    mantissa=st.decimals(-999, 999, places=3),
    suffix=st.sampled_from(["", *EXPONENTS]),
    unit=st.sampled_from(["", "Ohm", "V"]),
)
def test_suffixes_are_powers_of_ten_to_the_last_bit(mantissa, suffix, unit):
    expected = float(f"{mantissa}e{EXPONENTS.get(suffix, 0)}")
    assert circuits.quantity(f"{mantissa}{suffix}{unit}") == expected
    assert circuits.quantity(f"{mantissa}{suffix}{unit}".upper().replace("Μ", "µ")) == expected


@given(st.text(max_size=12))
def test_what_is_no_number_is_refused(text):
    try:
        value = circuits.quantity(text)
    except daedal.InvalidProblemError:
        return
    assert math.isfinite(value) and text[:1] in "+-.0123456789"


@given(st.floats(1e-14, 1e14) | st.floats(-1e14, -1e-14))
def test_numbers_come_back_from_their_engineering_form(value):
    number, _, suffix = in_engineering(value).partition(" ")
    assert circuits.quantity(number + suffix) == pytest.approx(value, rel=1e-3)


_WORD = st.text("abR1C0=(). +*;-v\n", max_size=60)


@settings(max_examples=200)
@given(_WORD)
def test_any_text_is_a_circuit_or_is_refused_with_a_reason(text):
    try:
        circuit = circuits.parse(text)
    except daedal.InvalidProblemError as error:
        assert str(error)
        return
    assert circuit.elements


@given(
    values=st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=6),
    spaces=st.sampled_from([" ", "  ", "\t", " \n+ "]),
    comment=st.sampled_from(["", " ; a comment", "\n* a comment line"]),
)
def test_a_netlist_that_is_written_is_read_again(values, spaces, comment):
    """A chain of resistors behind a source, in any layout; the current of the source is that of Ohm's law."""
    lines = [f"V1 n0 0 DC{spaces}5{comment}"]
    for k, value in enumerate(values):
        after = "0" if k == len(values) - 1 else f"n{k + 1}"
        lines.append(f"r{k}{spaces}N{k}{spaces}{after}{spaces}{value!r}{comment}")
    circuit = circuits.parse("\n".join(lines))
    assert circuit.params == {"V1": 5.0} | {f"r{k}": value for k, value in enumerate(values)}
    assert circuit.nodes == tuple(f"n{k}" for k in range(len(values)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("V1 a 0 1\nR1 a 0", "line 2 .*: R1 needs two nodes and its resistance"),
        ("V1 a 0 1\n\nC1 a 0 1u ic", "line 3 .*'ic' should consist of pairs name=value"),
        ("V1 a 0 1\nR1 a 0 abc", "line 2 .*'abc' is not a number"),
        ("V1 a 0 1\nR1 a 0 0", "line 2 .*resistance 0 must be positive"),
        ("V1 a 0 1\nR1 a 0 1\nr1 a 0 2", "line 3 .*the element R1 is already defined in line 2"),
        ("My circuit\nV1 a 0 1", "line 1 .*begin with 'M' are unknown.*a title must start with"),
        ("V1 a 0 1\nR1 a a 1", "line 2 .*both ends of R1 are connected to node a"),
        ("V1 a 0 1\nD1 a 0 fast", "line 2 .*there is no model 'fast'; write .model fast d"),
        ("V1 a 0 1\n.model m d(is=1f x=2)\nD1 a 0 m", "line 2 .*d has no parameter 'x'; it has is, n"),
        ("V1 a 0 1\n.model m npn(bf=-1)\nQ1 a a 0 m", "line 2 .*bf=-1 must be positive"),
        ("V1 a 0 1\n.model m d(is=1f)\nQ1 a b 0 m", "line 3 .*needs a model of type npn or pnp, not d"),
        ("V1 a 0 SIN(0 1)\nR1 a 0 1", "line 1 .*SIN takes 3 to 6 numbers, not 2"),
        ("V1 a 0 PWL(0 0 1 1 1 2)\nR1 a 0 1", "line 1 .*times of PWL must increase, but 1 is followed by 1"),
        ("V1 a 0 PWL(0 0 1 1 2)\nR1 a 0 1", "line 1 .*PWL takes pairs"),
        ("V1 a 0 PULSE(0 1 0 1 1 1 2)\nR1 a 0 1", "line 1 .*rise . width . fall of a pulse, 3, must not be longer"),
        ("V1 a 0 sinus(0 1 2)\nR1 a 0 1", "line 1 .*'sinus' is not a number"),
        ("V1 a 0 1\nF1 b 0 V2 2\nR1 b 0 1", "line 2 .*there is no element V2"),
        ("V1 a 0 1\nF1 b 0 R1 2\nR1 b 0 1", "the current of R1 is not an unknown; put a voltage source of 0 V"),
        ("V1 a 0 1\nL1 a 0 1\nK1 L1 L1 0.5", "L1 cannot be coupled to itself"),
        ("V1 a 0 1\nL1 a 0 1\nR1 a 0 1\nK1 L1 R1 0.5", "R1 is not an inductor"),
        ("V1 a 0 1\n.lib file", "line 2 .*.lib is unknown"),
        ("+ R1 a 0 1", "line 1 .*there is no line"),
        ("V1 a 0 1\n.subckt s a b\nR1 a b 1", "line 2 .*not closed by .ends"),
        ("V1 a 0 1\nX1 a 0 t", "line 2 .*there is no subcircuit 't'"),
        (".subckt s a b\nR1 a b 1\n.ends\nV1 a 0 1\nX1 a s", "line 5 .*subcircuit s needs 2 nodes, got 1"),
        (".subckt s a b\nX1 a b s\n.ends\nV1 a 0 1\nX1 a 0 s", "does one call itself"),
        ("V1 a 0 1\n.ic i(a)=1", "line 2 .*.ic accepts node voltages"),
        ("", "the netlist has no elements"),
    ],
)  # fmt: skip
def test_wrong_lines_are_refused_with_their_number(text, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        circuits.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("V1 a b 1\nR1 a b 1", "no element is connected to the ground"),
        ("V1 a 0 1\nR1 a 0 1\nR2 b c 1\nC1 b c 1", "nodes b and c are not connected to the ground"),
        ("V1 a 0 1\nV2 b 0 1\nR1 a 0 1\nV3 a b 0", "V3, V. and V. form a loop of voltage sources"),
        ("V1 a 0 1\nR1 a 0 1\nI1 a b 1\nI2 b 0 1", "I1 and I2 form a cutset of current sources"),
        ("V1 a 0 1\nE1 b 0 c 0 2\nR1 a b 1", "E1 is controlled by the voltage of node c"),
        ("V1 a 0 1\nR1 a 0 1\n.ic v(q)=1", ".ic names the node q"),
    ],
)
def test_circuits_that_nothing_can_solve_are_refused_by_name(text, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        circuits.parse(text)


# --- loops, cutsets and the index -------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_index_and_freedom_by_topology_are_those_of_the_pencil(seed):
    """Random circuits: index and number of finite eigenvalues of (F_y', F_y), in all three forms."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 5))
    lines = []
    for k in range(1, nodes + 1):
        lines.append(f"{rng.choice(list('RLC'))}t{k} {k} {int(rng.integers(0, k))} {rng.uniform(0.5, 2.0)}")
    for k, kind in enumerate(rng.choice(list("VICLR"), int(rng.integers(1, 5)))):
        one, other = rng.choice(nodes + 1, 2, replace=False)
        lines.append(f"{kind}x{k} {one} {other} {rng.uniform(0.5, 2.0)}")
    try:
        circuit = circuits.parse("\n".join(lines))
    except daedal.InvalidProblemError:
        return
    for form in FORMS:
        index, freedom = _index_of_pencil(circuit.problem(form))
        assert (index, freedom) == (circuit.topology.index(form), circuit.topology.degrees_of_freedom), form


def _index_of_pencil(problem):
    """From the ranks of the powers of (A + 0.37 B)^-1 B."""
    zero = np.zeros(problem.n)
    base = problem.evaluate(0.0, zero, zero)
    A = np.array([problem.evaluate(0.0, e, zero) - base for e in np.eye(problem.n)]).T
    B = np.array([problem.evaluate(0.0, zero, e) - base for e in np.eye(problem.n)]).T
    M = np.linalg.solve(A + 0.37 * B, B)
    power, ranks = np.eye(problem.n), [problem.n]
    while len(ranks) < 2 or ranks[-1] != ranks[-2]:
        power = M @ power
        ranks.append(int(np.linalg.matrix_rank(power, tol=1e-9)))
    return len(ranks) - 2, ranks[-1]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("V1 a 0 1\nC1 a b 1\nC2 b 0 1\nR1 b 0 1", ({"V1", "C1", "C2"}, "source_loops")),
        ("I1 0 a 1\nL1 a b 1\nR1 b 0 1", ({"I1", "L1"}, "cutsets")),
        ("V1 a 0 1\nL1 a b 1\nL2 b c 1\nR1 c 0 1", ({"L1", "L2"}, "cutsets")),
    ],
)
def test_what_raises_the_index_is_named_and_analyse_agrees(text, names):
    circuit = circuits.parse(text)
    (found,) = getattr(circuit.topology, names[1])
    assert set(found) == names[0]
    assert all(name in str(circuit) for name in names[0])
    for form in ("nodal", "tableau"):
        assert daedal.analyse(circuit.problem(form)).index == circuit.topology.index(form) == 2


def test_loops_of_capacitors_raise_the_index_of_the_tableau_alone():
    circuit = circuits.parse("C1 a b 1\nC2 b 0 2\nC3 a 0 1\nR1 a 0 1\nR2 b 0 1")
    for form, index in zip(FORMS, (0, 1, 2)):
        assert circuit.topology.index(form) == index == daedal.analyse(circuit.problem(form)).index


def test_amplifiers_leave_the_index_to_the_analysis():
    """Three differentiators in cascade (Brenan, Campbell and Petzold, Figure 6.4.3) have index 4."""
    stages = "".join(f"C{k} n{k - 1} m{k} 0.5\nR{k} m{k} n{k} 1\nO{k} 0 m{k} n{k}\n" for k in (1, 2, 3))
    circuit = circuits.parse("V1 n0 0 SIN(0 1 0.3)\n" + stages)
    assert circuit.topology.index() is None and circuit.topology.controlled == ("O1", "O2", "O3")
    assert daedal.analyse(circuit.problem()).index == 4


# --- equations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("rlc_network", {}),
        ("rc_circuit", {"index": 1}),
        ("rc_circuit", {"index": 2}),
        ("differentiator_cascade", {"stages": 3}),
        ("four_resistor_amplifier", {"element": "source"}),
        ("four_resistor_amplifier", {"element": "capacitor"}),
        ("four_resistor_amplifier", {"conductances": (1.0, 2.0, 3.0, 6.0)}),
    ],
)
def test_networks_of_the_book_from_netlists_have_their_closed_solutions(name, given):
    """Brenan, Campbell and Petzold, section 6.4: voltages of nodes and currents solve the equations of all forms."""
    model = daedal.library.get(name, **given)
    circuit = circuits.parse(model.extra["netlist"])
    exact = model.extra["exact"]
    for form in ("nodal", "tableau"):
        problem = circuit.problem(form)
        for t in (0.0, 0.7):
            x, xp = (_solution(circuit, problem, model, exact(t, k)) for k in (0, 1))
            np.testing.assert_allclose(problem.evaluate(t, x, xp), 0.0, atol=1e-12 * (1.0 + np.max(np.abs(xp))))
    assert daedal.analyse(circuit.problem()).index == model.index
    if circuit.topology.index() is not None:
        assert circuit.topology.index("tableau") == model.index


def _solution(circuit, problem, model, values):
    """The unknowns of a problem from those of a model, whose names are v1, i_R2 (of branch 2), or iE, io."""
    named = dict(zip(model.problem.names, values))
    found = {f"v({node})": named.get(f"v{node.lstrip('n')}", 0.0) for node in circuit.nodes}
    state = {"0": 0.0} | {node: found[f"v({node})"] for node in circuit.nodes}
    for branch in circuit.branches:
        found[f"u({branch.name})"] = u = state[branch.positive] - state[branch.negative]
        kind, number = "ES"["VI".index(branch.name[0])] if branch.name[0] in "VI" else branch.name[0], branch.name[1:]
        known = {"V": "iE", "O": "io", "C": f"i{number}"}.get(branch.name[0], "")
        found[f"i({branch.name})"] = named.get(f"i_{kind}{number}", named.get(known, np.nan))
        if branch.kind == "R":
            found[f"i({branch.name})"] = u / circuit.params[branch.name]
    for _ in range(3):  # currents that the model does not have follow from Kirchhoff's law
        for node in circuit.nodes:
            meeting = [(b, 1.0 if b.positive == node else -1.0) for b in circuit.branches if node in b.nodes]
            unknown = [(b, sign) for b, sign in meeting if np.isnan(found[f"i({b.name})"])]
            if len(unknown) == 1:
                rest = sum(sign * found[f"i({b.name})"] for b, sign in meeting if b is not unknown[0][0])
                found[f"i({unknown[0][0].name})"] = -rest / unknown[0][1]
    return np.array([found[name] for name in problem.names])


def test_amplifier_of_a_netlist_is_that_of_the_library():
    """Rentrop, Roche and Steinebach's amplifier: the same equations at random points, up to the signs of rows."""
    circuit, model = circuits.parse(AMPLIFIER), daedal.library.transistor_amplifier()
    problem = circuit.problem()
    rng = np.random.default_rng(1)
    for t in (0.0, 0.0013):
        y, yp = rng.uniform(-0.3, 0.3, 8) + model.initial[0], rng.normal(size=8)
        source = 0.1 * math.sin(200.0 * math.pi * t)
        mine = problem.evaluate(t, _placed(problem, y, source), _placed(problem, yp, 0.0))
        rows = [problem.names.index(f"v({k})") for k in range(1, 9)]
        np.testing.assert_allclose(-mine[rows], model.problem.evaluate(t, y, yp), rtol=1e-12, atol=1e-17)
    assert circuit.topology.index() == 1 and circuit.topology.degrees_of_freedom == 5


def _placed(problem, y, source):
    values = {f"v({k + 1})": y[k] for k in range(8)} | {"v(b)": 6.0, "v(e)": source}
    return np.array([values.get(name, 0.0) for name in problem.names])


def test_amplifier_of_a_netlist_has_the_solution_of_the_library():
    model = daedal.library.transistor_amplifier()
    sol = circuits.parse(AMPLIFIER).solve((0.0, 0.2), rtol=1e-7, t_eval=[0.2])
    values = [sol[f"v({k})"][-1] for k in range(1, 9)]
    assert np.max(model.reference.error(values)) < 1e-6


def test_forms_have_one_solution():
    """A rectifier with a transformer and junction charges; the starts of all forms and their ends agree."""
    circuit = circuits.parse("""
        V1 p 0 SIN(0 5 1k)
        R1 p q 10
        L1 q 0 10m
        L2 s 0 10m
        K1 L1 L2 0.9
        D1 s out fast
        C1 out 0 1u
        R2 out 0 1k
        .model fast d(is=1n cjo=100p tt=10n)
    """)
    ends = {}
    for form in FORMS:
        sol = circuit.solve((0.0, 1.2e-3), form=form, rtol=1e-8)
        ends[form] = [sol[name][-1] for name in circuit.problem().names]
    assert ends["nodal"][3] > 2.0
    for form in FORMS[1:]:
        np.testing.assert_allclose(ends[form], ends["nodal"], rtol=1e-5, atol=1e-9)


def test_charge_of_an_isolated_node_is_kept():
    """C1 C2 in series with a diode's charge: q of the node between them does not change."""
    circuit = circuits.parse("""
        V1 a 0 SIN(0 1 1k)
        C1 a b 1n ic=0
        C2 b 0 1n
        D1 c b m
        D2 b c m
        R1 c 0 1k
        .model m d(is=1e-30 cjo=10n)
    """)
    sol = circuit.solve((0.0, 2e-3), rtol=1e-9)
    total = -1e-9 * (sol["v(a)"] - sol["v(b)"]) + 1e-9 * sol["v(b)"] - sol["q(D1.c)"] + sol["q(D2.c)"]
    assert np.ptp(total) < 1e-9 * np.max(np.abs(sol["q(D1.c)"]))


@given(
    v=st.floats(-5.0, 5.0), grading=st.floats(0.1, 0.9), forward=st.floats(0.1, 0.9), built_in=st.floats(0.3, 1.5)
)  # fmt: skip
def test_capacitance_is_the_slope_of_the_charge(v, grading, forward, built_in):
    h, shape = 1e-4, (2.0, built_in, grading, forward)
    slope = (depletion_charge(v + h, *shape) - depletion_charge(v - h, *shape)) / (2.0 * h)
    edge = forward * built_in
    law = 2.0 * (1.0 - min(v, edge) / built_in) ** -grading
    law *= 1.0 + grading * max(v - edge, 0.0) / (built_in * (1.0 - forward))
    assert slope == pytest.approx(law, rel=1e-3)


def test_every_kind_of_controlled_source_has_the_signs_of_spice():
    """2 A through 3 Ohm give 6 V; each source multiplies what controls it by 0.5."""
    point = circuits.parse("""
        I1 0 a 2
        R1 a b 3
        V1 b 0 0
        E1 e 0 a 0 0.5
        Re e 0 1
        H1 h 0 V1 0.5
        Rh h 0 1
        G1 0 g a 0 0.5
        Rg g 0 1
        F1 0 f V1 0.5
        Rf f 0 1
    """).operating_point()
    assert [point[f"v({node})"] for node in "aehgf"] == pytest.approx([6.0, 3.0, 1.0, 3.0, 1.0])
    assert point["i(V1)"] == pytest.approx(2.0) and point["i(E1)"] == pytest.approx(-3.0)


def test_subcircuits_are_unfolded_with_names_of_their_own():
    circuit = circuits.parse("""
        .subckt half in out
        R1 in out 1k
        R2 out GND 1k
        .ends
        V1 a 0 8
        X1 a b half
        X2 b c half
    """)
    assert circuit.nodes == ("a", "b", "c") and "X2.R1" in circuit.params
    assert circuit.operating_point()["v(c)"] == pytest.approx(8.0 / 5.0)


# --- signals ----------------------------------------------------------------------------------------------------------


def _course(text, times):
    (element,) = (e for e in circuits.parse(f"V1 a 0 {text}\nR1 a 0 1").elements if e.name == "V1")
    read = element.signal.parameters.__getitem__
    return [float(element.signal.at(t, read)) for t in times], element.signal


def test_courses_of_sources():
    values, pulse = _course("PULSE(1 5 1 0.5 1 2 10)", [0.0, 1.25, 2.0, 3.5, 4.0, 4.5, 9.0, 11.25, 12.0])
    assert values == [1.0, 3.0, 5.0, 5.0, 3.0, 1.0, 1.0, 3.0, 5.0]
    assert pulse.corners(0.0, 12.0) == [1.0, 1.5, 3.5, 4.5, 11.0, 11.5]
    values, jump = _course("PULSE(0 2 1)", [0.0, 0.999, 1.0, 100.0])
    assert values == [0.0, 0.0, 2.0, 2.0] and jump.corners(0.0, 5.0) == [1.0]
    values, sine = _course("DC 7 AC 1 SIN(1 2 0.25 1 0 90)", [0.0, 1.0, 2.0, 3.0])
    assert values == pytest.approx([3.0, 3.0, 1.0, -1.0]) and sine.corners(0.0, 5.0) == [1.0]
    values, table = _course("PWL(1 0, 2 4, 3 4)", [0.0, 1.5, 2.5, 9.0])
    assert values == [0.0, 2.0, 4.0, 4.0] and table.corners(0.0, 2.5) == [1.0, 2.0]


def test_a_pulse_charges_and_discharges_a_capacitor():
    """Between jumps the voltage is an exponential; no step goes across a jump."""
    circuit = circuits.parse("V1 a 0 PULSE(0 5 1m 0 0 2m 4m)\nR1 a b 1k\nC1 b 0 1u")
    sol = circuit.solve((0.0, 6e-3), rtol=1e-8)
    v, t = 0.0, 0.0
    for until, level in ((1e-3, 0.0), (3e-3, 5.0), (5e-3, 0.0), (6e-3, 5.0)):
        v, t = level + (v - level) * math.exp(-(until - t) / 1e-3), until
        assert sol(until)[sol.names.index("v(b)")] == pytest.approx(v, abs=1e-6)


# --- at rest and the start --------------------------------------------------------------------------------------------


def test_operating_point_of_a_diode_by_lambert_w():
    """i R + n V_T log(1 + i / I_S) = E: closed with the Lambert function."""
    from scipy.special import lambertw

    point = circuits.parse("V1 a 0 5\nR1 a b 1k\nD1 b 0 m\n.model m d(is=1e-14)").operating_point()
    scale = 1e-14 * 1e3 / THERMAL_VOLTAGE
    current = float(THERMAL_VOLTAGE / 1e3 * lambertw(scale * math.exp((5.0 + 1e-11) / THERMAL_VOLTAGE)).real) - 1e-14
    assert point["v(b)"] == pytest.approx(5.0 - 1e3 * current, rel=1e-9)


@pytest.mark.parametrize("polarity", ["npn", "pnp"])
@pytest.mark.parametrize("supply", [5.0, 50.0])
def test_operating_points_of_transistors_are_found_from_zero(polarity, supply):
    """A Darlington pair; pnp with all signs reversed has the reversed voltages."""
    sign = 1.0 if polarity == "npn" else -1.0
    circuit = circuits.parse(f"""
        V1 c 0 {sign * supply}
        Rb c b 100k
        Rc c d 100
        Q1 d b e m
        Q2 d e 0 m
        .model m {polarity}(is=1e-15 bf=150)
    """)
    point = circuit.operating_point()
    assert 0.9 < sign * point["v(b)"] < 1.8
    problem = circuit.problem()
    np.testing.assert_allclose(problem.evaluate(0.0, point.x, np.zeros(problem.n)), 0.0, atol=1e-9)


def test_a_bistable_circuit_has_a_state_at_rest():
    """Cross-coupled transistors: Newton's method from zero finds the symmetric state."""
    circuit = circuits.parse("""
        V1 v 0 5
        R1 v a 1k
        R2 v b 1k
        R3 a p 10k
        R4 b q 10k
        Q1 a q 0 m
        Q2 b p 0 m
        .model m npn(is=1e-15 bf=100)
    """)
    point = circuit.operating_point()
    assert point["v(a)"] == pytest.approx(point["v(b)"], rel=1e-6)
    biased = circuit.start(initial={"v(a)": 5.0})
    assert biased[0].shape == (6,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("V1 a 0 1\nC1 a b 1\nC2 b 0 1", "node b is connected to the ground only by capacitors"),
        ("V1 a 0 1\nR1 a 0 1\nL1 a 0 1", "L1 and V1 form a loop of voltage sources, of inductors at rest"),
    ],
)
def test_circuits_without_a_state_at_rest_say_why(text, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        circuits.parse(text).operating_point()


def test_starts_from_given_voltages_and_currents():
    """A damped resonant circuit against its closed solution; empty, given by name, by ic= and by .ic."""
    netlist = "C1 a 0 1u{}\nL1 a 0 1m{}\nR1 a 0 50\nI1 0 a 0"
    circuit = circuits.parse(netlist.format("", ""))
    for y0 in (
        circuits.parse(netlist.format(" ic=5", " ic=20m")).start()[0],
        circuit.start(initial={"C1": 5.0, "L1": 0.02})[0],
        circuit.start(initial={"v(a)": 5.0, "L1": 0.02})[0],
        circuits.parse(netlist.format("", " ic=20m") + "\n.ic v(a)=5").start()[0],
    ):
        np.testing.assert_allclose(y0, [5.0, 0.02], rtol=1e-12)
    np.testing.assert_allclose(circuit.start(empty=True)[0], 0.0, atol=1e-30)
    sol = circuit.solve((0.0, 1e-4), initial={"C1": 5.0, "L1": 0.02}, rtol=1e-9)
    matrix = np.array([[-1.0 / (50.0 * 1e-6), -1e6], [1e3, 0.0]])
    values, vectors = np.linalg.eig(matrix)
    closed = (vectors @ (np.exp(1e-4 * values) * np.linalg.solve(vectors, [5.0, 0.02]))).real
    np.testing.assert_allclose(sol.y[:, -1], closed, rtol=1e-7)
    with pytest.raises(daedal.InvalidProblemError, match="'C7' is not a capacitor, inductor or node"):
        circuit.start(initial={"C7": 1.0})


def test_a_current_that_is_given_controls_other_sources():
    """The current of an inductor, 0.1 A at the start, controls a source and is coupled with another inductor."""
    coupled = "L2 d 0 1m\nR3 d 0 1\nK1 L1 L2 0.5"
    circuit = circuits.parse("V1 a 0 1\nL1 a b 1m ic=0.1\nR1 b 0 10\nF1 0 c L1 2\nR2 c 0 5\n" + coupled)
    y0, _ = circuit.start()
    values = dict(zip(circuit.problem().names, y0))
    assert values["v(c)"] == pytest.approx(1.0) and values["v(b)"] == pytest.approx(1.0)


@pytest.mark.parametrize("form", FORMS)
def test_sparse_structure_covers_the_jacobian(form):
    """A long ladder with diodes, transistors, coupled inductors and controlled sources."""
    lines = "".join(f"L{k} n{k} n{k + 1} 1m\nC{k} n{k + 1} 0 1u\nD{k} n{k + 1} 0 M\n" for k in range(25))
    extra = "K1 L1 L2 0.5\nF1 0 n5 L3 2\nE1 e 0 n3 n4 2\nR2 e n9 1\nQ1 n6 n7 0 T\nO1 n8 n9 o\nR3 o n9 1k\n"
    models = ".model M d(is=1n cjo=10n)\n.model T npn(cje=1p)"
    circuit = circuits.parse("V1 n0 0 SIN(0 1 1k)\n" + lines + extra + "R1 n25 0 30\n" + models)
    equations = circuit.equations(form)
    pattern = equations.sparsity(circuit.params)
    assert pattern.nnz < 0.2 * pattern.shape[0] ** 2
    rng = np.random.default_rng(2)
    x, xp = rng.normal(size=(2, len(equations.names)))
    x *= 0.1
    base = np.array(equations.residual(0.1, x, xp, circuit.params), dtype=float)
    for k in range(len(x)):
        for moved in ((x + 1e-3 * np.eye(len(x))[k], xp), (x, xp + np.eye(len(x))[k])):
            change = np.array(equations.residual(0.1, *moved, circuit.params), dtype=float) - base
            assert set(np.flatnonzero(change)) <= set(pattern[:, [k]].nonzero()[0])


def test_empty_leaves_out_what_follows_from_sources():
    """The capacitors of a CV-loop and the inductors of an LI-cutset cannot all be empty."""
    y0, _ = circuits.parse("V1 a 0 3\nC1 a b 1\nC2 b 0 1\nR1 b 0 1").start(empty=True)
    np.testing.assert_allclose(y0[:2], [3.0, 3.0], rtol=1e-12)
    y0, _ = circuits.parse("I1 0 a 2\nL1 a b 1\nR1 b 0 1\nL2 b 0 1").start(empty=True)
    np.testing.assert_allclose(y0[2:], [2.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("form", ["nodal", "tableau"])
def test_starts_of_index_2_satisfy_the_hidden_constraint(form):
    """The current of a source in a CV-loop is C v'."""
    circuit = circuits.parse("V1 a 0 SIN(0 1 50)\nC1 a 0 1u\nR1 a 0 1k")
    y0, _ = circuit.start(form=form)
    assert y0[circuit.equations(form).names.index("i(V1)")] == pytest.approx(-1e-6 * 100.0 * math.pi, rel=1e-6)


def test_values_of_elements_are_parameters_with_sensitivities():
    circuit = circuits.parse("V1 a 0 1\nR1 a b 1k\nC1 b 0 1u ic=0")
    problem, initial = circuit.problem(), circuit.start()
    sol = daedal.solve(problem, (0.0, 1e-3), initial, rtol=1e-9, atol=circuit.tolerances(), sensitivities=["R1"])
    exact = -math.exp(-1.0) / 1e3  # d/dR of 1 - exp(-t / RC) at t = RC = 1 ms
    assert sol.sensitivity("R1")[1, -1] == pytest.approx(exact, rel=1e-5)
    other = circuit.solve((0.0, 1e-3), rtol=1e-9, params={"R1": 2e3})
    assert other["v(b)"][-1] == pytest.approx(1.0 - math.exp(-0.5), rel=1e-6)


def test_what_is_no_text_is_refused():
    with pytest.raises(daedal.InvalidProblemError, match="a netlist must be a string, not list"):
        circuits.parse(["V1 a 0 1"])


def test_tran_and_output_cards(tmp_path):
    file = tmp_path / "filter.cir"
    file.write_text("A low-pass filter\nV1 a 0 1\nR1 a b 1k\nC1 b 0 1u\n.tran 1u 5m\n.print tran v(b)\n.end\nrubbish")
    circuit = circuits.read(file)
    assert circuit.t_span == (0.0, 5e-3) and circuit.ignored == ("line 6: .print tran v(b)",)
    assert circuit.solve().t[-1] == 5e-3
    with pytest.raises(daedal.InvalidProblemError, match="t_span is missing"):
        circuits.parse("V1 a 0 1\nR1 a 0 1").solve()


def test_subcircuits_that_multiply_are_refused_before_they_are_unfolded():
    levels = "".join(
        f".subckt s{i} a b\n" + "".join(f"X{j} a b s{i - 1}\n" for j in range(10)) + ".ends\n" for i in range(1, 12)
    )
    bomb = f"* a bomb\n.subckt s0 a b\nR1 a b 1\n.ends\n{levels}V1 1 0 1\nX1 1 0 s11\n.end\n"
    with pytest.raises(daedal.InvalidProblemError, match=r"expanded subcircuits have .* lines up to here"):
        daedal.circuits.parse(bomb)
    deep = "".join(f".subckt s{i} a b\nX1 a b s{i - 1}\n.ends\n" for i in range(1, 3000))
    with pytest.raises(daedal.InvalidProblemError, match="more than 20 deep"):
        daedal.circuits.parse(f"* deep\n.subckt s0 a b\nR1 a b 1\n.ends\n{deep}V1 1 0 1\nX1 1 0 s2999\n.end\n")
