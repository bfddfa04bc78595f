"""Every remedy that a message about mechanisms, second-order and hybrid problems gives is taken, and works."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import daedal
from remedies import Remedy, named

GRAVITY = 9.81
START = ([1.0, 0.0], [0.0, 0.0])


def circle(t, q):
    return [q[0] ** 2 + q[1] ** 2 - 1.0]


def system(mass=1.0, force=lambda t, q, v: [0.0, -GRAVITY], constraint=circle, **changes):
    arguments = {"n_q": 2, "n_constraints": 1} | changes
    return daedal.MechanicalSystem(mass, force, constraint, **arguments)


def point(force, **changes):
    return daedal.MechanicalSystem(1.0, force, n_q=1, **changes)


def solve(problem=None, t_end=1.0, initial=START, **options):
    return daedal.solve(system() if problem is None else problem, (0.0, t_end), initial, **options)


def swing(t_end=1.0):
    return solve(t_end=t_end, rtol=1e-10, atol=1e-12).q[:, -1]


def rests(t, q, v):
    return [0.0, 0.0]


def two(first, second):
    """Two constraints on x, as functions of time."""
    return lambda t, q: [q[0] - 1.0 - first(t), q[0] - 1.0 - second(t)]


def on_the_line(force, **changes):
    return system(force=force, constraint=lambda t, q: [q[1]], force_uses_multipliers=True, **changes)


def rubbing(mu):
    """The force undoes the reaction where mu = 1."""
    return on_the_line(lambda t, q, v, lam: [0.0, mu * lam[0] - GRAVITY])


def implicit_spring(guess):
    """w follows from arctan(w - 2) = q, for which Newton's method must start near 2."""
    problem = point(
        lambda t, q, v, w: [2.0 - w[0]], algebraic=lambda t, q, v, w: [math.atan(w[0] - 2.0) - 0.0 * q[0]], n_w=1
    )
    return solve(problem, 1.0, ([0.0], [1.0], None, [guess]))


def square_root(guess):
    """w^2 = q + 1: at w = 0 the equation does not determine w."""
    problem = point(lambda t, q, v, w: [0.0], algebraic=lambda t, q, v, w: [w[0] ** 2 - 1.0 - q[0]], n_w=1)
    return solve(problem, 1.0, ([0.0], [0.0], None, [guess]))


def sliding_spring(t, q, v):
    return [-q[0] - 0.5 * np.sign(v[0])]


def with_friction():
    """m = 1, k = 1, mu N = 0.5, from x = 1 to the left until x = 0 at t = pi, where it sticks."""
    problem = daedal.hybrid.Friction(point(lambda t, q, v: [-q[0]]), [1.0], mu=0.5, normal=1.0)
    sol = daedal.solve(problem, (0.0, 5.0), problem.entry((0.0, 5.0), ([1.0], [0.0])))
    return sol.y[:1, -1]


def rod(force=lambda t, q, v: [0.0, -GRAVITY], **changes):
    """A pendulum with sparse matrices."""
    gradient = changes.pop("constraint_jacobian", lambda t, q: csr_array([[2.0 * q[0], 2.0 * q[1]]]))
    return system(csr_array(np.eye(2)), force, constraint_jacobian=gradient, **changes)


def blow_up(t, q, v):
    return [v[0] ** 2]


def until_half(t, q, v):
    return [0.0, -GRAVITY if t < 0.5 else np.nan]


def bead(guess):
    """On the curve (s, cos(s) / 2); the equation for s = q0 has values for s > 4 only."""
    given = {} if guess is None else {"contact_guess": guess}
    problem = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, s: [0.0, 0.0],
        lambda t, q, s: [q[1] - 0.5 * math.cos(s[0])],
        n_q=2,
        n_constraints=1,
        contact=lambda t, q, s: [math.sqrt(s[0] - 4.0) - math.sqrt(q[0] - 4.0) if s[0] > 4.0 else math.nan],
        n_s=1,
        **given,
    )
    return solve(problem, 0.1, ([5.0, 0.5 * math.cos(5.0)], [0.0, 0.0]))


def hessenberg(b):
    return daedal.HessenbergDAE(np.zeros((1, 1)), [[b]], [[1.0]], [0.0], [0.0], n_x=1, n_y=1, order=1)


CRANK = daedal.library.get("crank_slider", l1=1, l2=1, phi1=1.0, rate=5.0)


def crank(**options):
    return daedal.solve(CRANK.problem, CRANK.t_span, CRANK.initial, formulation="ggl", **options)


DRIVEN = daedal.SecondOrderDAE(lambda t, x, v, a: [a[0] + x[1], x[0] - t], 2)


def driven(x0, **options):
    return daedal.solve(DRIVEN, (0.0, 1.0), (x0, [1.0, 0.0]), **options)


MECHANISMS = [
    Remedy(
        "a weight of zero",
        lambda: solve(atol=0.0),
        ("make atol positive for q[1], v[0], v[1]",),
        ((lambda: solve(atol=1e-9), swing()),),
    ),
    Remedy(
        "the step limit",
        lambda: solve(t_end=10.0, max_steps=50),
        ("max_steps=1000", "loosen rtol and atol"),
        (
            (lambda: solve(t_end=10.0, max_steps=1000), swing(10.0)),
            (lambda: solve(t_end=10.0, max_steps=50, rtol=1e-1, atol=1e-1).t[-1:], [10.0]),
        ),
    ),
    Remedy(
        "the step limit, at once",
        lambda: solve(max_steps=5, method="dassl"),
        ("raise max_steps (the first steps are short, and grow)",),
        ((lambda: solve(max_steps=10000, method="dassl"), swing()),),
    ),
    Remedy(
        "a switch in a velocity",
        lambda: solve(point(sliding_spring), 5.0, ([1.0], [0.0]), max_steps=3000, switches="never"),
        ("The derivative of v[0] jumps by 1 where v[0] passes 0", "daedal.hybrid.Friction for dry friction"),
        ((with_friction, [0.0]),),
    ),
    Remedy(
        "a blow-up",
        lambda: solve(point(blow_up), 2.0, ([0.0], [1.0])),
        ("check for a blow-up near this time, and stop before it with a terminal event (events=...)",),
        (
            (
                lambda: solve(
                    point(blow_up),
                    2.0,
                    ([0.0], [1.0]),
                    events=daedal.Event(lambda t, q, v: v[0] - 1e3, terminal=True),
                ).v[:, -1],
                [1e3],
            ),
        ),
    ),
    Remedy(
        "a force that ends",
        lambda: solve(system(force=until_half)),
        ("beyond t = 0.5", "end t_span before it or stop with a terminal event (events=...)"),
        (
            (lambda: solve(system(force=until_half), 0.499), swing(0.499)),
            (
                lambda: solve(system(force=until_half), events=daedal.Event(lambda t, q, v: t - 0.499, terminal=True)),
                swing(0.499),
            ),
        ),
    ),
    Remedy(
        "a singular configuration",
        crank,
        ("singular configuration", "stop before it (a terminal event)"),
        (
            (
                lambda: crank(events=daedal.Event(lambda t, q, v: t - 0.12, terminal=True)).t[-1:],
                [0.12],
            ),
        ),
    ),
    Remedy(
        "a derivative that is wrong",
        lambda: solve(system(constraint_jacobian=lambda t, q: [[2.0 * q[0], q[1]]]), initial=([0.6, 0.8], None)),
        ("correct it, or omit constraint_jacobian", "system.check(t, q, v)"),
        (
            (
                lambda: solve(
                    system(constraint_jacobian=lambda t, q: [[2.0 * q[0], 2.0 * q[1]]]), initial=([0.6, 0.8], None)
                ),
                solve(initial=([0.6, 0.8], None), rtol=1e-9).q[:, -1],
            ),
            (lambda: solve(initial=([0.6, 0.8], None)), solve(initial=([0.6, 0.8], None), rtol=1e-9).q[:, -1]),
        ),
    ),
    Remedy(
        "sparse constraints that follow from others",
        lambda: solve(
            rod(
                constraint=lambda t, q: [*circle(t, q), *circle(t, q)],
                constraint_jacobian=lambda t, q: csr_array([[2.0 * q[0], 2.0 * q[1]]] * 2),
                n_constraints=2,
            )
        ),
        ("sparse systems need independent constraints; remove those that follow from others",),
        ((lambda: solve(rod()), swing()),),
        rel=1e-3,
    ),
]

STARTS = [
    Remedy(
        "positions off the constraint",
        lambda: solve(initial=([1.0, 0.1], [0.0, 0.0])),
        ("daedal.consistent_initial(system, t0, (q0, v0), fixed=[...]).initial", "pass correct_initial=True"),
        (
            (
                lambda: solve(
                    initial=daedal.consistent_initial(system(), 0.0, ([1.0, 0.1], [0.0, 0.0]), fixed=[1]).initial
                ).q[:, 0],
                [math.sqrt(0.99), 0.1],
            ),
            (
                lambda: solve(initial=([1.0, 0.1], [0.0, 0.0]), correct_initial=True).q[:, 0],
                np.array([1.0, 0.1]) / math.sqrt(1.01),
            ),
        ),
    ),
    Remedy(
        "velocities off the constraint, and large numbers",
        lambda: solve(system(force=rests), initial=([1.0, 0.0], [13175.4, 1e9])),
        ("v[0] = 0 (given 13175.4)", "pass correct_initial=True"),
        (
            (
                lambda: solve(
                    system(force=rests), 1e-9, ([1.0, 0.0], [13175.4, 1e9]), correct_initial=True, atol=1e-6
                ).v[:, 0],
                [0.0, 1e9],
            ),
        ),
    ),
    Remedy(
        "a coordinate that cannot be held",
        lambda: daedal.consistent_initial(system(), 0.0, ([2.0, 0.1], None), fixed=[0]),
        ("with fixed q[0]", "fix other coordinates, or none"),
        (
            (lambda: daedal.consistent_initial(system(), 0.0, ([2.0, 0.1], None), fixed=[1]).q, [math.sqrt(0.99), 0.1]),
            (lambda: np.linalg.norm(daedal.consistent_initial(system(), 0.0, ([2.0, 0.1], None)).q), 1.0),
        ),
    ),
    Remedy(
        "a velocity that cannot be held",
        lambda: daedal.consistent_initial(system(), 0.0, ([1.0, 0.0], [0.3, 0.2]), fixed=["v[0]"]),
        ("with fixed v[0]", "fix other velocities, or none"),
        (
            (
                lambda: daedal.consistent_initial(system(), 0.0, ([1.0, 0.0], [0.3, 0.2]), fixed=["v[1]"]).v,
                [0.0, 0.2],
            ),
            (lambda: daedal.consistent_initial(system(), 0.0, ([1.0, 0.0], [0.3, 0.2])).v, [0.0, 0.2]),
        ),
    ),
    Remedy(
        "constraints that contradict each other",
        lambda: solve(system(constraint=lambda t, q: [q[0] - 1.0, q[0] - 2.0], n_constraints=2)),
        ("their gradients are dependent, constraint 1 = constraint 0", "check these constraints"),
        (
            (
                lambda: solve(system(constraint=lambda t, q: [q[0] - 1.0, q[0] - 1.0], n_constraints=2)),
                [1.0, -0.5 * GRAVITY],
            ),
        ),
    ),
    Remedy(
        "constraints that move apart",
        lambda: solve(
            system(constraint=two(lambda t: t, lambda t: 2.0 * t), n_constraints=2), initial=([1.0, 0.0], None)
        ),
        ("are contradictory at the velocity level", "check how these constraints depend on time"),
        (
            (
                lambda: solve(
                    system(constraint=two(lambda t: t, lambda t: t), n_constraints=2), initial=([1.0, 0.0], None)
                ),
                [2.0, -0.5 * GRAVITY],
            ),
        ),
    ),
    Remedy(
        "constraints that accelerate apart",
        lambda: solve(
            system(constraint=two(lambda t: t * t, lambda t: 2.0 * t * t), n_constraints=2), initial=([1.0, 0.0], None)
        ),
        ("contradict each other at the acceleration level", "check how these constraints depend on time"),
        (
            (
                lambda: solve(
                    system(constraint=two(lambda t: t * t, lambda t: t * t), n_constraints=2),
                    initial=([1.0, 0.0], None),
                ),
                [2.0, -0.5 * GRAVITY],
            ),
        ),
    ),
    Remedy(
        "a start in a branching point",
        lambda: solve(system(constraint=lambda t, q: [q[0] * q[1]]), initial=([0.0, 0.0], None)),
        ("the initial position is a singular configuration", "start near this position, not at it"),
        (
            (
                lambda: solve(system(constraint=lambda t, q: [q[0] * q[1]]), initial=([0.0, -1.0], None)),
                [0.0, -1.0 - 0.5 * GRAVITY],
            ),
        ),
    ),
    Remedy(
        "a coordinate without mass",
        lambda: solve(system(mass=[1.0, 0.0])),
        ("give these coordinates a mass, constrain them, or make them algebraic variables w",),
        (
            (lambda: solve(system(mass=[1.0, 1.0])), swing()),
            (
                lambda: solve(
                    system(mass=[1.0, 0.0], constraint=lambda t, q: [q[1] - q[0]], force=lambda t, q, v: [-1.0, 0.0]),
                    initial=([1.0, 1.0], [0.0, 0.0]),
                ),
                [0.5, 0.5],
            ),
            (
                lambda: solve(
                    point(lambda t, q, v, w: [-w[0]], algebraic=lambda t, q, v, w: [w[0] - q[0]], n_w=1),
                    1.0,
                    ([1.0], [0.0], None, [1.0]),
                ),
                [math.cos(1.0)],
            ),
        ),
    ),
    Remedy(
        "forces that undo the reaction",
        lambda: solve(rubbing(1.0), initial=([0.0, 0.0], None)),
        ("the forces cancel the reaction", "check how forces depend on lam"),
        ((lambda: solve(rubbing(0.5), initial=([0.0, 0.0], None)).lam[:, -1], [-2.0 * GRAVITY]),),
    ),
    Remedy(
        "algebraic variables that are not determined",
        lambda: square_root(0.0),
        ("the algebraic equations do not determine w", "use a different w0"),
        ((lambda: square_root(0.5).w[:, -1], [1.0]),),
    ),
    Remedy(
        "algebraic variables that are not found",
        lambda: implicit_spring(100.0),
        ("Newton's method does not converge", "give w0 closer to the solution, initial=(q0, v0, None, w0)"),
        ((lambda: implicit_spring(1.5), [1.0]),),
    ),
    Remedy(
        "contact coordinates that are not found",
        lambda: bead(None),
        ("give contact_guess, values or a function of (t, q), near the solution",),
        (
            (lambda: bead([4.9]), [5.0, 0.5 * math.cos(5.0)]),
            (lambda: bead(lambda t, q: [q[0] + 0.01]), [5.0, 0.5 * math.cos(5.0)]),
        ),
    ),
    Remedy(
        "sparse positions off the constraint",
        lambda: solve(rod(), initial=([1.0, 0.1], [0.0, 0.0])),
        ("pass correct_initial=True",),
        (
            (
                lambda: solve(rod(), initial=([1.0, 0.1], [0.0, 0.0]), correct_initial=True).q[:, 0],
                np.array([1.0, 0.1]) / math.sqrt(1.01),
            ),
        ),
    ),
    Remedy(
        "a Hessenberg problem without y",
        lambda: daedal.solve(hessenberg(0.0), (0.0, 1.0), [0.0]),
        ("differentiated once, does not determine y", "check B and C"),
        ((lambda: daedal.solve(hessenberg(1.0), (0.0, 1.0), [0.0]).y[:1, -1], [0.0]),),
    ),
    Remedy(
        "a second-order start off the constraint",
        lambda: driven([0.5, 0.0]),
        ("choose x0 so that equation 1 holds; correct_initial=True or daedal.consistent_initial finds",),
        (
            (lambda: driven([0.0, 0.0]).y[:2, -1], [1.0, 0.0]),
            (lambda: driven([0.5, 0.0], correct_initial=True).y[:2, -1], [1.0, 0.0]),
            (lambda: daedal.consistent_initial(DRIVEN, 0.0, ([0.5, 0.0], [1.0, 0.0]))[0], [0.0, 0.0]),
        ),
    ),
]


# --- second order ---

SWINGING = ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])


def oscillating(t_end=1.0, **options):
    return daedal.solve(
        daedal.SecondOrderDAE(lambda t, x, v, a: [a[0] + x[0]], 1), (0.0, t_end), ([0.0], [1.0]), **options
    )


def pushed(t_end=1.0, **options):
    """x1 jumps at t = 0.5."""
    residual = daedal.SecondOrderDAE(lambda t, x, v, a: [a[0] + x[1], x[1] ** 3 + x[1] - 10.0 * (t >= 0.5)], 2)
    return daedal.solve(residual, (0.0, t_end), ([0.0, 0.0], [1.0, 0.0]), **options)


def swinging(**options):
    """The pendulum with its constraint on the level of positions."""
    residual = daedal.SecondOrderDAE(
        lambda t, x, v, a: [a[0] + x[0] * x[2], a[1] + x[1] * x[2] + GRAVITY, x[0] ** 2 + x[1] ** 2 - 1.0], 3
    )
    return daedal.solve(residual, (0.0, 1.0), SWINGING, **options).y[:2, -1]


def damped(sign, **options):
    jacobian = {"jacobian": lambda t, x, v, a, c1, c2: [[1e4 + sign * (100.0 * c1 + c2)]]} if sign else {}
    residual = daedal.SecondOrderDAE(lambda t, x, v, a: [a[0] + 1e4 * x[0] + 100.0 * v[0]], 1, **jacobian)
    return daedal.solve(residual, (0.0, 1.0), ([1.0], [0.0]), **options).y[:1, -1]


SECOND_ORDER = [
    Remedy(
        "a weight of zero, second order",
        lambda: oscillating(atol=0.0),
        ("set atol of x[0] to the largest error that does not matter",),
        ((lambda: oscillating(atol=1e-9), [math.sin(1.0), math.cos(1.0)]),),
    ),
    Remedy(
        "the step limit, second order",
        lambda: oscillating(20.0, max_steps=100),
        ("max_steps=1000", "loosen rtol and atol"),
        (
            (lambda: oscillating(20.0, max_steps=1000), [math.sin(20.0), math.cos(20.0)]),
            (lambda: oscillating(20.0, max_steps=100, rtol=1e-2, atol=1e-2).t[-1:], [20.0]),
        ),
        rel=1e-3,
    ),
    Remedy(
        "a jump in time, second order",
        pushed,
        ("Equation 1 (numbered from 0) jumps by 10 at t = 0.5", "breakpoints=[0.5]"),
        ((lambda: pushed(breakpoints=[0.5]).y[:2, -1], [0.75, 2.0]),),
    ),
    Remedy(
        "index 3 in first-order form",
        lambda: swinging(method="dassl"),
        ("the problem has index 3", "Remedy: use method='modified_bdf' or 'collocation'"),
        ((lambda: swinging(method="modified_bdf"), swing()), (lambda: swinging(method="collocation"), swing())),
    ),
    Remedy(
        "a wrong Jacobian, second order",
        lambda: damped(-1.0),
        ("the given jacobian is wrong", "correct jacobian", "or omit it"),
        ((lambda: damped(1.0), [0.0]), (lambda: damped(0.0), [0.0])),
    ),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@named(SECOND_ORDER)
def test_remedies_of_second_order_work(remedy):
    remedy.check()


# --- modes ---


def flight(restitution, *more, **modes):
    """A ball that is dropped from a height of 1."""
    bounce = daedal.hybrid.Transition(
        "flight",
        "flight",
        lambda t, q, v: q[0],
        direction=-1,
        reset=lambda t, q, v: (q, -restitution * v),
        name="bounce",
    )
    falling = point(lambda t, q, v: [-GRAVITY])
    return daedal.hybrid.HybridProblem({"flight": falling} | modes, [bounce, *more])


def dropped(problem, t_end=2.0, **options):
    sol = daedal.solve(problem, (0.0, t_end), ("flight", ([1.0], [0.0])), **options)
    if not sol.success:  # ended early without an exception, as at an accumulation
        raise daedal.IntegrationError(sol.message, sol)
    return sol.y[:1, -1]


RESTING = {"rest": point(lambda t, q, v: [0.0])}


def relay(width):
    """y' = -1 above the surface y = 0 and 1 below it; with hysteresis of a width."""
    modes = {
        name: daedal.ImplicitDAE(lambda t, y, yp, s=s: [yp[0] - s], 1) for name, s in (("down", -1.0), ("up", 1.0))
    }
    transitions = [
        daedal.hybrid.Transition("down", "up", lambda t, y: y[0] + width, direction=-1),
        daedal.hybrid.Transition("up", "down", lambda t, y: y[0] - width, direction=1),
    ]
    return daedal.hybrid.HybridProblem(modes, transitions)


def falls_onto_a_rail(**changes):
    """From free fall to a bead on the line y = 0, with or without what makes the velocities fit."""
    free = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -GRAVITY], n_q=2)
    rail = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -GRAVITY], lambda t, q: [q[1]], n_q=2, n_constraints=1)
    lands = daedal.hybrid.Transition("free", "rail", lambda t, q, v: q[1], direction=-1, name="lands", **changes)
    problem = daedal.hybrid.HybridProblem({"free": free, "rail": rail}, [lands])
    return daedal.solve(problem, (0.0, 1.0), ("free", ([0.0, 1.0], [1.0, 0.0]))).y[:2, -1]


MODES = [
    Remedy(
        "bounces that accumulate",
        lambda: dropped(flight(0.5)),
        ("Zeno behaviour", "Transition('flight', ..., guard='zeno')", "a mode at rest"),
        ((lambda: dropped(flight(0.5, daedal.hybrid.Transition("flight", "rest", "zeno"), **RESTING)), [0.0]),),
    ),
    Remedy(
        "too many transitions",
        lambda: dropped(flight(0.9), max_events=3),
        ("as many as max_events allows", "or raise max_events"),
        ((lambda: dropped(flight(0.9), max_events=100), dropped(flight(0.9), rtol=1e-9)),),
    ),
    Remedy(
        "a surface to which both sides lead",
        lambda: daedal.solve(relay(1e-8), (0.0, 3.0), ("down", ([0.5], None)), atol=1e-12, dense_output=False),
        ("daedal.hybrid.Filippov", "switch with hysteresis"),
        (
            (
                lambda: daedal.solve(
                    sliding := daedal.hybrid.Filippov(lambda t, y: [-1.0], lambda t, y: [1.0], lambda t, y: y[0], n=1),
                    (0.0, 1.0),
                    sliding.entry((0.0, 1.0), [0.5]),
                ).y[:1, -1],
                [0.0],
            ),
            (lambda: daedal.solve(relay(1e-2), (0.0, 1.0), ("down", ([0.5], None))).t[-1:], [1.0]),
        ),
    ),
    Remedy(
        "a state off the constraints of the next mode",
        falls_onto_a_rail,
        ("give 'lands' a reset onto the constraints of 'rail'", "or project=True"),
        (
            (lambda: falls_onto_a_rail(project=True), [1.0, 0.0]),
            (lambda: falls_onto_a_rail(reset=lambda t, q, v: ([q[0], 0.0], [v[0], 0.0])), [1.0, 0.0]),
        ),
    ),
    Remedy(
        "a contact that is violated at the start",
        lambda: bouncing("free", -1.0),
        ("fires at once", "begin 'free' on the other side of the guard of 'floor closes'", "or begin in 'floor'"),
        ((lambda: bouncing("free", 1.0), [0.0]), (lambda: bouncing("floor", 0.0), [0.0])),
    ),
]


def bouncing(mode, height):
    problem = daedal.hybrid.UnilateralProblem(
        point(lambda t, q, v: [-GRAVITY]), daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.5, name="floor")
    )
    return daedal.solve(problem, (0.0, 2.0), (mode, ([height], [0.0]))).y[:1, -1]


@named(MODES)
def test_remedies_of_modes_work(remedy):
    remedy.check()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@named(MECHANISMS)
def test_remedies_of_runs_work(remedy):
    remedy.check()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@named(STARTS)
def test_remedies_of_starts_work(remedy):
    remedy.check()
