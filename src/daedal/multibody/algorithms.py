r"""The recursive algorithms under the names of the textbooks: ``rnea``, ``crba``, ``aba``; with closed loops,
``accelerations``.

The equations of motion of a tree in the velocities u of its joints are :math:`H(q) \dot u + C(q, u) = \tau`; gravity is
in C. For Euler parameters in q, u has the angular velocity in the axes of the joint's second frame.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from daedal.errors import InvalidProblemError
from daedal.kernels.compilation import kernel, part
from daedal.kernels.quick_calls import (
    OBJECT,
    allocate,
    array_data,
    free,
    is_there,
    new_matrix,
    new_reference,
    new_vector,
    quick_call,
    vector_data,
)
from daedal.kernels.records import float_rows, floats, record_at
from daedal.multibody.articulated import accelerate, eliminate
from daedal.multibody.dynamics import composite_bodies, newton_euler
from daedal.multibody.kinematics import move, place
from daedal.multibody.layout import Layout
from daedal.multibody.packed import (
    ELIMINATION,
    MACHINE,
    PLACEMENT,
    PREPARED,
    VELOCITIES,
    LoadBlock,
    chains_at,
    closures_at,
    elimination_at,
    floats_for,
    matrices,
    placement_at,
    rows,
    tree_at,
    velocities_at,
)
from daedal.multibody.recursive import constrained_accelerations
from daedal.problems.checks import check_real
from daedal.tabular import listing


class Accelerations(NamedTuple):
    """What :func:`accelerations` gives."""

    u: np.ndarray  # accelerations of the joints
    multipliers: np.ndarray  # one for each condition of the joints that close loops
    redundant: int  # how many of these conditions follow from the others


def rnea(model: Any, q, u, a, *, forces=None, torques=None) -> np.ndarray:
    r"""Forces of the joints for given accelerations: the recursive Newton-Euler algorithm.

    Parameters
    ----------
    model : Model or Layout
        A model, in the relative coordinates of its spanning tree, or what ``model.layout(...)`` gives, which is faster
        in loops. Joints that close loops and the forces of the model take no part.
    q : array
        Coordinates, in the order of ``layout.names``.
    u, a : array
        Velocities and accelerations of the joints.
    forces, torques : array of shape (number of bodies, 3), optional
        What acts on the centres of mass of the bodies besides gravity, in the axes of the ground and in the order of
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
    if type(model) is Layout and forces is None and torques is None:
        address, no_loads = model.prepared
        result = _rnea.call(address, q, u, a, no_loads)
        if result is not None:
            return result
    layout = layout_of(model)
    loads = _loads(layout, forces, torques)
    return _rnea.call(layout.prepared[0], *_vectors(layout, q=q, u=u, a=a), loads.address)


def crba(model: Any, q) -> np.ndarray:
    r"""The mass matrix H(q) in the velocities of the joints: the composite-rigid-body algorithm.

    Parameters
    ----------
    model : Model or Layout
        As for :func:`rnea`.
    q : array
        Coordinates.

    Returns
    -------
    numpy.ndarray
        Symmetric, with as many rows as there are velocities of joints.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, crba, ground
    >>> rod = Body.rod("rod", length=2.0, mass=3.0)
    >>> print(crba(Model(Revolute("pivot", ground, rod.start)), [0.3]))
    [[4.]]
    """
    if type(model) is Layout:
        result = _crba.call(model.prepared[0], q)
        if result is not None:
            return result
    layout = layout_of(model)
    return _crba.call(layout.prepared[0], *_vectors(layout, q=q))


def aba(model: Any, q, u, tau, *, forces=None, torques=None) -> np.ndarray:
    r"""Accelerations of the joints for given forces, in O(n): the articulated-body algorithm.

    Parameters
    ----------
    model : Model or Layout
        As for :func:`rnea`; :func:`accelerations` also has closed loops and the forces of the model.
    q, u : array
        Coordinates, and velocities of the joints.
    tau : array
        Forces of the joints.
    forces, torques : array, optional
        As for :func:`rnea`.

    Returns
    -------
    numpy.ndarray
        :math:`\dot u = H^{-1} (\tau - C)`. Entries are not finite where a joint moves nothing that has mass.

    Examples
    --------
    A rod that is let go begins to turn with 3 g / (2 l):

    >>> from daedal.multibody import Body, Model, Revolute, aba, ground
    >>> rod = Body.rod("rod", length=1.0, mass=1.0)
    >>> arm = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -10.0))
    >>> print(aba(arm, [0.0], [0.0], [0.0]))
    [-15.]
    """
    if type(model) is Layout and forces is None and torques is None:
        address, no_loads = model.prepared
        result = _aba.call(address, q, u, tau, no_loads)
        if result is not None:
            return result
    layout = layout_of(model)
    loads = _loads(layout, forces, torques)
    return _aba.call(layout.prepared[0], *_vectors(layout, q=q, u=u, tau=tau), loads.address)


def accelerations(model: Any, q, u, tau=None, *, forces=None, torques=None) -> Accelerations:
    r"""Accelerations and reactions of a machine with closed loops, by recursive elimination in O(n).

    The equations are :math:`H \dot u + J^T \lambda = \tau - C` and :math:`J \dot u = \gamma` for the conditions of the
    joints that close loops, in the order of ``layout.closing_joints``. Bodies are eliminated from the tips to the base,
    where one small system remains for each set of loops that share bodies.

    Where conditions follow from others, as in Bricard's mechanism or a spatial parallelogram, reactions are not unique.
    Then the :math:`\lambda` of least norm is taken, and ``redundant`` says how many conditions are to spare.

    Parameters
    ----------
    model : Model or Layout
        As for :func:`rnea`.
    q, u : array
        Coordinates, and velocities of the joints, which satisfy the conditions.
    tau : array, optional
        Forces of the joints.
    forces, torques : array, optional
        As for :func:`rnea`.

    Returns
    -------
    Accelerations
        A triple: ``u`` (the accelerations of the joints), ``multipliers`` and ``redundant``.

    Examples
    --------
    A parallelogram in space, with its cranks upright; three of the five conditions of the hinge that closes it keep it
    in the plane, in which it moves anyway:

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
            f"accelerations knows joints only, and the model has {named} besides; use model.system().at(t, q, v)"
        )
    loads = _loads(layout, forces, torques)
    q, u, drive = _vectors(layout, q=q, u=u, tau=np.zeros(layout.n_v) if tau is None else tau)
    return Accelerations(*_accelerations(layout.packed.address, q, u, drive, loads.address))


@part
def _three_vectors(given, q, u, third):
    """Addresses of the entries; zeros if one of them is to be converted first."""
    numpy, n_v = given.numpy, given.n_v
    data = vector_data(numpy, q, given.n_q), vector_data(numpy, u, n_v), vector_data(numpy, third, n_v)
    return data if data[0] != 0 and data[1] != 0 and data[2] != 0 else (0, 0, 0)


@quick_call(types.int64, OBJECT, OBJECT, OBJECT, types.int64)
def _rnea(address, q, u, a, loads):
    given = record_at(address, PREPARED)
    n, n_v, data = given.n, given.n_v, _three_vectors(given, q, u, a)
    if data[0] == 0:
        return new_reference(given.numpy.none)
    n_placed, n_moving = floats_for(n, n_v, PLACEMENT), floats_for(n, n_v, VELOCITIES)
    room, result = allocate(n_placed + n_moving + 12 * n), new_vector(given.numpy, n_v)
    if is_there(result):
        tree, force, torque = tree_at(given.machine), rows(loads, n), rows(loads + 24 * n, n)
        placed, moving = placement_at(room, n, n_v), velocities_at(room + 8 * n_placed, n)
        further = room + 8 * (n_placed + n_moving)
        work = rows(further, n), rows(further + 24 * n, n), rows(further + 48 * n, n), rows(further + 72 * n, n)
        place(tree, floats(data[0], given.n_q), placed)
        move(tree, placed, floats(data[1], n_v), moving)
        accelerations, drives = floats(data[2], n_v), floats(array_data(result), n_v)
        newton_euler(tree, placed, moving, accelerations, force, torque, work, drives)
    free(room)
    return result


@quick_call(types.int64, OBJECT)
def _crba(address, q):
    given = record_at(address, PREPARED)
    numpy, n, n_v = given.numpy, given.n, given.n_v
    data = vector_data(numpy, q, given.n_q)
    if data == 0:
        return new_reference(numpy.none)
    n_placed = floats_for(n, n_v, PLACEMENT)
    room, result = allocate(n_placed + 13 * n), new_matrix(numpy, n_v, n_v)
    if is_there(result):
        tree, placed, further = tree_at(given.machine), placement_at(room, n, n_v), room + 8 * n_placed
        work = floats(further, n), rows(further + 8 * n, n), matrices(further + 32 * n, n)
        place(tree, floats(data, given.n_q), placed)
        composite_bodies(tree, placed, work, float_rows(array_data(result), n_v, n_v))
    free(room)
    return result


@quick_call(types.int64, OBJECT, OBJECT, OBJECT, types.int64)
def _aba(address, q, u, tau, loads):
    given = record_at(address, PREPARED)
    n, n_v, data = given.n, given.n_v, _three_vectors(given, q, u, tau)
    if data[0] == 0:
        return new_reference(given.numpy.none)
    n_placed, n_moving = floats_for(n, n_v, PLACEMENT), floats_for(n, n_v, VELOCITIES)
    n_left = floats_for(n, n_v, ELIMINATION)
    room, result = allocate(n_placed + n_moving + n_left + 6 * n), new_vector(given.numpy, n_v)
    if is_there(result):
        tree, force, torque = tree_at(given.machine), rows(loads, n), rows(loads + 24 * n, n)
        placed, moving = placement_at(room, n, n_v), velocities_at(room + 8 * n_placed, n)
        left = elimination_at(room + 8 * (n_placed + n_moving), n, n_v)
        further = room + 8 * (n_placed + n_moving + n_left)
        place(tree, floats(data[0], given.n_q), placed)
        move(tree, placed, floats(data[1], n_v), moving)
        eliminate(tree, placed, moving, floats(data[2], n_v), force, torque, left)
        work, speeding = (rows(further, n), rows(further + 24 * n, n)), floats(array_data(result), n_v)
        accelerate(tree, placed, moving, left, work, speeding)
    free(room)
    return result


@kernel
def _accelerations(address, q, u, tau, loads):
    record = record_at(address, MACHINE)
    machine = tree_at(address), closures_at(address), chains_at(address)
    n = record.n
    return constrained_accelerations(*machine, q, u, tau, rows(loads, n), rows(loads + 24 * n, n))


def layout_of(model: Any):
    """A layout is taken as it is; a model gives that of its relative coordinates."""
    return model if hasattr(model, "packed") else model.layout()


def _vectors(layout: Layout, **given) -> list[np.ndarray]:
    """New arrays of floats, as compiled code takes them; an error names the argument of another size."""
    found = []
    for name, values in given.items():
        size, what = (layout.n_q, "coordinates") if name == "q" else (layout.n_v, "velocities of joints")
        try:
            vector = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidProblemError(f"{name} must be an array of {size} numbers, got {values!r}") from error
        if vector.shape != (size,):
            raise InvalidProblemError(
                f"{name} has shape {vector.shape}; expected ({size},), as the model has {size} {what}"
            )
        found.append(np.empty(size))  # arrays that were pickled have descriptions of numbers of their own
        found[-1][:] = vector
    return found


def _loads(layout, forces, torques) -> LoadBlock:
    loads = LoadBlock(layout.tree.father.size)
    for target, given, name in zip(loads.values, (forces, torques), ("forces", "torques")):
        if given is not None:
            values = check_real(given, name, "be an array with three numbers for each body")
            if values.shape != target.shape:
                raise InvalidProblemError(f"{name} has shape {values.shape}; expected {target.shape}")
            target[:] = values
    return loads
