"""Random machines: trees with loops of all joints, in the plane and in space; every analysis against dense matrices."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from scipy.spatial.transform import Rotation

import daedal
from daedal.multibody import (
    Body,
    Cartesian,
    Cylindrical,
    Fixed,
    Free,
    Model,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Spring,
    Universal,
    ground,
    large,
)
from daedal.multibody.motion import MotionHistory
from daedal.multibody.poses import Start
from dense_machine import Condition, DenseMachine, FreeBody, Pull
from soak.case import Script

SPACE = (Revolute, Revolute, Prismatic, Cylindrical, Screw, Universal, Spherical, Cartesian, Planar, Free, Fixed)
PLANE = (Revolute, Revolute, Revolute, Prismatic, Free, Fixed)
DRIVEN = (Revolute, Prismatic, Cylindrical, Screw, Universal, Cartesian, Planar, Fixed)
CLOSING = (Revolute, Prismatic, Cylindrical, Screw, Universal, Spherical, Planar, Cartesian, Fixed)
FREEDOMS = {
    Revolute: 1,
    Prismatic: 1,
    Cylindrical: 2,
    Screw: 1,
    Universal: 2,
    Spherical: 3,
    Cartesian: 3,
    Planar: 3,
    Free: 6,
    Fixed: 0,
}


class RandomMachine:
    """A model that is drawn where its loops are closed, and the same as dense matrices."""

    def __init__(self, seed: int, most: int = 60, loops: int = 6, kinds: tuple = SPACE):
        self.rng = rng = np.random.default_rng(seed)
        self.planar = bool(rng.random() < 0.3)
        self.bodies, self.states, self.joints, self.conditions = [], [], [], []
        self.freedoms, wanted = 0, int(1 + (most - 1) * rng.random() ** 2)
        kinds = PLANE if self.planar else kinds
        while self.freedoms < wanted:
            kind = kinds[rng.integers(len(kinds))]
            if kind is Fixed and not self.bodies:
                continue
            self._hang(
                kind, int(rng.integers(len(self.bodies) + 1)) - 1 if rng.random() < 0.4 else len(self.bodies) - 1
            )
        for _ in range(int(rng.integers(loops + 1)) if len(self.bodies) > 1 else 0):
            self._close()
        self.pulls = []
        springs = [self._spring(i, k) for i in range(len(self.bodies)) for k in range(2) if rng.random() < 0.7]
        gravity = rng.normal(size=3) * (1.0, 1.0, 0.0 if self.planar else 1.0)
        self.model = Model(*self.joints, *springs, gravity=gravity, planar=self.planar)
        free = [
            FreeBody(body.mass, body.inertia.moments, x + R @ body.center, R)
            for body, (x, R) in zip(self.bodies, self.states)
        ]
        self.dense = DenseMachine(free, self.conditions, self.pulls, gravity, self.planar)

    # --- parts --------------------------------------------------------------------------------------------------------

    def _point(self):
        return self.rng.uniform(-1.0, 1.0, 3) * (1.0, 1.0, 0.0 if self.planar else 1.0)

    def _axes(self, kind):
        """Of a frame; in the plane hinges stand upright and sliders lie."""
        if not self.planar:
            return Rotation.random(rng=self.rng).as_matrix()
        turn = Rotation.from_euler("z", self.rng.uniform(-3, 3)).as_matrix()
        return turn @ np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]) if kind is Prismatic else turn

    def _moved(self, kind, pitch):
        """Shift, turn and angle of a joint somewhere."""
        rng, d, angle = self.rng, np.zeros(3), 0.0
        name, turn = kind.__name__, np.eye(3)
        if name in ("Revolute", "Cylindrical", "Screw", "Planar") or (name == "Free" and self.planar):
            angle = rng.uniform(-1.0, 1.0)
            turn = Rotation.from_euler("z", angle).as_matrix()
        elif name == "Universal":
            turn = Rotation.from_euler("ZY", rng.uniform(-1.0, 1.0, 2)).as_matrix()
        elif name in ("Spherical", "Free"):
            turn = Rotation.random(rng=rng).as_matrix()
        if name in ("Prismatic", "Cylindrical"):
            d[2] = rng.uniform(-1.0, 1.0)
        elif name == "Screw":
            d[2] = pitch * angle / (2 * np.pi)
        elif name == "Planar" or (name == "Free" and self.planar):
            d[:2] = rng.uniform(-1.0, 1.0, 2)
        elif name in ("Cartesian", "Free"):
            d = rng.uniform(-1.0, 1.0, 3)
        return d, turn, angle

    def _pose(self, i):
        return (np.zeros(3), np.eye(3)) if i < 0 else self.states[i]

    def _hang(self, kind, parent):
        rng, i = self.rng, len(self.bodies)
        pitch = float(rng.uniform(0.1, 1.0)) if kind is Screw else 0.0
        place, axes, own, own_axes = self._point(), self._axes(kind), self._point(), self._axes(kind)
        d, turn, angle = self._moved(kind, pitch)
        x, R = self._pose(parent)
        R_i = R @ axes @ turn @ own_axes.T
        x_i = x + R @ (place + axes @ d) - R_i @ own
        spread = rng.normal(size=(3, 3))
        second = spread @ spread.T + np.eye(3)
        center = 0.3 * self._point()
        inertia = np.trace(second) * np.eye(3) - second
        if self.planar:
            inertia = np.diag(np.diag(inertia))
        body = Body(f"body {i}", rng.uniform(0.5, 2.0), inertia, center, position=x_i, orientation=R_i)
        self.bodies.append(body)
        self.states.append((x_i, R_i))
        self._join(kind, f"joint {i}", (parent, i), (place, own), (axes, own_axes), pitch, angle)
        self.freedoms += 3 if self.planar and kind is Free else FREEDOMS[kind]

    def _join(self, kind, name, pair, places, axes, pitch, angle):
        parts = [ground if i < 0 else self.bodies[i] for i in pair]
        frames = [part.at(*place, rotation=turn) for part, place, turn in zip(parts, places, axes)]
        further = {"pitch": pitch} if kind is Screw else {"second_axis": "y"} if kind is Universal else {}
        self.joints.append(kind(name, *frames, **further))
        centers = [place - (0.0 if i < 0 else self.bodies[i].center) for i, place in zip(pair, places)]
        word = "Planar" if self.planar and kind is Free else kind.__name__
        self.conditions.append(Condition(word, pair, tuple(centers), axes, pitch, angle))

    def _close(self):
        """A further joint between two bodies where they are, while a freedom is left; now and then one twice."""
        rng = self.rng
        kinds = [k for k in CLOSING if not self.planar or k in (Revolute, Prismatic)]
        one, two = (int(i) - 1 for i in rng.choice(len(self.bodies) + 1, 2, replace=False))
        kind = kinds[rng.integers(len(kinds))]
        cost = (3 if self.planar else 6) - FREEDOMS[kind]
        if self.freedoms - cost < 1:
            return
        self.freedoms -= cost
        pitch = float(rng.uniform(0.1, 1.0)) if kind is Screw else 0.0
        place, axes = self._point(), self._axes(kind)
        d, turn, angle = self._moved(kind, pitch)
        (x, R), (y, S) = self._pose(one), self._pose(two)
        at, frame = x + R @ (place + axes @ d), R @ axes @ turn
        own, own_axes = S.T @ (at - y), S.T @ frame
        count = 2 if rng.random() < 0.15 else 1
        for copy in range(count):
            name = f"loop {len(self.joints)} {copy}"
            self._join(kind, name, (one, two), (place, own), (axes, own_axes), pitch, angle)

    def _spring(self, i, k):
        rng, places = self.rng, (3.0 * self._point() + (0.0, 0.0, 0.0 if self.planar else 0.1), self._point())
        numbers = rng.uniform(5.0, 50.0), rng.uniform(0.0, 0.5), rng.uniform(0.0, 0.5)
        body = self.bodies[i]
        self.pulls.append(Pull((-1, i), (places[0], places[1] - body.center), *numbers))
        ends = ground.at(*places[0]), body.at(*places[1])
        return Spring(f"spring {i} {k}", *ends, stiffness=numbers[0], length=numbers[1], damping=numbers[2])

    # --- a state ------------------------------------------------------------------------------------------------------

    def start(self):
        """The machine where it is drawn, with velocities that its conditions allow."""
        start = self.model.start()
        system = self.model.system()
        K = self.model.conditions(start.layout).jacobian(0.0, start.q)
        _, s, V = np.linalg.svd(np.concatenate([K, np.zeros((1, start.q.size))]))
        free = V[int(np.sum(s > 1e-9 * max(s[0], 1.0))) :].T
        v = free @ self.rng.normal(size=free.shape[1]) if free.size else np.zeros(start.q.size)
        return system, Start(start.q, v / max(1.0, float(np.max(np.abs(v), initial=0.0))), self.model, start.layout)

    def moved(self, start):
        """The dense machine where a state has the bodies, and their velocities."""
        states, n = start.bodies, len(self.bodies)
        order = [start.layout.index[body.name] for body in self.bodies]
        u = np.concatenate([states.linear[order], states.angular[order]], axis=1)
        assert n == len(order)
        return self.dense.at(states.r[order], states.rotation[order]), u.ravel()

    def body_accelerations(self, start, a):
        """Of all bodies for accelerations of the coordinates."""
        rest = SimpleNamespace(a=np.asarray(a)[:, None], lam=np.zeros((0, 1)))
        course = MotionHistory(
            self.model, start.layout, np.zeros(1), start.q[None], start.v[None], np.zeros((1, 0)), lambda: rest
        )
        linear, angular = course.accelerating
        order = [start.layout.index[body.name] for body in self.bodies]
        return np.concatenate([linear[0, order], angular[0, order]], axis=1).ravel()


def balanced(model, system, q, v):
    """Accelerations from the functions of a system, by dense matrices; redundant conditions may be among them."""
    M, f, n = np.asarray(system.mass(0.0, q)), np.asarray(system.force(0.0, q, v)), q.size
    if not system.n_constraints:
        return np.linalg.solve(M, f)
    conditions = model.conditions(system.layout)
    K, bias = conditions.jacobian(0.0, q), conditions.bias(0.0, q, v)
    norms = np.linalg.norm(K, axis=1)
    keep = norms > 1e-9  # others are rounding errors: of joints that hold the same twice
    K, bias = K[keep] / norms[keep, None], bias[keep] / norms[keep]
    matrix = np.block([[M, K.T], [K, np.zeros((len(K),) * 2)]])
    return np.linalg.lstsq(matrix, np.concatenate([f, bias]), rcond=1e-11)[0][:n]


def redundant(model, system, q) -> bool:
    """Whether conditions of the loops depend on each other."""
    if not system.n_constraints:
        return False
    K = np.asarray(model.conditions(system.layout).jacobian(0.0, q))
    norms = np.linalg.norm(K, axis=1)
    return bool(np.min(norms) <= 1e-9) or np.linalg.matrix_rank(K / norms[:, None], 1e-8) < len(K)


def relative(found, expected):
    size = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    return float(np.max(np.abs(np.asarray(found) - expected), initial=0.0)) / size


def checked(seed: int, looped: bool, runs: bool = True, most: int = 60, kinds: tuple = SPACE) -> dict[str, float]:
    """The errors of all analyses of a random machine, each in units of what is allowed."""
    usual = large.MOST_TRACED
    large.MOST_TRACED = {True: 0, False: 0} if looped else usual
    try:
        return _checked(RandomMachine(seed, most, kinds=kinds), seed, runs)
    finally:
        large.MOST_TRACED = usual


def _checked(machine: RandomMachine, seed: int, runs: bool) -> dict[str, float]:
    model, errors = machine.model, {}
    system, start = machine.start()
    dense, u = machine.moved(start)
    errors["assemble"] = relative(dense.residual(), 0.0 * dense.residual()) / 1e-9
    guess = {joint.name: start.joint(joint.name) for joint in model.joints if joint.n_free == 1}
    near = {name: value + 1e-3 for name, value in guess.items()}
    again, _ = machine.moved(model.assemble(guess=near))
    errors["assemble beside"] = relative(again.residual(), 0.0 * again.residual()) / 1e-8
    K = dense.jacobian()
    errors["velocities"] = relative(K @ u, 0.0 * (K @ u)) / 1e-9
    Z = dense.allowed()
    errors["report"] = 0.0 if model.report().degrees_of_freedom == Z.shape[1] else np.inf
    # accelerations: dense, from the functions of the system, by elimination; in both coordinates
    expected, n = dense.accelerations(u), start.q.size
    condition = np.linalg.cond(Z.T @ dense.mass() @ Z) if Z.size else 1.0
    norms = np.linalg.norm(K, axis=1)
    sizes = np.linalg.svd(K[norms > 1e-9] / norms[norms > 1e-9, None], compute_uv=False)
    allowed = 1e-9 * max(1.0, 1e-4 * condition, 1e-2 / min(sizes[sizes > 1e-8], default=1.0))
    errors["relative"] = (
        relative(machine.body_accelerations(start, balanced(model, system, start.q, start.v)), expected) / allowed
    )
    code = system.straight_line
    if code is not None and not redundant(model, system, start.q):  # runs use it with independent conditions only
        status, values = code.function("accelerations").evaluate(0.0, start.q, start.v)
        if status == 0:
            errors["elimination"] = relative(machine.body_accelerations(start, values[:n]), expected) / allowed
    other, absolute = start.in_coordinates("absolute"), model.system("absolute")
    a = balanced(model, absolute, other.q, other.v)
    errors["absolute"] = relative(machine.body_accelerations(other, a), expected) / allowed
    if not Z.size:
        return errors
    _drives(machine, start, dense, u, Z, expected, errors)
    _small_motions(machine, start, errors)
    if runs and len(machine.bodies) <= 12:
        times, ends = (0.0, 0.05), []
        for one, s in ((system, start), (absolute, other)):
            sol = daedal.solve(one, times, s, rtol=1e-8, atol=1e-9)
            assert sol.success, sol.message
            ends.append(np.concatenate([sol.body(body.name).position[:, -1] for body in machine.bodies]))
            end = Start(sol.q[:, -1], sol.v[:, -1], model, s.layout)
            there, w = machine.moved(end)
            found = machine.body_accelerations(end, sol.a[:, -1])
            errors["end" if one is system else "absolute end"] = relative(found, there.accelerations(w)) / (
                1e3 * allowed
            )
        errors["solve"] = relative(ends[0], ends[1]) / 1e-5
    return errors


def _drives(machine, start, dense, u, Z, expected, errors):
    """Kinematics and inverse dynamics with as many drives as there are freedoms, where coordinates of joints are enough."""
    coordinates = [found for joint, one in zip(machine.joints, machine.conditions) for found in _measured(joint, one)]
    rows = dense.rows_of([(one.bodies, one.at(dense)) for one in coordinates])
    left, chosen = rows @ Z, []
    for _ in range(Z.shape[1]):
        sizes = np.linalg.norm(left, axis=1) if len(left) else np.zeros(1)
        k = int(np.argmax(sizes))
        if sizes[k] < 0.05:
            return
        chosen.append(k)
        direction = left[k] / sizes[k]
        left = left - np.outer(left @ direction, direction)
    driven = [coordinates[k] for k in chosen]
    names = [one.key for one in driven]
    C, model = rows[chosen], machine.model
    speeds = 0.2 * machine.rng.normal(size=len(names))
    values = [one.value(start) for one in driven]
    laws = {name: (lambda t, a=value, b=speed: a + b * t) for name, value, speed in zip(names, values, speeds)}
    motion = model.kinematics(np.linspace(0.0, 0.02, 3), laws, guess=start)
    worst = 0.0
    for q, v, a in zip(motion.q.T, motion.v.T, motion.a.T):
        here = Start(q, v, model, motion.layout)
        there, w = machine.moved(here)
        accelerations, K = machine.body_accelerations(here, a), there.jacobian()
        functions = [(one.bodies, one.at(there)) for one in driven]
        own = there.rows_of(functions)
        worst = max(worst, relative(there.residual(), 0.0), relative(K @ w, 0.0), relative(own @ w, speeds))
        bias = -np.concatenate([there.second(function, w) for _, function in functions])
        worst = max(worst, relative(K @ accelerations, there.bias(w)), relative(own @ accelerations, bias))
    errors["kinematics"] = worst / 1e-8
    found = model.inverse_dynamics(start, by=names, accelerations={})
    there = machine.body_accelerations(start, _least(model, start))
    needed = Z.T @ (dense.mass() @ there - dense.force(u))
    tau = np.array([found[name][0] for name in names])
    errors["inverse_dynamics"] = relative((C @ Z).T @ tau, needed) / 1e-8


COORDINATES = {
    "Revolute": ("angle",),
    "Screw": ("angle",),
    "Prismatic": ("displacement",),
    "Cylindrical": ("displacement", "angle"),
    "Universal": ("angle", "second_angle"),
    "Cartesian": ("x", "y", "z"),
    "Planar": ("x", "y", "angle"),
}
"""Coordinates that may be driven, by the kind of the joint; a ball turns by no numbers over time."""


@dataclass(frozen=True)
class Measured:
    """A coordinate of a joint, and the same from the frames of its bodies."""

    joint: object
    condition: Condition
    which: str
    number: int

    @property
    def bodies(self):
        return self.condition.bodies

    @property
    def key(self):
        return f"{self.joint.name}.{self.which}"

    def value(self, start):
        return float(np.ravel(start.joint(self.joint.name))[self.number])

    def at(self, dense):
        """The coordinate as a function of states, less its value where the dense machine is."""
        sine, cosine = self._parts(dense.states())
        if cosine is None:
            return lambda states: np.array([self._parts(states)[0] - sine])

        def angle(states):
            s, c = self._parts(states)
            return np.array([np.arcsin(s * cosine - c * sine)])

        return angle

    def _parts(self, states):
        """Sine and cosine of an angle, or a displacement."""
        (p, a), (o, b) = self.condition.frames(states)
        x, y, z = a.T
        if self.which == "second_angle":
            return -(z @ b[:, 0]), z @ b[:, 2]
        if self.which != "angle":
            return {"x": x, "y": y, "z": z, "displacement": z}[self.which] @ (o - p), None
        if self.condition.kind == "Universal":
            return -(x @ b[:, 1]), y @ b[:, 1]
        return y @ b[:, 0], x @ b[:, 0]


def _measured(joint, one):
    return [Measured(joint, one, which, k) for k, which in enumerate(COORDINATES.get(one.kind, ()))]


def _least(model, start):
    """The accelerations of smallest norm that the conditions allow."""
    conditions = model.conditions(start.layout)
    K, bias = conditions.jacobian(0.0, start.q), conditions.bias(0.0, start.q, start.v)
    return np.linalg.lstsq(K, bias, rcond=1e-10)[0] if K.size else 0.0 * start.q


def _small_motions(machine, start, errors):
    """Equilibrium against the forces of the dense machine; frequencies in both coordinates."""
    from daedal.multibody import NoEquilibriumError

    model = machine.model
    if len(machine.bodies) > 15:
        return
    try:
        rest = model.equilibrium(guess=start)
    except NoEquilibriumError:
        return  # springs are few: there may be none
    there, u = machine.moved(rest)
    Z, f = there.allowed(), there.force(0.0 * u)
    errors["equilibrium"] = float(np.linalg.norm(Z.T @ f)) / max(1.0, float(np.linalg.norm(f))) / 1e-7
    if rest.stability != "stable" or len(rest.stiffness) != Z.shape[1]:
        return
    values = [model.linearise(one).eigenvalues for one in (rest, rest.in_coordinates("absolute"))]
    if len(machine.bodies) <= 6:
        values.append(np.linalg.eigvals(_small(there, Z)))
    fast = float(np.max(np.abs(values[0]), initial=1.0))
    sizes = [np.sort(np.abs(one)) for one in values]
    errors["modes"] = (
        max(float(np.max(np.abs(one - sizes[0]))) / fast if one.size == sizes[0].size else np.inf for one in sizes[1:])
        / 1e-5
    )


def _small(dense, Z):
    """The matrix of small motions about a rest: z'' for displacements and velocities along Z, by differences."""
    h, back = 1e-5, np.linalg.pinv(Z)

    def displaced(u):
        states = dense.states(u, h)
        return dense.at([x for x, _ in states], [R for _, R in states]).accelerations(0.0 * u)

    shifts = [displaced(u) - displaced(-u) for u in Z.T]
    speeds = [dense.accelerations(h * u) - dense.accelerations(-h * u) for u in Z.T]
    lower = np.column_stack([back @ one for one in shifts + speeds]) / (2.0 * h)
    n = Z.shape[1]
    return np.block([[np.zeros((n, n)), np.eye(n)], [lower]]) if n else np.zeros((0, 0))


SOURCE = """from soak.machines import DRIVEN, SPACE, checked

names = {names}

def found():
    errors = checked({seed}, {looped}, most={most}, kinds={kinds})
    return [errors.get(name, 0.0) for name in names]

expected, allowed = [0.0] * len(names), 1.0 / 300.0
"""
NAMES = (
    "assemble",
    "assemble beside",
    "velocities",
    "report",
    "relative",
    "elimination",
    "absolute",
    "kinematics",
    "inverse_dynamics",
    "equilibrium",
    "modes",
    "solve",
    "end",
    "absolute end",
)


def drawn(number: int) -> Script:
    """A machine of 1 to 60 freedoms, its functions traced or compiled loops."""
    return _script("machine", number, 60, "SPACE")


def small(number: int) -> Script:
    """A machine of 1 to 4 freedoms of joints that can be driven, now and then of 9."""
    return _script("linkage", number, 4 if number % 8 else 9, "DRIVEN")


def _script(name: str, number: int, most: int, kinds: str) -> Script:
    looped = bool(number % 2)
    words = "compiled loops" if looped else "traced if it is small"
    source = SOURCE.format(seed=number, looped=looped, names=NAMES, most=most, kinds=kinds)
    return Script(f"{name} {number}, {words}", source)
