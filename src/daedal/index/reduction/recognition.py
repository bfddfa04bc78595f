r"""Recognition of mechanisms in equations given as F(t, x, x') = 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from daedal.index.reduction.motion_graph import Balance, MechanismGraph, find_balance, has_full_rank
from daedal.index.structure.system_equations import SystemEquations, argument_name
from daedal.problems import MechanicalSystem
from daedal.symbolic import Untraceable
from daedal.symbolic.derivative import Row, jacobian, sparsity
from daedal.symbolic.graph import Graph
from daedal.symbolic.graph_functions import GraphFunction, inlined
from daedal.symbolic.tracing.parameters import NAME

_SAME = 1e-9  # relative size up to which values count as zero


def without_stabilisers(motion: MechanismGraph) -> MechanismGraph | None:
    """Remove velocity constraints that are derivatives of the position constraints from `motion`, which is returned.

    Returns None if the velocity constraints are not of this kind.
    """
    m, n = motion.sizes["mu"], motion.sizes["q"]
    if m == 0:
        return motion
    if not len(motion.position) == len(motion.velocity) == motion.sizes["lam"] == m:
        return None
    position, velocity = ([i for i, _ in rows] for rows in (motion.position, motion.velocity))
    if not (motion.is_affine(motion.kinematic, ("mu",), {"q"}) and motion.is_affine(velocity, ("v",), {"q"})):
        return None
    rates = motion.along(position)
    rows = [*_with_constant(motion, rates), *_with_constant(motion, velocity)]
    every = motion.sampled([*rows, *motion.by(motion.kinematic, ("mu",))], n + 1)
    if every is None:
        return None
    derived, given, forces = every[:, :m], every[:, m : 2 * m], every[:, 2 * m :, :m] / _slope_factors(motion)[:, None]
    if not (has_full_rank(derived) and has_full_rank(given) and _span_the_same(derived, given)):
        return None
    if not _is_regular(derived[:, :, :n], forces):
        return None
    motion.velocity = []
    return motion


def _with_constant(motion: MechanismGraph, nodes: list[int]) -> list[Row]:
    """Rows with the coefficients of the velocities, followed by the remaining terms."""
    rest = motion.without(nodes, ("v",))
    rows = motion.by(nodes, ("v",))
    return [{**row, motion.sizes["q"]: node} for row, node in zip(rows, rest, strict=True)]


def _slope_factors(motion: MechanismGraph) -> np.ndarray:
    """The factors of q' in the kinematic equations."""
    equations, roles = motion.equations, motion.roles
    found = []
    for row, j in zip(roles.kinematic, roles.positions, strict=True):
        (partials,) = equations.jacobian([equations.nodes[row]], [equations.unknown(j, 1)])
        found.append(equations.graph.data[partials[0]])
    return np.array(found)


def _is_regular(gradients: np.ndarray, forces: np.ndarray) -> bool:
    """Whether G E is regular at all points, after scaling the rows of G and the columns of E to norm 1."""
    size = np.linalg.norm(forces, axis=1, keepdims=True)
    if not np.all(size > 0.0):
        return False
    product = gradients / np.linalg.norm(gradients, axis=2, keepdims=True) @ (forces / size)
    return bool(np.all(np.linalg.svd(product, compute_uv=False)[:, -1] > _SAME))


def _span_the_same(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the rows of two matrices span the same space at all points."""
    for one, other in zip(first, second, strict=True):
        basis = np.linalg.qr(one.T)[0]
        if np.any(np.linalg.norm(other - (other @ basis) @ basis.T, axis=1) > _SAME * np.linalg.norm(other, axis=1)):
            return False
    return True


# --- Recognition of mechanisms ----------------------------------------------------------------------------------------

# The recognised form is Lagrange's equations of the first kind, in any order and with any scaling of rows,
#
# .. math::
#
#     \dot q = v, \qquad M(t, q)\, \dot v = f(t, q, v, r) - B(t, q)\, \lambda, \qquad \dot r = f_d(t, q, v, r), \qquad
#     0 = g(t, q) \quad\text{or}\quad 0 = \hat G(t, q)\, v + \hat g(t, q),
#
# with B = K^T S, K the Jacobian of the constraints and S regular: the multipliers then differ from those of a
# :class:`MechanicalSystem`, but the motion is the same. Structure is decided on the graph of the equations, symmetry
# and B at points in general position; matrices with switches could differ elsewhere and are not recognised. All other
# equations are not treated as mechanisms.

_MOST_COORDINATES = 500  # maximum number of coordinates of a mechanism whose functions are compiled


def recognise_mechanism(equations: SystemEquations) -> RecognisedMechanism | None:
    """The mechanism described by the equations; None if they are not exactly those of one with constraints.

    Examples
    --------
    >>> import daedal
    >>> from daedal.index.reduction.recognition import recognise_mechanism
    >>> from daedal.index.structure.system_equations import SystemEquations
    >>> def pendulum(t, y, yp):
    ...     x, z, u, w, force = y
    ...     return [yp[0] - u, yp[1] - w, 2.0 * yp[2] + force * x, 2.0 * yp[3] + force * z + 19.62, x * x + z * z - 1.0]
    >>> found = recognise_mechanism(SystemEquations(daedal.ImplicitDAE(pendulum, 5, names=["x", "z", "u", "w", "F"])))
    >>> print(found.words)
    a mechanism with 2 coordinates (x, z) and 1 constraint
    >>> found.system.mass
    array([[2., 0.],
           [0., 2.]])
    """
    roles = find_roles(equations)
    if roles is None or len(roles.positions) > _MOST_COORDINATES or not is_silent(equations):
        return None
    try:
        motion = without_stabilisers(MechanismGraph(equations, roles))
        if motion is None or not motion.is_mechanical():
            return None
        matrices = motion.matrices()
        balance = None if matrices is None else find_balance(*matrices)
        return None if balance is None else _recognised(motion, balance)
    except Untraceable:  # too large
        return None


@dataclass(frozen=True, eq=False)
class RecognisedMechanism:
    """A mechanism and the positions of its variables among the unknowns of the original problem."""

    system: MechanicalSystem  # the mechanism, with functions on the graph
    roles: Roles  # the roles of the unknowns
    names: tuple[str, ...]
    constraint_rows: tuple[int, ...]  # the equations of the problem that are constraints
    # the row factors, and the matrix that maps the multipliers of `system` to those of the problem
    balance: Balance = field(repr=False)
    # linear systems for (a, lam) and for (a', lam'): matrix, row by row, and right-hand side
    accelerations: GraphFunction = field(repr=False)
    rates: GraphFunction = field(repr=False)
    # whether the mechanism is valid for all parameters; false, for example, if row factors depend on them
    is_plain: bool = True

    @property
    def shares(self) -> np.ndarray | None:
        """The matrix that maps the multipliers of `system` to those of the problem; None if it varies."""
        return self.balance.shares

    @property
    def words(self) -> str:
        """A description of the mechanism."""
        system = self.system
        shown = ", ".join(system.label(i) for i in range(min(system.n_q, 8))) + ", ..." * (system.n_q > 8)
        found = [f"{system.n_q} coordinate{'s' * (system.n_q != 1)} ({shown})"]
        found += [_counted(system.n_constraints, "constraint")] if system.n_constraints else []
        found += [_counted(system.n_velocity_constraints, "velocity constraint")] * bool(system.n_velocity_constraints)
        found += [_counted(system.n_r, "first-order state")] if system.n_r else []
        return f"a mechanism with {', '.join(found[:-1])} and {found[-1]}"

    def with_params(self, numbers: np.ndarray | None) -> RecognisedMechanism:
        """A copy with other parameter values, which requires `is_plain`."""
        return replace(self, system=self.system.with_params(numbers))

    def initial(self, values: Any) -> tuple[np.ndarray, ...]:
        """(q, v) or (q, v, r) from the unknowns."""
        x, roles = np.asarray(values, dtype=float), self.roles
        q, v = x[list(roles.positions)], x[list(roles.velocities)] * np.array(roles.factors)
        return (q, v, x[list(roles.states)]) if roles.states else (q, v)

    def unknowns(self, q: np.ndarray, v: np.ndarray, r: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        """The unknowns of the problem, (n,) or (n, nt); from (v, a, r', lam') their derivatives."""
        roles = self.roles
        x = np.zeros((len(self.names), *q.shape[1:]))
        x[list(roles.positions)], x[list(roles.states)], x[list(roles.multipliers)] = q, r, multipliers
        x[list(roles.velocities)] = (v.T / np.array(roles.factors)).T
        return x

    def at(self, t: float, q: np.ndarray, v: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The unknowns of the problem and their derivatives at one state of the mechanism."""
        matrix, right = self._system(t, q, v, r)
        try:
            solution = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:  # a singular configuration, which the run reports
            solution = np.full(right.size, np.nan)
        a, lam = np.split(solution, [q.size])
        last = () if self.system.params is None else (self.system.params,)
        rate = np.empty(0) if self.system.state_rate is None else self.system.state_rate(t, q, v, r, *last)
        slope = self.multiplier_rates(t, q, v, r, a, rate, lam)
        return self.unknowns(q, v, r, lam), self.unknowns(v, a, rate, slope)

    def multipliers(self, t: float, q: np.ndarray, v: np.ndarray, r: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The multipliers of the problem at a point with accelerations a: B lam = f - A a."""
        n = q.size
        matrix, right = self._system(t, q, v, r)
        return np.linalg.lstsq(matrix[:n, n:], right[:n] - matrix[:n, :n] @ a, rcond=None)[0]

    def is_balanced(self, times: np.ndarray, y: np.ndarray) -> bool:
        """Whether A and B have the form of mechanics, with the same row factors, at points of the problem too."""
        n = self.system.n_q
        matrices = np.array([self._matrix_at(t, y[:, k]) for k, t in enumerate(times.tolist())])
        found = find_balance(matrices[:, :n, :n], matrices[:, :n, n:], matrices[:, n:, :n])
        return found is not None and found.agrees_with(self.balance)

    def orientation(self, t: float, values: np.ndarray) -> float:
        """The sign of det S at a point of the problem, which is that of det(K d B) = det(K K^T) det S."""
        n, matrix = self.system.n_q, self._matrix_at(t, values)
        forces = self.balance.factors[:, None] * matrix[self.balance.order, n:]
        return float(np.linalg.slogdet(matrix[n:, :n] @ forces)[0])

    def _matrix_at(self, t: float, values: np.ndarray) -> np.ndarray:
        """[A, B; K, 0] at a point of the problem."""
        q, v, *r = self.initial(values)
        return self._system(t, q, v, r[0] if r else np.empty(0))[0]

    def multiplier_rates(self, t, q, v, r, a, rate, lam) -> np.ndarray:
        """The derivatives of the problem's multipliers, from differentiated dynamics and hidden constraints."""
        states = (r, rate) if self.system.n_r else ()
        last = () if self.system.params is None else (self.system.params,)
        matrix, right = _split(self.rates(t, q, v, a, lam, *states, *last), q.size + lam.size)
        try:
            return np.linalg.solve(matrix, right)[q.size :]
        except np.linalg.LinAlgError:
            return np.full(lam.size, np.nan)

    def _system(self, t: float, q: np.ndarray, v: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        states = (r,) if self.system.n_r else ()
        last = () if self.system.params is None else (self.system.params,)
        return _split(self.accelerations(t, q, v, *states, *last), q.size + self.system.n_lambda)


def _split(values: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    return values[:-size].reshape(size, size), values[-size:]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def is_silent(equations: SystemEquations) -> bool:
    """Whether the functions raise no exceptions, since machine code of their parts would not raise them.

    Exceptions of Python floats and the math module are ignored if NumPy's infinity or NaN would make the result
    infinite or NaN too, since steps end there anyway: 1 / x is ignored, exp(-1 / x) is not.
    """
    return all(_is_seen(equations.graph, trace.nodes, trace.raises) for trace in equations.traces)


def _is_seen(graph: Graph, nodes: Sequence[int], condition: int) -> bool:
    """Whether `nodes` are infinite or NaN whenever the condition under which Python raises an exception holds."""
    values = _hazards(graph, condition)
    if not values:
        return values is not None
    waiting, spread = list(nodes), set(nodes)
    while waiting:
        i = waiting.pop()
        operands = graph.operands[i]
        count = len(operands) if graph.operations[i] != "divide" else 1
        if graph.operations[i] in _SPREADS:
            found = set(operands[:count]) - spread
            spread |= found
            waiting += found
    return values <= spread


_SPREADS = {"add", "subtract", "multiply", "divide", "negative", "absolute", "sqrt", "cbrt", "sin", "cos", "tan"}
"""Operations whose result is infinite or NaN if an operand (for a quotient, the numerator) is infinite or NaN."""


def _hazards(graph: Graph, condition: int) -> set[int] | None:
    """Nodes of which at least one is infinite or NaN if the condition holds; None if this cannot be established."""
    if condition == graph.false:
        return set()
    operation, operands = graph.operations[condition], graph.operands[condition]
    if operation == "logical_or":
        first, second = (_hazards(graph, i) for i in operands)
        return None if first is None or second is None else first | second
    if operation == "logical_not" and graph.operations[operands[0]] == "less_equal":
        size = graph.operands[operands[0]][0]
        if graph.operations[size] == "absolute" and graph.is_finite(graph.operands[size][0]) == operands[0]:
            return set(graph.operands[size])
    return None


def _recognised(motion: MechanismGraph, balance: Balance) -> RecognisedMechanism:
    equations, roles, graph = motion.equations, motion.roles, motion.graph
    numbers = equations.params
    params = None if numbers is None else (NAME, numbers.size)
    n, n_r = len(roles.positions), len(roles.states)

    def function(name: str, nodes: Any, arguments: Sequence[str]) -> GraphFunction:
        return GraphFunction(name, graph, np.asarray(nodes), {a: motion.sizes[a] for a in arguments}, params)

    state = ("q", "v", "r") if n_r else ("q", "v")
    mass, constraints = motion.mass(balance), tuple(k for _, k in (*motion.position, *motion.velocity))
    system = MechanicalSystem(
        _numbers(graph, mass) if all(graph.is_constant(i) for i in mass.flat) else function("mass", mass, ("q",)),
        function("force", motion.force(balance), state),
        function("constraint", [i for i, _ in motion.position], ("q",)) if motion.position else None,
        n_q=n,
        n_constraints=len(motion.position),
        velocity_constraint=function("velocity_constraint", [i for i, _ in motion.velocity], ("q", "v"))
        if motion.velocity
        else None,
        n_velocity_constraints=len(motion.velocity),
        state_rate=function("state_rate", motion.state_rate(), state) if n_r else None,
        n_r=n_r,
        params=numbers,
        names=[equations.names[j] for j in roles.positions],
        constraint_names=[f"equation {k}" for k in constraints],
    )
    return RecognisedMechanism(
        system=system,
        roles=roles,
        names=tuple(equations.names),
        constraint_rows=constraints,
        balance=balance,
        accelerations=function("accelerations", motion.accelerations(), state),
        rates=function("rates", motion.rates(), ("q", "v", "a", "lam", *(("r", "s") if n_r else ()))),
        is_plain=_holds_for_all_parameters(motion, balance),
    )


def _holds_for_all_parameters(motion: MechanismGraph, balance: Balance) -> bool:
    """Whether other parameters give the same scaling of the rows."""
    if motion.equations.params is None:
        return True
    matrices = motion.matrices(vary=True)
    other = None if matrices is None else find_balance(*matrices)
    return other is not None and other.agrees_with(balance)


def _numbers(graph: Graph, nodes: np.ndarray) -> np.ndarray:
    return np.array([graph.data[i] for i in nodes.flat], dtype=float).reshape(nodes.shape)


# --- roles of the unknowns, from structure alone: positions, velocities, states and multipliers -----------------------

Places = set[tuple[int, int]]
"""The structure of an equation: pairs of an unknown and the order of its derivative."""


@dataclass(frozen=True)
class Roles:
    """The roles of the unknowns in a mechanism."""

    positions: tuple[int, ...]  # unknowns q
    velocities: tuple[int, ...]  # for each position the unknown u with q' = c u
    factors: tuple[float, ...]  # the constants c
    states: tuple[int, ...]  # unknowns with a first derivative that are neither positions nor velocities
    multipliers: tuple[int, ...]  # unknowns without any derivative
    stabilisers: tuple[int, ...]  # multipliers that occur in the equations q' = c u
    kinematic: tuple[int, ...]  # the equations q' = c u, which may also contain stabilisers
    others: tuple[int, ...]  # all other equations


def find_roles(equations: SystemEquations) -> Roles | None:
    """The roles of the unknowns; None if the equations do not resemble those of a mechanism with constraints.

    Equations with second derivatives are excluded: methods solve them directly.
    """
    if equations.order > 1:
        return None
    found = sparsity(equations.graph, equations.nodes, equations.unknowns([0, 1]))
    rows: list[Places] = [{(k % equations.n, k // equations.n) for k in row} for row in found]
    moving = {j for row in rows for j, order in row if order}
    multipliers = [j for j in range(equations.n) if j not in moving]
    if not multipliers or not moving:
        return None
    roles = _assigned(equations, rows, moving, multipliers)
    if roles is None or not roles.positions:
        return None
    constraints = [i for i in roles.others if _is_constraint(rows[i], roles)]
    if len(constraints) != len(multipliers) or any(j in roles.stabilisers for i in roles.others for j, _ in rows[i]):
        return None
    return roles


def _is_constraint(row: Places, roles: Roles) -> bool:
    """Whether an equation is a constraint on positions or velocities, in any variables."""
    positions, velocities = set(roles.positions), set(roles.velocities)
    known = {(j, 0) for j in positions | velocities} | {(j, 1) for j in positions}
    return row <= known


def _assigned(equations: SystemEquations, rows: list[Places], moving: set[int], multipliers: list[int]) -> Roles | None:
    following = _kinematic(equations, rows, moving)
    if not following:
        return None
    constrained = {j for row in rows if all(k in moving and not order for k, order in row) for j, _ in row}
    pairs = _pairs({i: j for i, (_, j, _) in following.items()}, constrained)
    taken = {j for pair in pairs for j in pair}
    states = [j for j in sorted(moving) if j not in taken]
    kinematic = [following[i][0] for i, _ in pairs]
    others = [i for i in range(equations.n) if i not in kinematic]
    stabilisers = sorted({j for i in kinematic for j, _ in rows[i] if j not in moving})
    return Roles(
        tuple(i for i, _ in pairs),
        tuple(j for _, j in pairs),
        tuple(following[i][2] for i, _ in pairs),
        tuple(states),
        tuple(j for j in multipliers if j not in stabilisers),
        tuple(stabilisers),
        tuple(kinematic),
        tuple(others),
    )


def _kinematic(equations: SystemEquations, rows: list[Places], moving: set[int]) -> dict[int, tuple[int, int, float]]:
    """All equations a x_i' + b x_j = 0 with numbers a and b: {i: (equation, j, -b/a)}.

    They may contain additional unknowns without derivatives.
    """
    found: dict[int, tuple[int, int, float]] = {}
    for row, places in sorted(enumerate(rows), key=lambda item: len(item[1])):
        slopes = [j for j, order in places if order]
        if len(slopes) != 1 or slopes[0] in found or (len(places) > 2 and all(j in moving for j, _ in places)):
            continue
        relation = _relation(equations, equations.nodes[row], slopes[0], moving)
        if relation is not None:
            found[slopes[0]] = row, *relation
    return found


def _relation(equations: SystemEquations, equation: int, i: int, moving: set[int]) -> tuple[int, float] | None:
    """j and c if an equation reads x_i' = c x_j with the unknowns without derivatives set to zero."""
    source, graph = equations.graph, _Bounded()
    read = [source.data[k] for k in source.needed([equation]) if source.operations[k] == "argument"]
    known = {datum: graph.argument(*datum) for datum in read}
    known |= {datum: graph.zero for datum in read if datum[0].startswith("x") and datum[1] not in moving}
    node = inlined(source, [equation], graph, known)[0]
    variables = [node for (name, _), node in known.items() if name.startswith("x") and node != graph.zero]
    (places,) = sparsity(graph, [node], variables)
    named = sorted(graph.data[variables[k]] for k in places)
    if len(named) != 2 or named[0][0] != argument_name(0) or named[1] != (argument_name(1), i):
        return None
    j = named[0][1]
    pair = [graph.argument(*datum) for datum in named]
    (partials,) = jacobian(graph, [node], pair)
    b, a = (partials.get(k, graph.zero) for k in range(2))
    if not (graph.is_constant(a) and graph.is_constant(b)) or graph.is_zero(a) or graph.is_zero(b) or i == j:
        return None
    rest = inlined(graph, [node], graph, {datum: graph.zero if datum in named else known[datum] for datum in known})[0]
    return (j, -graph.data[b] / graph.data[a]) if graph.is_zero(rest) else None


class _Bounded(Graph):
    """A graph in which products with zero vanish even if the other factor is unbounded; for structural checks."""

    def _append(self, key, operation: str, operands: tuple[int, ...], datum: Any) -> int:
        made = super()._append(key, operation, operands, datum)
        self.regular[made] = True
        return made


def _pairs(following: Mapping[int, int], constrained: set[int]) -> list[tuple[int, int]]:
    """Pairs (position, velocity) in the chains x_i' = x_j, x_j' = x_k, ...

    The first pair of a chain starts with its first unknown that occurs in the constraints; if none occurs, with its
    first unknown.
    """
    starts = [i for i in following if i not in set(following.values())]
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    for start in [*_preferred(starts, constrained), *_preferred(following, constrained)]:
        chain = _chain(start, following, taken)
        first = next((k for k, j in enumerate(chain[:-1]) if j in constrained), 0)
        for k in range(first, len(chain) - 1, 2):
            pairs.append((chain[k], chain[k + 1]))
            taken |= set(pairs[-1])
    return sorted(pairs)


def _preferred(unknowns: Iterable[int], constrained: set[int]) -> list[int]:
    return sorted(unknowns, key=lambda j: (j not in constrained, j))


def _chain(start: int, following: Mapping[int, int], taken: set[int]) -> list[int]:
    chain: list[int] = []
    i: int | None = start
    while i is not None and i not in taken and i not in chain:
        chain.append(i)
        i = following.get(i)
    return chain
