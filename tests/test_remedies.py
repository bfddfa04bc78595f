"""Every remedy that a message about first-order problems gives is taken on the case that provokes it, and works."""

import itertools
import math

import numpy as np
import pytest

import daedal
from remedies import Remedy, named

E1 = math.exp(-1.0)


def solve(residual, t_end, y0, yp0, *, n=None, problem=None, **options):
    problem = problem or {}
    return daedal.solve(daedal.ImplicitDAE(residual, n or len(y0), **problem), (0.0, t_end), (y0, yp0), **options)


# --- a function that is none ---


def forgetful(every):
    """NaN in every so many calls."""
    calls = itertools.count(1)

    def residual(t, y, yp):
        return [np.nan] if next(calls) % every == 0 else [yp[0] + y[0]]

    return residual


# --- what is not smooth ---


def jumping(t, y, yp):
    return [yp[0] - 1.0, y[1] ** 3 + y[1] - (0.0 if t < 0.5 else 10.0)]


def kinked(t, y, yp):
    return [yp[0] - y[1], y[0] - abs(t - 0.7)]


def switching(t, y, z):
    return [z[0] ** 3 + z[0] - (0.0 if y[0] < 0.5 else 10.0)]


def switched_with_an_event():
    """Stop at the switching point, change the equations, start again with consistent values."""
    before, after = (
        daedal.SemiExplicitDAE(lambda t, y, z: [1.0], lambda t, y, z, x=x: [z[0] ** 3 + z[0] - x], 1, 1)
        for x in (0.0, 10.0)
    )
    stop = daedal.Event(lambda t, y, z: y[0] - 0.5, terminal=True)
    first = daedal.solve(before, (0.0, 1.0), ([0.0], [0.0]), events=stop)
    start = daedal.consistent_initial(after, first.t[-1], (first.y[:1, -1], None))
    return daedal.solve(after, (first.t[-1], 1.0), start)


# --- the index ---


def pendulum(last):
    """x, z, vx, vz, lam; the constraint on the level of positions, velocities or accelerations."""

    def residual(t, y, yp):
        x, z, vx, vz, lam = y
        ax, az = -x * lam, -z * lam - 9.81
        level = {
            3: x * x + z * z - 1.0,
            2: x * vx + z * vz,
            1: vx * vx + vz * vz + x * ax + z * az,
        }[last]
        return [yp[0] - vx, yp[1] - vz, yp[2] - ax, yp[3] - az, level]

    return residual


def turning(t, y, yp):
    """BCP (3.1.13) with eta = 1, index 2."""
    return [y[0] + t * y[1] - np.sin(t), yp[0] + t * yp[1] + 2.0 * y[1]]


def turning_differentiated(t, y, yp):
    return [yp[0] + t * yp[1] + y[1] - np.cos(t), turning(t, y, yp)[1]]


TURNED = [math.sin(2.0) + 2.0 * math.cos(2.0), -math.cos(2.0)]


SWING = ([1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -9.81, 0.0])
REFERENCE = daedal.MechanicalSystem(
    1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
)


def swing(t=1.0):
    sol = daedal.solve(REFERENCE, (0.0, t), ([1.0, 0.0], [0.0, 0.0]), rtol=1e-10, atol=1e-12)
    return sol.q[:, -1]


def follows(t, y, yp):
    """A trajectory to be followed: y1 is what it takes, index 2."""
    return [yp[0] - y[1], y[0] - math.sin(t)]


FOLLOWED = ([0.0, 1.0], [1.0, 0.0])
UNPREPARED = {"method": "dassl", "error_test": "all", "row_scaling": [0, 0], "newton_weights": [0, 0]}
"""As if nothing were known of the index, for two unknowns."""


def cascade(stages, differentiated=0):
    """y0 = sin t and y_k = y_{k-1}'; the first equation may be differentiated by hand."""

    def residual(t, y, yp):
        first = y[0] - math.sin(t)
        if differentiated:
            first = y[differentiated] - math.sin(t + 0.5 * math.pi * differentiated)
        return [first, *[y[k + 1] - yp[k] for k in range(stages)]]

    values = [math.sin(0.5 * math.pi * k) for k in range(stages + 2)]
    return residual, (values[:-1], values[1:])


def reactor(t, y, yp):
    """Index 2: z0 is found from the first time derivative of the last equation."""
    return [yp[0] - (0.5 - y[2]), yp[1] - (1.0 - y[2] * y[1] / y[0] - y[1]), y[0] - 1.0 - 0.1 * math.sin(t)]


def differentiated_reactor(t, y, yp):
    return [*reactor(t, y, yp)[:2], yp[0] - 0.1 * math.cos(t)]


REACTOR = ([1.0, 0.0, 0.4], [0.1, 1.0, 0.0])
REACTED = [1.0841471, 0.5380492, 0.4459698]


def emptying(t, y, yp):
    """A tank that is empty at t = 1."""
    return [yp[0] + 2.0 * np.sqrt(y[0])]


# --- equations that do not determine the solution ---


def twice(second):
    def residual(t, y, yp):
        return [
            yp[0] + y[0],
            y[1] + y[2] - y[0],
            {"twice": 2.0 * (y[1] + y[2] - y[0]), "once": y[1] - 2.0 * y[2]}[second],
        ]

    return residual


# --- the matrix ---


def stiff(t, y, yp):
    return [yp[0] - y[1], 1e3 * (y[1] + y[0] ** 3 - 1.0)]


def jacobian_of_stiff(sign):
    return lambda t, y, yp, cj: np.array([[cj, -1.0], [3e3 * y[0] ** 2, sign * 1e3]])


def coupled(t, y, yp):
    return [yp[0] + y[0], y[1] + 5.0 * y[2] - y[0], y[2] + 5.0 * y[1]]


def cancelling(t, y, yp):
    """The second equation is 1e-3 (y1 - y0), with a large number added and subtracted."""
    return [yp[0] + y[0], ((1e6 + 1e-3 * y[1]) - 1e6) - 1e-3 * y[0]]


def beside_one(t, y, yp):
    """Increments that suit a tiny atol are lost beside 1."""
    return [yp[0] - 1e-3, (1.0 + y[1]) - (1.0 + y[0])]


def boundary_conditions(second):
    """More unknowns than are analysed; the last two equations are stated twice, or not."""

    def residual(t, y, yp):
        r = yp + y
        r[-2], r[-1] = y[-2] - y[0], (2.0 * (y[-2] - y[0]) if second == "twice" else y[-1] - y[1])
        return r

    return residual


MANY = 501
CYCLE = np.cos(np.arange(30.0))


def cyclic(t, y, yp):
    """Unknowns in a cycle, of which GMRES without a preconditioner finds nothing before it has been around."""
    return np.concatenate([[yp[0] + y[0]], np.roll(y[1:], 1) - y[0] * CYCLE])


def cycled(**options):
    y0 = np.concatenate([[1.0], np.roll(CYCLE, -1)])
    return solve(cyclic, 1.0, y0, -y0, problem={"sparsity": np.ones((31, 31))}, **options).y[:2, -1]


NO_PRECONDITIONER = daedal.linear_solvers.Preconditioner(solve=lambda data, r: r)


def rippled(t, y, yp):
    """A residual with noise of 1e-7."""
    return [yp[0] + y[0], y[1] - math.cos(t) - 1e-7 * math.sin(1e9 * t)]


STIFF_END = solve(stiff, 1.0, [0.0, 1.0], [1.0, 0.0], rtol=1e-9, atol=1e-9).y[:, -1]

ROWS = [
    Remedy(
        "values that change from call to call",
        lambda: solve(forgetful(2), 1.0, [1.0], [-1.0]),
        ("is not a function of its arguments", "remove everything that changes from call to call"),
        ((lambda: solve(lambda t, y, yp: [yp[0] + y[0]], 1.0, [1.0], [-1.0]), [E1]),),
    ),
    Remedy(
        "a jump in time",
        lambda: solve(jumping, 1.0, [0.0, 0.0], [1.0, 0.0], switches="never"),
        ("Equation 1 (numbered from 0) jumps by 10 at t = 0.5", "solve(..., breakpoints=[0.5])"),
        ((lambda: solve(jumping, 1.0, [0.0, 0.0], [1.0, 0.0], breakpoints=[0.5]), [1.0, 2.0]),),
    ),
    Remedy(
        "a kink in time",
        lambda: solve(kinked, 2.0, [0.7, -1.0], [-1.0, 0.0], **UNPREPARED, switches="never"),
        ("a kink. The slope of equation 1", 'solve(..., breakpoints=[0.7], method="dassl", error_test="differential")'),
        (
            (
                lambda: solve(
                    kinked, 2.0, [0.7, -1.0], [-1.0, 0.0], breakpoints=[0.7], method="dassl", error_test="differential"
                ),
                [1.3, 1.0],
            ),
        ),
    ),
    Remedy(
        "a switch in a variable",
        lambda: daedal.solve(
            daedal.SemiExplicitDAE(lambda t, y, z: [1.0], switching, 1, 1),
            (0.0, 1.0),
            ([0.0], [0.0]),
            switches="never",
        ),
        ("jumps by 10 where y[0] passes 0.5", "terminal event (events=...)", "daedal.consistent_initial"),
        ((switched_with_an_event, [1.0, 2.0]),),
    ),
    Remedy(
        "index 2",
        lambda: solve(follows, 10.0, *FOLLOWED, rtol=1e-8, max_steps=3000, **UNPREPARED),
        ("the problem has index 2", 'error_test="differential"', "SemiExplicitDAE", "by its time derivative"),
        (
            (
                lambda: solve(follows, 10.0, *FOLLOWED, rtol=1e-8, method="dassl", error_test="differential"),
                [math.sin(10), math.cos(10)],
            ),
            (
                lambda: daedal.solve(
                    daedal.SemiExplicitDAE(lambda t, y, z: z, lambda t, y, z: y - math.sin(t), 1, 1),
                    (0.0, 10.0),
                    ([0.0], [1.0]),
                    rtol=1e-8,
                ),
                [math.sin(10), math.cos(10)],
            ),
            (
                lambda: solve(lambda t, y, yp: [yp[0] - y[1], yp[0] - math.cos(t)], 10.0, *FOLLOWED, rtol=1e-8),
                [math.sin(10), math.cos(10)],
            ),
        ),
    ),
    Remedy(
        "index 3 of a mechanism",
        lambda: solve(pendulum(3), 1.0, *SWING, method="dassl", formulation="none"),
        (
            "the problem has index 3",
            "daedal.SecondOrderDAE(lambda t, x, v, a: residual(t, x, v), 5)",
            "daedal.MechanicalSystem",
            "replace equation 4 by its second time derivative",
        ),
        (
            (
                lambda: daedal.solve(
                    daedal.SecondOrderDAE(lambda t, x, v, a: pendulum(3)(t, x, v), 5), (0.0, 1.0), SWING
                ).y[:2, -1],
                swing(),
            ),
            (lambda: daedal.solve(REFERENCE, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0])), swing()),
            (lambda: solve(pendulum(1), 1.0, *SWING).y[:2, -1], swing()),
        ),
    ),
    Remedy(
        "index 3 of a circuit",
        lambda: solve(cascade(2)[0], 2.0, *cascade(2)[1], method="dassl", formulation="none"),
        ("the problem has index 3", "daedal.SecondOrderDAE(lambda t, x, v, a: residual(t, x, v), 3)"),
        (
            (
                lambda: daedal.solve(
                    daedal.SecondOrderDAE(lambda t, x, v, a: cascade(2)[0](t, x, v), 3), (0.0, 2.0), cascade(2)[1]
                ),
                [math.sin(2), math.cos(2), -math.sin(2)],
            ),
            (lambda: solve(cascade(2, 2)[0], 2.0, *cascade(2)[1]), [math.sin(2), math.cos(2), -math.sin(2)]),
        ),
    ),
    Remedy(
        "index 4",
        lambda: solve(cascade(3)[0], 2.0, *cascade(3)[1], formulation="none"),
        ("the problem has index 4", "Equation 0 must be differentiated 3 times"),
        (
            (
                lambda: solve(cascade(3, 3)[0], 2.0, *cascade(3)[1]),
                [math.sin(2), math.cos(2), -math.sin(2), -math.cos(2)],
            ),
        ),
    ),
    Remedy(
        "equations that repeat one another",
        lambda: solve(twice("twice"), 1.0, [1.0, 0.5, 0.5], [-1.0, 0.0, 0.0]),
        ("equations 1 and 2 (numbered from 0) repeat or contradict one another", "replace the superfluous equation"),
        ((lambda: solve(twice("once"), 1.0, [1.0, 2 / 3, 1 / 3], [-1.0, 0.0, 0.0]), [E1, 2 * E1 / 3, E1 / 3]),),
    ),
    Remedy(
        "a wrong Jacobian",
        lambda: solve(stiff, 1.0, [0.0, 1.0], [1.0, 0.0], problem={"jacobian": jacobian_of_stiff(-1.0)}),
        ("row 1, column 1 (y[1]), counted from 0, is -1000; difference quotients give 1000", "or omit it"),
        (
            (
                lambda: solve(stiff, 1.0, [0.0, 1.0], [1.0, 0.0], problem={"jacobian": jacobian_of_stiff(1.0)}),
                STIFF_END,
            ),
            (lambda: solve(stiff, 1.0, [0.0, 1.0], [1.0, 0.0]), STIFF_END),
        ),
    ),
    Remedy(
        "an incomplete structure",
        lambda: solve(coupled, 1.0, [1.0, -1 / 24, 5 / 24], None, problem={"bandwidth": (0, 0)}),
        ("sparsity or bandwidth is incomplete", "complete sparsity or bandwidth, or omit it"),
        (
            (
                lambda: solve(coupled, 1.0, [1.0, -1 / 24, 5 / 24], None, problem={"bandwidth": (1, 1)}),
                [E1, -E1 / 24, 5 * E1 / 24],
            ),
            (
                lambda: solve(coupled, 1.0, [1.0, -1 / 24, 5 / 24], None, problem={"sparsity": np.ones((3, 3))}),
                [E1, -E1 / 24, 5 * E1 / 24],
            ),
            (lambda: solve(coupled, 1.0, [1.0, -1 / 24, 5 / 24], None), [E1, -E1 / 24, 5 * E1 / 24]),
        ),
    ),
    Remedy(
        "round-off of large terms",
        lambda: solve(cancelling, 1.0, [1.0, 1.0], [-1.0, -1.0], method="dassl"),
        (
            "round-off. Equation 1 (numbered from 0) changes in steps of 1.164e-10",
            "rewrite it",
            "give jacobian=... and",
        ),
        (
            (lambda: solve(lambda t, y, yp: [yp[0] + y[0], 1e-3 * (y[1] - y[0])], 1.0, [1.0, 1.0], None), [E1, E1]),
            (
                lambda: solve(
                    cancelling,
                    1.0,
                    [1.0, 1.0],
                    [-1.0, -1.0],
                    problem={"jacobian": lambda t, y, yp, cj: [[cj + 1.0, 0.0], [-1e-3, 1e-3]]},
                    rtol=1e-4,
                    atol=1e-4,
                ),
                [E1, E1],
            ),
        ),
        rel=1e-3,
    ),
    Remedy(
        "increments that are lost",
        lambda: solve(beside_one, 1.0, [0.0, 0.0], [1e-3, 1e-3], atol=1e-12, compile="never", method="dassl"),
        ("an inaccurate numerical Jacobian", "give jacobian=...", "nearly equal terms", "raise atol of tiny variables"),
        (
            (
                lambda: solve(
                    beside_one,
                    1.0,
                    [0.0, 0.0],
                    [1e-3, 1e-3],
                    atol=1e-12,
                    problem={"jacobian": lambda t, y, yp, cj: [[cj, 0.0], [-1.0, 1.0]]},
                ),
                [1e-3, 1e-3],
            ),
            (
                lambda: solve(lambda t, y, yp: [yp[0] - 1e-3, y[1] - y[0]], 1.0, [0.0, 0.0], None, atol=1e-12),
                [1e-3, 1e-3],
            ),
            (lambda: solve(beside_one, 1.0, [0.0, 0.0], [1e-3, 1e-3], atol=1e-9, compile="never"), [1e-3, 1e-3]),
        ),
        rel=1e-6,
    ),
    Remedy(
        "a condition stated twice, among many",
        lambda: solve(boundary_conditions("twice"), 1.0, np.ones(MANY), -np.ones(MANY)),
        ("equations 0, 499 and 500 contain only y[0] and y[499]", "y[500] occurs in no equation"),
        ((lambda: solve(boundary_conditions("once"), 1.0, np.ones(MANY), -np.ones(MANY)), np.full(MANY, E1)),),
    ),
    Remedy(
        "a preconditioner that does nothing",
        lambda: cycled(method="dassl", linear_solver="gmres", preconditioner=NO_PRECONDITIONER),
        ("ILUPreconditioner", "daedal.linear_solvers.GMRES(basis_size=31, restarts=10)", 'linear_solver="sparse"'),
        (
            (
                lambda: cycled(
                    method="dassl", linear_solver="gmres", preconditioner=daedal.linear_solvers.ILUPreconditioner()
                ),
                [E1, E1 * CYCLE[1]],
            ),
            (
                lambda: cycled(
                    method="dassl",
                    linear_solver=daedal.linear_solvers.GMRES(basis_size=31, restarts=10),
                    preconditioner=NO_PRECONDITIONER,
                ),
                [E1, E1 * CYCLE[1]],
            ),
            (lambda: cycled(method="dassl", linear_solver="sparse"), [E1, E1 * CYCLE[1]]),
        ),
    ),
    Remedy(
        "tolerances tighter than the accuracy of the residual",
        lambda: solve(rippled, 1.0, [1.0, 1.0], [-1.0, 0.0], rtol=1e-10, atol=1e-12, max_steps=5000),
        ("tolerances that are too tight", "loosen rtol and atol"),
        ((lambda: solve(rippled, 1.0, [1.0, 1.0], [-1.0, 0.0], rtol=1e-5, atol=1e-5), [E1, math.cos(1.0)]),),
    ),
    Remedy(
        "index 2, and Newton's method fails at the start",
        lambda: solve(
            reactor, 1.0, *REACTOR, method="dassl", error_test="all", row_scaling=[0, 0, 0], newton_weights=[0, 0, 0]
        ),
        ('error_test="differential"', "row_scaling=[0, 0, 1], newton_weights=[0, 0, 1]", "by its time derivative"),
        (
            (
                lambda: solve(
                    reactor,
                    1.0,
                    *REACTOR,
                    method="dassl",
                    error_test="differential",
                    row_scaling=[0, 0, 1],
                    newton_weights=[0, 0, 1],
                ),
                REACTED,
            ),
            (lambda: solve(differentiated_reactor, 1.0, *REACTOR), REACTED),
        ),
    ),
    Remedy(
        "index 2 with a nullspace that turns",
        lambda: solve(turning, 2.0, [0.0, -1.0], None, formulation="none"),
        (
            "the problem has index 2",
            "formulation='strangeness_free', which reduces the index; or replace equation 0 by",
        ),
        (
            (lambda: solve(turning, 2.0, [0.0, -1.0], None, formulation="strangeness_free"), TURNED),
            (lambda: solve(turning_differentiated, 2.0, [0.0, -1.0], None), TURNED),
            (lambda: solve(turning, 2.0, [0.0, -1.0], None), TURNED),
        ),
    ),
    Remedy(
        "index 2 without its variables in the error test",
        lambda: solve(
            reactor,
            1.0,
            *REACTOR,
            method="dassl",
            error_test="differential",
            row_scaling=[0, 0, 0],
            newton_weights=[0, 0, 0],
        ),
        (
            "is excluded from the error test",
            "row_scaling=[0, 0, 1], newton_weights=[0, 0, 1]",
            "loosen rtol and atol",
            "replace equation 2 by the time derivative",
        ),
        (
            (
                lambda: solve(
                    reactor,
                    1.0,
                    *REACTOR,
                    method="dassl",
                    error_test="differential",
                    row_scaling=[0, 0, 1],
                    newton_weights=[0, 0, 1],
                ),
                REACTED,
            ),
            (
                lambda: solve(reactor, 1.0, *REACTOR, method="dassl", error_test="differential", rtol=1e-4, atol=1e-6),
                REACTED,
            ),
            (lambda: solve(differentiated_reactor, 1.0, *REACTOR), REACTED),
        ),
    ),
    Remedy(
        "a singularity",
        lambda: solve(lambda t, y, yp: [yp[0] - y[0] ** 2], 2.0, [1.0], [1.0]),
        ("approaches a singularity", "A terminal event can stop before it"),
        (
            (
                lambda: solve(
                    lambda t, y, yp: [yp[0] - y[0] ** 2],
                    2.0,
                    [1.0],
                    [1.0],
                    events=daedal.Event(lambda t, y: y[0] - 1e3, terminal=True),
                ),
                [1e3],
            ),
        ),
    ),
    Remedy(
        "the step limit",
        lambda: solve(
            lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 100.0, [1.0, 0.0], [0.0, -1.0], max_steps=100, method="dassl"
        ),
        ("max_steps=10000", "loosen rtol and atol"),
        (
            (
                lambda: solve(
                    lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 100.0, [1.0, 0.0], [0.0, -1.0], max_steps=10000
                ).t[-1:],
                [100.0],
            ),
        ),
    ),
    Remedy(
        "tolerances that are too tight",
        lambda: solve(lambda t, y, yp: [yp[0] + y[0]], 1.0, [1.0], [-1.0], rtol=1e-14, atol=0.0, method="dassl"),
        ("multiply rtol and atol by 22.2 or more",),
        ((lambda: solve(lambda t, y, yp: [yp[0] + y[0]], 1.0, [1.0], [-1.0], rtol=22.3e-14, atol=0.0), [E1]),),
    ),
    Remedy(
        "a weight of zero",
        lambda: solve(lambda t, y, yp: [yp[0] - 1.0, yp[1] - y[0]], 1.0, [0.0, 0.0], [1.0, 0.0], atol=[1e-9, 0.0]),
        ("make atol[1] positive",),
        (
            (
                lambda: solve(
                    lambda t, y, yp: [yp[0] - 1.0, yp[1] - y[0]], 1.0, [0.0, 0.0], [1.0, 0.0], atol=[1e-9, 1e-9]
                ),
                [1.0, 0.5],
            ),
        ),
    ),
    Remedy(
        "a domain that ends at zero",
        lambda: solve(emptying, 2.0, [1.0], [-2.0]),
        ("nonnegative=[0]", "stop with a terminal event (events=...)"),
        (
            (lambda: solve(emptying, 2.0, [1.0], [-2.0], method="dassl", nonnegative=[0]), [0.0]),
            (
                lambda: solve(
                    emptying, 2.0, [1.0], [-2.0], events=daedal.Event(lambda t, y: y[0] - 1e-6, terminal=True)
                ),
                [1e-6],
            ),
        ),
    ),
    Remedy(
        "a domain that ends at a time",
        lambda: solve(lambda t, y, yp: [yp[0] + y[0] * (1.0 if t < 0.5 else math.nan)], 1.0, [1.0], [-1.0]),
        ("beyond t = 0.5, equation 0 (numbered from 0) gives NaN", "end t_span before t = 0.5"),
        (
            (
                lambda: solve(lambda t, y, yp: [yp[0] + y[0] * (1.0 if t < 0.5 else math.nan)], 0.4999, [1.0], [-1.0]),
                [math.exp(-0.4999)],
            ),
        ),
    ),
    Remedy(
        "a domain that ends in a variable",
        lambda: solve(lambda t, y, yp: [yp[0] + (1.0 if y[0] > 0.5 else math.nan)], 1.0, [1.0], [-1.0], method="dassl"),
        ("beyond y[0] = 0.5", "stop before this point with a terminal event (events=...)"),
        (
            (
                lambda: solve(
                    lambda t, y, yp: [yp[0] + (1.0 if y[0] > 0.5 else math.nan)],
                    1.0,
                    [1.0],
                    [-1.0],
                    events=daedal.Event(lambda t, y: y[0] - 0.51, terminal=True),
                ),
                [0.51],
            ),
        ),
    ),
    Remedy(
        "a Jacobian that cannot be evaluated",
        lambda: solve(
            lambda t, y, yp: [yp[0] + y[0]], 1.0, [1.0], [-1.0], problem={"jacobian": lambda t, y, yp, cj: [[math.nan]]}
        ),
        ("jacobian, not the residual, returned NaN", "or omit it"),
        ((lambda: solve(lambda t, y, yp: [yp[0] + y[0]], 1.0, [1.0], [-1.0]), [E1]),),
    ),
    Remedy(
        "algebraic variables that are inconsistent",
        lambda: solve(lambda t, y, yp: [yp[0] - y[1], y[0] + y[1] - 1.0], 1.0, [0.0, 0.7], [0.7, 0.0]),
        ("correct_initial=True moves", "None as the second part of initial", "daedal.consistent_initial"),
        (
            (
                lambda: solve(
                    lambda t, y, yp: [yp[0] - y[1], y[0] + y[1] - 1.0],
                    1.0,
                    [0.0, 0.7],
                    [0.7, 0.0],
                    correct_initial=True,
                ),
                [1.0 - E1, E1],
            ),
            (
                lambda: daedal.solve(
                    p := daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] + y[1] - 1.0], 2),
                    (0.0, 1.0),
                    daedal.consistent_initial(p, 0.0, ([0.0, 0.7], [0.7, 0.0])),
                ),
                [1.0 - E1, E1],
            ),
        ),
    ),
    Remedy(
        "a derivative that is inconsistent",
        lambda: solve(lambda t, y, yp: [yp[0] + y[0]], 1.0, [1.0], [5.0]),
        ("with None as the second part of initial (yp0 or z0) Daedal computes it",),
        ((lambda: solve(lambda t, y, yp: [yp[0] + y[0]], 1.0, [1.0], None), [E1]),),
    ),
    Remedy(
        "variables that are off the constraint",
        lambda: solve(pendulum(2), 1.0, [1.0, 0.0, 0.3, 0.0, 0.0], None),
        ("a mechanism with 2 coordinates", "daedal.consistent_initial(problem, t0, (y0, yp0), fixed=[...])"),
        (
            (
                lambda: daedal.consistent_initial(
                    daedal.ImplicitDAE(pendulum(2), 5), 0.0, ([1.0, 0.0, 0.3, 0.0, 0.0], None), fixed=[0, 1, 3]
                )[0][:4],
                [1.0, 0.0, 0.0, 0.0],
            ),
        ),
    ),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@named(ROWS)
def test_remedies_work(remedy):
    remedy.check()
