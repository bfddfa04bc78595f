"""A machine in the coordinates of free bodies, as dense matrices: written for tests, without anything of Daedal's.

Bodies are masses with a place and an orientation; joints are conditions on two frames. Derivatives come from complex
steps along the motions of the bodies, (dr, dphi) for each, and second ones from differences of these.
"""

from dataclasses import dataclass, replace

import numpy as np

STEP = 1e-30
LONG = 2e-3  # of differences of fourth order


def crossing(w):
    return np.array([[0 * w[0], -w[2], w[1]], [w[2], 0 * w[0], -w[0]], [-w[1], w[0], 0 * w[0]]])


def turned(w):
    """exp of the rotation vector w, which may be complex."""
    square = np.sum(w * w)
    if square == 0.0:
        return np.eye(3) + crossing(w)
    angle = np.sqrt(square)
    K = crossing(w)
    return np.eye(3) + np.sin(angle) / angle * K + (1.0 - np.cos(angle)) / square * (K @ K)


@dataclass
class FreeBody:
    """Mass, moments about the centre of mass in its own axes; where the centre is, and how it is turned."""

    mass: float
    moments: np.ndarray
    r: np.ndarray
    R: np.ndarray


@dataclass
class Condition:
    """A joint between frames: numbers of bodies (-1: ground), places from the centres of mass, axes."""

    kind: str
    bodies: tuple
    places: tuple
    axes: tuple
    pitch: float = 0.0
    angle: float = 0.0  # of a screw in the position in which the bodies are given

    def frames(self, states):
        found = []
        for body, place, axes in zip(self.bodies, self.places, self.axes):
            r, R = (np.zeros(3), np.eye(3)) if body < 0 else states[body]
            found.append((r + R @ place, R @ axes))
        return found

    def near(self, states):
        """The same screw, with its angle counted from what its advance shows here."""
        (p, a), (o, _) = self.frames(states)
        return replace(self, angle=2 * np.pi / self.pitch * float(a[:, 2] @ (o - p)))

    def values(self, states):
        (p, a), (o, b) = self.frames(states)
        d = o - p
        x, y, z = a.T
        together, fixed = list(d), [x @ b[:, 1], x @ b[:, 2], y @ b[:, 2]]
        parallel = fixed[1:]
        if self.kind == "Screw":
            sine, cosine = y @ b[:, 0], x @ b[:, 0]
            turn = np.arcsin(sine * np.cos(self.angle) - cosine * np.sin(self.angle))
            return [x @ d, y @ d, *parallel, z @ d - self.pitch / (2 * np.pi) * (self.angle + turn)]
        return {
            "Fixed": together + fixed,
            "Revolute": together + parallel,
            "Prismatic": [x @ d, y @ d, *fixed],
            "Cylindrical": [x @ d, y @ d, *parallel],
            "Universal": [*together, z @ b[:, 1]],
            "Spherical": together,
            "Cartesian": fixed,
            "Planar": [z @ d, *parallel],
            "Free": [],
        }[self.kind]


@dataclass
class Pull:
    """A spring with a damper between points of two bodies."""

    bodies: tuple
    places: tuple
    stiffness: float
    length: float
    damping: float


class DenseMachine:
    """Bodies at given places, conditions between them, springs, and the acceleration of gravity."""

    def __init__(self, bodies, conditions, pulls, gravity, planar=False):
        self.bodies, self.conditions, self.pulls = bodies, conditions, pulls
        self.gravity, self.planar = np.asarray(gravity, dtype=float), planar
        n = len(bodies)
        moves = np.arange(6 * n).reshape(n, 6)
        self.columns = moves[:, [0, 1, 5]].ravel() if planar else moves.ravel()

    def at(self, r, R):
        """The same machine elsewhere."""
        bodies = [FreeBody(one.mass, one.moments, x, A) for one, x, A in zip(self.bodies, r, R)]
        states = list(zip(r, R))
        conditions = [one.near(states) if one.kind == "Screw" else one for one in self.conditions]
        return DenseMachine(bodies, conditions, self.pulls, self.gravity, self.planar)

    def states(self, u=None, t=0.0):
        """Places and orientations, after a while with constant velocities."""
        if u is None:
            return [(body.r, body.R) for body in self.bodies]
        pairs = zip(self.bodies, np.reshape(u, (-1, 6)))
        return [(body.r + t * w[:3], turned(t * w[3:]) @ body.R) for body, w in pairs]

    def residual(self):
        states = self.states()
        return np.array([value for one in self.conditions for value in one.values(states)], dtype=float)

    def rows_of(self, functions):
        """Gradients of functions of two bodies each: (bodies, function of states) pairs."""
        rows = []
        for bodies, function in functions:
            count = len(function(self.states()))
            block = np.zeros((count, 6 * len(self.bodies)))
            for body in {body for body in bodies if body >= 0}:
                for k in range(6):
                    move = np.zeros(6, dtype=complex)
                    move[k] = 1j * STEP
                    states = self.states()
                    here = self.bodies[body]
                    states[body] = here.r + move[:3], turned(move[3:]) @ here.R
                    block[:, 6 * body + k] = np.imag(function(states)) / STEP
            rows.append(block)
        return np.concatenate([np.zeros((0, 6 * len(self.bodies))), *rows])

    def jacobian(self):
        return self.rows_of([(one.bodies, one.values) for one in self.conditions])

    def second(self, function, u):
        """The second derivative of a function of states along constant velocities."""

        def rate(t):
            return np.imag(function(self.states(u, t + 1j * STEP))) / STEP

        h = LONG / max(1.0, float(np.max(np.abs(u))))
        return (8 * (rate(h) - rate(-h)) - (rate(2 * h) - rate(-2 * h))) / (12 * h)

    def bias(self, u):
        """What K a is: minus the second derivative without accelerations."""
        return -np.concatenate(
            [np.zeros(0), *(self.second(lambda s, o=one: np.array(o.values(s)), u) for one in self.conditions)]
        )

    def mass(self):
        matrix = np.zeros((6 * len(self.bodies),) * 2)
        for i, one in enumerate(self.bodies):
            matrix[6 * i : 6 * i + 3, 6 * i : 6 * i + 3] = one.mass * np.eye(3)
            matrix[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = one.R @ one.moments @ one.R.T
        return matrix

    def force(self, u):
        """Weights, gyroscopic torques and springs."""
        u = np.reshape(u, (-1, 6))
        load = np.zeros((len(self.bodies), 6))
        for one, motion, own in zip(self.bodies, u, load):
            own[:3] = one.mass * self.gravity
            own[3:] = -np.cross(motion[3:], one.R @ one.moments @ one.R.T @ motion[3:])
        for pull in self.pulls:
            points, speeds, arms = [], [], []
            for body, place in zip(pull.bodies, pull.places):
                arm = place if body < 0 else self.bodies[body].R @ place
                points.append(arm if body < 0 else self.bodies[body].r + arm)
                speeds.append(np.zeros(3) if body < 0 else u[body, :3] + np.cross(u[body, 3:], arm))
                arms.append(arm)
            d = points[1] - points[0]
            size = np.linalg.norm(d)
            tension = pull.stiffness * (size - pull.length) + pull.damping * (speeds[1] - speeds[0]) @ d / size
            for body, arm, sign in zip(pull.bodies, arms, (1.0, -1.0)):
                if body >= 0:
                    load[body, :3] += sign * tension * d / size
                    load[body, 3:] += np.cross(arm, sign * tension * d / size)
        return load.ravel()

    def allowed(self):
        """A basis of the velocities that the conditions allow."""
        K = self.jacobian()[:, self.columns]
        _, s, V = np.linalg.svd(np.concatenate([K, np.zeros((1, K.shape[1]))]))
        basis = np.zeros((6 * len(self.bodies), K.shape[1] - int(np.sum(s > 1e-8))))
        basis[self.columns] = V[int(np.sum(s > 1e-8)) :].T
        return basis

    def accelerations(self, u):
        """Of all bodies: in the directions that conditions allow, from the balance there."""
        keep, K = self.columns, self.jacobian()[:, self.columns]
        Z, M, f = self.allowed()[keep], self.mass()[np.ix_(keep, keep)], self.force(u)[keep]
        particular = np.linalg.lstsq(K, self.bias(u), rcond=1e-10)[0] if len(K) else np.zeros(keep.size)
        result = np.zeros(6 * len(self.bodies))
        result[keep] = particular + Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ (f - M @ particular))
        return result
