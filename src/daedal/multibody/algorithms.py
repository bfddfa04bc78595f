r"""The recursive algorithms ``rnea``, ``crba`` and ``aba``, and ``accelerations`` for machines with closed loops.

The equations of motion of a tree in the velocities u of its joints are :math:`H(q) \dot u + C(q, u) = \tau`; C
includes gravity. For Euler parameters in q, u contains the angular velocity in the axes of the joint's second frame.

The compiled entry points receive the address of a packed machine, vectors, results and workspace; `loads` is the
address of the forces and torques on the bodies. The status is -1 for vectors of wrong length.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daedal.common.tabular import listing
from daedal.errors import InvalidProblemError
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import data_of, floats, record_at
from daedal.kernels.signatures import i64
from daedal.multibody.closed_loops import constrained_solution, floats_for_solution, reduction_in
from daedal.multibody.dynamics import Composite, Sweep, accelerate, composite_bodies, eliminate, newton_euler
from daedal.multibody.kinematics import move, place
from daedal.multibody.layout import Layout
from daedal.multibody.packed import (
    ELIMINATION,
    MACHINE,
    PLACEMENT,
    VELOCITIES,
    LoadBlock,
    MachineSizes,
    chains_at,
    closures_at,
    elimination_at,
    floats_for,
    matrices,
    placement_at,
    rows,
    sizes_of,
    tree_at,
    velocities_at,
)
from daedal.multibody.vectors import ROWS, VECTOR, open_room, taken
from daedal.problems.checks import check_real

_FLOAT = np.dtype(np.float64)  # passed to np.empty, which otherwise looks up the type in every call
_UNFIT = (TypeError, AttributeError)  # raised for arguments other than arrays, by compiled and by interpreted kernels


class Accelerations(NamedTuple):
    """Result of :func:`accelerations`."""

    u: np.ndarray  # joint accelerations
    multipliers: np.ndarray  # one for each closure condition
    redundant: int  # number of dependent conditions


def rnea(model: Any, q, u, a, *, forces=None, torques=None) -> np.ndarray:
    r"""Compute the joint forces for given accelerations by the recursive Newton-Euler algorithm.

    Parameters
    ----------
    model : Model or Layout
        A model, in the relative coordinates of its spanning tree, or the result of ``model.layout(...)``, which is
        faster in loops. Joints that close loops and the forces of the model are ignored.
    q : array
        Coordinates, in the order of ``layout.names``.
    u, a : array
        Joint velocities and accelerations.
    forces, torques : array of shape (number of bodies, 3), optional
        Loads in addition to gravity, applied at the centres of mass, in the axes of the ground and in the order of
        ``layout.topology.bodies``.

    Returns
    -------
    numpy.ndarray
        :math:`\tau = H(q) \dot u + C(q, u)`.

    Examples
    --------
    The torque that holds a rod of 2 m and 1 kg level:

    >>> from daedal.multibody import Body, Model, Revolute, ground, rnea
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> arm = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81))
    >>> print(rnea(arm, [0.0], [0.0], [0.0]))
    [9.81]
    """
    return _of_three(rnea_at, model, q, u, "a", a, forces, torques)


def crba(model: Any, q) -> np.ndarray:
    r"""Compute the mass matrix H(q) in the joint velocities by the composite-rigid-body algorithm.

    Parameters
    ----------
    model : Model or Layout
        As for :func:`rnea`.
    q : array
        Coordinates.

    Returns
    -------
    numpy.ndarray
        Symmetric, with one row for each joint velocity.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, crba, ground
    >>> rod = Body.rod("rod", length=2.0, mass=3.0)
    >>> print(crba(Model(Revolute("pivot", ground, rod.start)), [0.3]))
    [[4.]]
    """
    layout = layout_of(model)
    ready = layout.prepared
    result, room = np.empty((ready.n_v, ready.n_v), _FLOAT), np.empty(ready.room, _FLOAT)
    try:
        if crba_at.call(ready.address, q, result, room) == 0:
            return result
    except _UNFIT:
        pass
    crba_at.call(ready.address, *_vectors(layout, q=q), result, room)
    return result


def aba(model: Any, q, u, tau, *, forces=None, torques=None) -> np.ndarray:
    r"""Compute the joint accelerations for given forces in O(n) operations by the articulated-body algorithm.

    Parameters
    ----------
    model : Model or Layout
        As for :func:`rnea`; use :func:`accelerations` for closed loops.
    q, u : array
        Coordinates and joint velocities.
    tau : array
        Joint forces.
    forces, torques : array, optional
        As for :func:`rnea`.

    Returns
    -------
    numpy.ndarray
        :math:`\dot u = H^{-1} (\tau - C)`. Entries are not finite if a joint moves only massless bodies.

    Examples
    --------
    A released rod starts to rotate with 3 g / (2 l):

    >>> from daedal.multibody import Body, Model, Revolute, aba, ground
    >>> rod = Body.rod("rod", length=1.0, mass=1.0)
    >>> arm = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -10.0))
    >>> print(aba(arm, [0.0], [0.0], [0.0]))
    [-15.]
    """
    return _of_three(aba_at, model, q, u, "tau", tau, forces, torques)


def accelerations(model: Any, q, u, tau=None, *, forces=None, torques=None) -> Accelerations:
    r"""Compute accelerations and reactions of a machine with closed loops by recursive elimination in O(n).

    The equations are :math:`H \dot u + J^T \lambda = \tau - C` and :math:`J \dot u = \gamma` for the conditions of the
    joints that close loops, in the order of ``layout.closing_joints``. Bodies are eliminated from the tips to the base,
    which leaves one small system for each set of loops that share bodies.

    If conditions are dependent, as in Bricard's mechanism or a spatial parallelogram, reactions are not unique. The
    :math:`\lambda` of least norm is then computed, and ``redundant`` is the number of dependent conditions.

    Parameters
    ----------
    model : Model or Layout
        As for :func:`rnea`.
    q, u : array
        Coordinates and joint velocities, consistent with the closure conditions.
    tau : array, optional
        Joint forces.
    forces, torques : array, optional
        As for :func:`rnea`.

    Returns
    -------
    Accelerations
        A triple: ``u`` (the joint accelerations), ``multipliers`` and ``redundant``.

    Examples
    --------
    A spatial parallelogram, with its cranks upright; three of the five conditions of the closing hinge are redundant,
    since the motion is planar without them:

    >>> from daedal.multibody import Body, Model, Revolute, accelerations, ground
    >>> crank, coupler = Body.rod("crank", length=1.0, mass=1.0), Body.rod("coupler", length=2.0, mass=1.0)
    >>> rocker = Body.rod("rocker", length=1.0, mass=1.0)
    >>> four_bar = Model(
    ...     Revolute("A", ground, crank.start),
    ...     Revolute("B", crank.end, coupler.start),
    ...     Revolute("C", rocker.end, coupler.end),
    ...     Revolute("D", ground.at(2.0, 0.0), rocker.start),
    ...     gravity=(0.0, -9.81),
    ... )
    >>> four_bar.layout().names
    ['A', 'B', 'D']
    >>> result = accelerations(four_bar, [1.571, -1.571, 1.571], [0.0, 0.0, 0.0])
    >>> print(result.redundant)
    3
    """
    layout = layout_of(model)
    if layout.constraints:
        named = listing(repr(one.name) for one in layout.constraints)
        raise InvalidProblemError(
            f"accelerations supports joints only, but the model also has {named}; use model.system().at(t, q, v)"
        )
    loads = _loads(layout, forces, torques)
    q, u, drive = _vectors(layout, q=q, u=u, tau=np.zeros(layout.n_v) if tau is None else tau)
    found, sizes = np.empty(layout.n_v), sizes_of(*layout.arrays)
    multipliers, room = np.empty(sizes.m), np.empty(room_for_accelerations(sizes))
    given = layout.packed.address, q, u, drive, loads.address
    return Accelerations(found, multipliers, accelerations_at.call(*given, found, multipliers, room))


def _of_three(kernel: Any, model: Any, q, u, name: str, third, forces, torques) -> np.ndarray:
    """Result of a kernel for three vectors, which are checked and converted only if the kernel refuses them."""
    layout = layout_of(model)
    ready = layout.prepared
    result, room = np.empty(ready.n_v, _FLOAT), np.empty(ready.room, _FLOAT)
    if forces is None and torques is None:
        try:
            if kernel.call(ready.address, q, u, third, ready.no_loads, result, room) == 0:
                return result
        except _UNFIT:
            pass
    loads = _loads(layout, forces, torques)
    kernel.call(ready.address, *_vectors(layout, **{"q": q, "u": u, name: third}), loads.address, result, room)
    return result


def layout_of(model: Any):
    """The given layout, or the layout of the given model in relative coordinates."""
    return model if hasattr(model, "packed") else model.layout()


def _vectors(layout: Layout, **given) -> list[np.ndarray]:
    """Check the sizes of vectors, and convert them to float arrays for compiled code."""
    found = []
    for name, values in given.items():
        size, what = (layout.n_q, "coordinates") if name == "q" else (layout.n_v, "velocities of joints")
        try:
            vector = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidProblemError(f"{name} must be an array of {size} numbers, got {values!r}") from error
        if vector.shape != (size,):
            raise InvalidProblemError(
                f"{name} has shape {vector.shape}; expected ({size},), since the model has {size} {what}"
            )
        found.append(np.require(vector, requirements=["C", "A"]))
    return found


def _loads(layout, forces, torques) -> LoadBlock:
    loads = LoadBlock(layout.tree.parent.size)
    for target, given, name in zip(loads.values, (forces, torques), ("forces", "torques")):
        if given is not None:
            values = check_real(given, name, "be an array with three numbers for each body")
            if values.shape != target.shape:
                raise InvalidProblemError(f"{name} has shape {values.shape}; expected {target.shape}")
            target[:] = values
    return loads


REFUSED = -1


def room_for_accelerations(sizes: MachineSizes) -> int:
    """Workspace of :func:`accelerations`, in floats; ``Prepared.room`` is that of the other entry points."""
    n, n_v = sizes.n, sizes.n_v
    return 1 + floats_for(n, n_v, PLACEMENT) + floats_for(n, n_v, VELOCITIES) + floats_for_solution(sizes)


@part
def _fit(record, q, u, third):
    return q.shape == (record.n_q,) and u.shape == (record.n_v,) and third.shape == (record.n_v,)


@entry(i64(i64, VECTOR, VECTOR, VECTOR, i64, VECTOR, VECTOR))
def rnea_at(machine, q, u, a, loads, result, room):
    record = record_at(machine, MACHINE)
    if not _fit(record, q, u, a):
        return REFUSED
    n, n_v, at = record.n, record.n_v, data_of(room)
    tree, placed = tree_at(machine), placement_at(at, n, n_v)
    at += 8 * floats_for(n, n_v, PLACEMENT)
    moving = velocities_at(at, n)
    at += 8 * floats_for(n, n_v, VELOCITIES)
    sweep = Sweep(rows(at, n), rows(at + 24 * n, n), rows(at + 48 * n, n), rows(at + 72 * n, n))
    place(tree, q, placed)
    move(tree, placed, u, moving)
    newton_euler(tree, placed, moving, a, rows(loads, n), rows(loads + 24 * n, n), sweep, result)
    return 0


@entry(i64(i64, VECTOR, ROWS, VECTOR))
def crba_at(machine, q, result, room):
    record = record_at(machine, MACHINE)
    if q.shape != (record.n_q,):
        return REFUSED
    n, n_v, at = record.n, record.n_v, data_of(room)
    tree, placed = tree_at(machine), placement_at(at, n, n_v)
    at += 8 * floats_for(n, n_v, PLACEMENT)
    place(tree, q, placed)
    composite_bodies(tree, placed, Composite(floats(at, n), rows(at + 8 * n, n), matrices(at + 32 * n, n)), result)
    return 0


@entry(i64(i64, VECTOR, VECTOR, VECTOR, i64, VECTOR, VECTOR))
def aba_at(machine, q, u, tau, loads, result, room):
    record = record_at(machine, MACHINE)
    if not _fit(record, q, u, tau):
        return REFUSED
    n, n_v, at = record.n, record.n_v, data_of(room)
    tree, placed = tree_at(machine), placement_at(at, n, n_v)
    at += 8 * floats_for(n, n_v, PLACEMENT)
    moving = velocities_at(at, n)
    at += 8 * floats_for(n, n_v, VELOCITIES)
    left = elimination_at(at, n, n_v)
    at += 8 * floats_for(n, n_v, ELIMINATION)
    place(tree, q, placed)
    move(tree, placed, u, moving)
    eliminate(tree, placed, moving, tau, rows(loads, n), rows(loads + 24 * n, n), left)
    accelerate(tree, placed, moving, left, (rows(at, n), rows(at + 24 * n, n)), result)
    return 0


@entry(i64(i64, VECTOR, VECTOR, VECTOR, i64, VECTOR, VECTOR, VECTOR))
def accelerations_at(machine, q, u, tau, loads, result, multipliers, room):
    """Accelerations and multipliers of a machine with loops; returns the number of dependent conditions."""
    record = record_at(machine, MACHINE)
    if not _fit(record, q, u, tau):
        return REFUSED
    n, n_v, at = record.n, record.n_v, open_room(data_of(room))
    tree, chains, force, torque = tree_at(machine), chains_at(machine), rows(loads, n), rows(loads + 24 * n, n)
    placed = placement_at(taken(at, floats_for(n, n_v, PLACEMENT)), n, n_v)
    moving = velocities_at(taken(at, floats_for(n, n_v, VELOCITIES)), n)
    place(tree, q, placed)
    move(tree, placed, u, moving)
    left, reduced = reduction_in(at, tree, closures_at(machine), chains, placed, moving, tau, force, torque)
    return constrained_solution(tree, chains, placed, moving, left, reduced, result, multipliers, at)
