"""Members that are mechanisms: starts must be consistent to round-off; results are projected onto the constraints.

See :mod:`daedal.ensembles.batch_kernel`.
"""

from daedal.ensembles.batch_kernel import BATCH, MEMBER, NOT_PROJECTED, NOT_READY
from daedal.kernels.callbacks import nothing
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import INTEGER, Struct, address_of, at, record_at
from daedal.kernels.vectors import copy
from daedal.mechanics.constrained import CONSTRAINED, load_start
from daedal.mechanics.formulations.monitor import MONITOR, begin_watch_of
from daedal.mechanics.manifold import PROJECTOR, project_point
from daedal.mechanics.readiness import is_ready

MECHANISMS = Struct(
    "MECHANISMS",
    [
        ("system", at(CONSTRAINED)),
        ("monitor", at(MONITOR)),  # 0 if unused
        ("projector", at(PROJECTOR)),
        ("expected", INTEGER),  # expected result of `is_ready`
    ],
)


@entry(MEMBER)
def begin_mechanism(address, k):
    """Set y = (q, v, r) and its derivative; members with unsuitable starts are left to the driver."""
    batch = record_at(address, BATCH)
    own = record_at(batch.own, MECHANISMS)
    c, y = own.system, batch.starts[k]
    z, r, none = y[: 2 * c.nx], y[2 * c.nx :], nothing()
    if is_ready(address_of(c), batch.t0, z, r) != own.expected:
        return NOT_READY
    _write(batch.run, c, y)
    multipliers = c.guesses
    copy(multipliers, c.multipliers)
    if address_of(own.monitor) != 0:
        begin_watch_of(own.monitor, c, batch.t0, z, r, none, multipliers)
    else:
        load_start(c, z, r, none, multipliers)
    return 0


@part
def _write(run, c, start):
    nx = c.nx
    slope = run.yp
    copy(run.y, start)
    copy(slope, start[nx : 2 * nx])
    copy(slope[nx:], c.acceleration)
    copy(slope[2 * nx :], c.rate)


@entry(MEMBER)
def finish_mechanism(address, k):
    """Project all stored results of a member."""
    batch = record_at(address, BATCH)
    own = record_at(batch.own, MECHANISMS)
    c = own.system
    if c.n_c == 0:
        return 0
    p, states, times = own.projector, batch.states[k], batch.times
    end, final = batch.ends[k], batch.finals[k]
    for i in range(batch.place):
        if project_point(p, c, times[i], states[i]) != 0:
            return NOT_PROJECTED
    if batch.place > 0 and times[batch.place - 1] == end:
        copy(final, states[batch.place - 1])
    elif project_point(p, c, end, final) != 0:
        return NOT_PROJECTED
    return 0
