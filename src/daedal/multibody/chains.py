"""Which conditions act through which bodies: the chains from cut joints to the base (2.3), as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from daedal.multibody.closure import Closures
from daedal.multibody.tree import BodyTree


class Chains(NamedTuple):
    """A place for each condition at each body of its chains, and the sets of conditions that act on each other."""

    first_place: np.ndarray  # (n + 1,) the places at body j are first_place[j] to first_place[j + 1]
    condition: np.ndarray  # (places,)
    up: np.ndarray  # (places,) that of the same condition at the father, -1 at the base
    first_product: np.ndarray  # (n + 1,) of the products of B with the conditions, one for each place and velocity
    side: np.ndarray  # (m, 2) where the two bodies of a condition are, -1 for the ground
    group: np.ndarray  # (m,) the set of each condition
    within: np.ndarray  # (m,) its number in this set
    member: np.ndarray  # (m,) the conditions of one set after the other
    first_member: np.ndarray  # (sets + 1,)
    first_entry: np.ndarray  # (sets + 1,) where the matrix of each set begins


def chains_of(tree: BodyTree, closures: Closures) -> Chains:
    """The chains of all conditions; those whose chains meet in a body are in one set."""
    n, m = tree.father.size, closures.kind.size
    passing: list[set[int]] = [set() for _ in range(n)]
    base = np.full((m, 2), -1)
    for i in range(m):
        for side in range(2):
            j = int(closures.body[i, side])
            while j >= 0:
                passing[j].add(i)
                base[i, side] = j
                j = int(tree.father[j])
    at = [{condition: place for place, condition in enumerate(sorted(here))} for here in passing]
    first = np.concatenate([[0], np.cumsum([len(here) for here in at])]).astype(np.int64)
    condition, up = [], []
    for j, here in enumerate(at):
        father = int(tree.father[j])
        condition += list(here)
        up += [-1 if father < 0 else int(first[father]) + at[father][i] for i in here]
    sides = [[-1 if j < 0 else int(first[j]) + at[j][i] for j in closures.body[i]] for i in range(m)]
    products = np.diff(first) * np.diff(tree.first_v)
    group = _sets(base, n)
    size = np.bincount(group).astype(np.int64)
    member = np.argsort(group, kind="stable")
    first_member = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    within = np.empty(m, dtype=np.int64)
    within[member] = np.arange(m) - first_member[group[member]]
    return Chains(
        first,
        np.array(condition, dtype=np.int64),
        np.array(up, dtype=np.int64),
        np.concatenate([[0], np.cumsum(products)]).astype(np.int64),
        np.array(sides, dtype=np.int64).reshape(m, 2),
        group,
        within,
        member,
        first_member,
        np.concatenate([[0], np.cumsum(size**2)]).astype(np.int64),
    )


def _sets(base: np.ndarray, n: int) -> np.ndarray:
    """A number for each set of conditions whose chains end at the same bodies of the base."""
    m = base.shape[0]
    condition, side = np.nonzero(base >= 0)
    links = coo_array((np.ones(condition.size), (condition, m + base[condition, side])), shape=(m + n, m + n))
    _, label = connected_components(links, directed=False)
    return np.unique(label[:m], return_inverse=True)[1].astype(np.int64)
