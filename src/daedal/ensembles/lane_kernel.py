"""Eight members at once in one compiled loop, each bit-identical to a single run.

Members occupy the lanes of registers (:mod:`daedal.kernels.lanes`), each with its own time and step size; when one is
done, the next takes its lane. Starts, the first step size, results inside steps and the end of a run use the code for
single members. Members that need special handling (functions that cannot be evaluated, a bad pivot, a possibly singular
configuration, many steps that appear stiff) are left to the loop over single members, which runs them from their start.
"""

import numpy as np

from daedal.ensembles.batch_kernel import BATCH, begin_member, finish_member, write_numbers
from daedal.ensembles.first_order_kernel import FIRST_ORDER, begin_watch, is_troubled, watch_sign
from daedal.ensembles.lane_constraints import CONSTRAINTS, is_near, keep_basis, project, watch
from daedal.ensembles.lane_rosenbrock import LINEAR_STEPS, attempt_linear, take_over_linear
from daedal.ensembles.lane_steps import STEPS, attempt, take_over
from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.endings import Ending
from daedal.kernels.interpolation import newton_polynomial
from daedal.kernels.lanes import LANES
from daedal.kernels.records import (
    ADDRESS,
    FLOAT,
    INTEGER,
    Struct,
    address_of,
    at,
    data_of,
    float_rows,
    floats,
    record_at,
)
from daedal.kernels.signatures import i64
from daedal.mechanics.formulations.monitor import MONITOR, has_corner, have_turned_away
from daedal.methods.advance import open_run
from daedal.methods.explicit.runge_kutta_step import HARMLESS, TABLEAU, dense_stages
from daedal.methods.one_step import STIFF_STEPS, close_polynomial, count_stiff, next_step_size, polynomial, reject
from daedal.methods.rosenbrock.rosenbrock_step import ROSENBROCK, keep_polynomial
from daedal.methods.run_record import differences
from daedal.methods.step_size import shortest_step, step_to_try

_FINISHED = int(Ending.FINISHED)
_MOST_STEPS = 100_000  # number of attempts after which the loop over single members checks whether a run still advances
IDLE = -1

LANE = Struct(
    "LANE",
    [
        ("member", INTEGER),  # index of the member, or IDLE
        ("t", FLOAT),
        ("h", FLOAT),
        ("error_before", FLOAT),
        ("rejected", INTEGER),
        ("steps", INTEGER),
        ("failures", INTEGER),
        ("stiff_count", INTEGER),
        ("nonstiff_count", INTEGER),
        ("next_time", INTEGER),
        ("place", INTEGER),
        ("largest_independence", FLOAT),
        ("usual_rate", FLOAT),
        ("corner", FLOAT),
    ],
)
"""A member in progress: the data that single runs keep in their records."""
_LANE_SIZE, _WATCH_SIZE = LANE.itemsize, FIRST_ORDER.itemsize

LANE_BATCH = Struct(
    "LANE_BATCH",
    [
        ("batch", at(BATCH)),
        ("lanes", ADDRESS),  # LANE records
        ("steps", at(STEPS)),
        ("constraints", at(CONSTRAINTS)),  # 0 if unused
        ("linear", at(LINEAR_STEPS)),  # specific to Rosenbrock methods, or 0
        ("monitor", at(MONITOR)),  # record of a single member, or 0
        ("watches", ADDRESS),  # FIRST_ORDER records, one for each lane, or 0
        ("parameters", i64["n_parameters"]),  # positions of the parameters in the blocks of machine code
        ("n_parameters", INTEGER),
        ("turns", INTEGER),  # iterations of the loop before it returns
    ],
)


@inlined
def _lane(own, l):
    return record_at(own.lanes + _LANE_SIZE * l, LANE)


@entry(i64(i64))
def run_lanes(address):
    """Run the members from ``batch.next`` onwards; returns the number of members still in progress."""
    own = record_at(address, LANE_BATCH)
    batch, steps, run, count = own.batch, own.steps, own.batch.run, 0
    for _ in range(own.turns):
        count = 0
        for l in range(LANES):
            if _lane(own, l).member == IDLE:
                _take_next(own, batch, run, steps, l)
            count += 0 if _lane(own, l).member == IDLE else 1
        if count == 0:
            return 0
        _turn(own, batch, run, steps)
    return count


@part
def _scatter(rows, l, vector):
    """Copy a vector into a lane."""
    for i in range(vector.size):
        rows[i, l] = vector[i]


@part
def _gather(vector, rows, l):
    """Copy a vector out of a lane."""
    for i in range(vector.size):
        vector[i] = rows[i, l]


@inlined
def _flat(blocks, count):
    """All rows of several matrices."""
    return float_rows(data_of(blocks), count, LANES)


@part
def _take_next(own, batch, run, steps, l):
    """Start the next possible member in this lane."""
    system, roots = run.system, run.roots
    reasons = batch.reasons
    while batch.next < batch.count:
        k = batch.next
        batch.next += 1
        if reasons[k] != 0:
            continue
        reasons[k] = begin_member(batch, k)
        if reasons[k] == 0 and open_run(system, run, roots, address_of(run)) == 0:
            _load(own, batch, run, steps, l, k)
            return


@part
def _load(own, batch, run, steps, l, k):
    """Load the initial data of a member."""
    lane, numbers = _lane(own, l), batch.numbers[k]
    lane.member, lane.t, lane.h, lane.place = k, run.t, run.h, batch.place
    lane.error_before, lane.rejected, lane.next_time = run.error_before, run.rejected, run.next_time
    lane.steps, lane.failures = 0, 0
    lane.stiff_count, lane.nonstiff_count = run.stiff_count, run.nonstiff_count
    _scatter(steps.phi[0], l, run.y)
    steps.known[l] = 0.0
    if address_of(own.linear) != 0:
        _scatter(own.linear.yp, l, run.yp)
        own.linear.failures[l] = 0.0
    places = own.parameters
    for i in range(own.n_parameters):
        _scatter(float_rows(places[i], numbers.size, LANES), l, numbers)
    if own.watches != 0:
        begin_watch(record_at(own.watches + _WATCH_SIZE * l, FIRST_ORDER))
    if address_of(own.constraints) != 0:
        _load_watch(own.constraints, own.monitor, lane, l)


@part
def _load_watch(constraints, monitor, lane, l):
    nx, n_c = constraints.nx, constraints.n_c
    _scatter(_flat(constraints.basis, n_c * nx), l, floats(data_of(monitor.basis), n_c * nx))
    _scatter(constraints.norms, l, monitor.norms)
    _scatter(constraints.v_before, l, monitor.velocity)
    _scatter(constraints.speeds, l, monitor.speeds)
    lane.largest_independence, lane.usual_rate, lane.corner = 0.0, 0.0, 0.0
    if not monitor.started:
        lane.member = IDLE


@part
def _turn(own, batch, run, steps):
    """Attempt a step in all lanes; accepted lanes advance."""
    accepted, size, bad, h = steps.accepted, steps.size, steps.bad, steps.h
    for l in range(LANES):
        _try_step(run, steps, _lane(own, l), l)
    if address_of(own.linear) != 0:
        attempt_linear(own.linear, steps)
    else:
        attempt(steps)
    some = False
    for l in range(LANES):
        lane, accepted[l] = _lane(own, l), 0.0
        if lane.member == IDLE:
            continue
        if bad[l] != 0.0 or not size[l] < np.inf:
            lane.member = IDLE
        elif size[l] <= 1.0:
            accepted[l], some = 1.0, True
        else:
            run.error_of_step = size[l]
            reject(run, h[l], 0)
            lane.h, lane.rejected = run.h, 1
            lane.failures += 1
            if address_of(own.linear) != 0:
                _count_failure(own, run, lane, l)
    if not some:
        return
    if address_of(own.constraints) != 0:
        project(own.constraints, steps)
        watch(own.constraints, steps)
        _look_back(own, own.constraints, steps)
    for l in range(LANES):
        if accepted[l] != 0.0 and _lane(own, l).member != IDLE:
            _accept(own, batch, run, steps, l)
    if address_of(own.linear) != 0:
        take_over_linear(own.linear, steps)
    else:
        take_over(steps)


@part
def _count_failure(own, run, lane, l):
    """Count a failure of a Rosenbrock step; after too many consecutive failures the lane becomes idle."""
    failures = own.linear.failures
    failures[l] += 1.0
    if failures[l] >= 2 * run.most_failures:
        lane.member = IDLE


@part
def _try_step(run, steps, lane, l):
    """Choose the step size of a lane, within its limits; a lane that cannot continue becomes idle."""
    if lane.member == IDLE:
        return
    run.t, run.h = lane.t, lane.h
    run.h_min = shortest_step(run)
    h, t = step_to_try(run)
    tired = lane.steps >= _MOST_STEPS or (run.max_steps > 0 and lane.steps >= run.max_steps)
    if h == 0.0 or tired or (run.stop_when_stiff and lane.stiff_count >= STIFF_STEPS):
        lane.member = IDLE
        return
    steps.t[l], steps.h[l], steps.t_end[l] = lane.t, h, t


@part
def _look_back(own, constraints, steps):
    """Check lanes with strongly rotated constraints one by one; leave members that may have passed a singular
    configuration or a corner to the loop over single members."""
    nx, n_c, accepted = constraints.nx, constraints.n_c, steps.accepted
    if not is_near(constraints, steps):
        monitor = own.monitor
        rows, basis = floats(data_of(monitor.rows), n_c * nx), floats(data_of(monitor.basis), n_c * nx)
        for l in range(LANES):
            if accepted[l] != 0.0:
                _gather(rows, _flat(constraints.rows, n_c * nx), l)
                _gather(basis, _flat(constraints.basis, n_c * nx), l)
                if have_turned_away(monitor, monitor.rows, monitor.basis):
                    _lane(own, l).member = IDLE
    keep_basis(constraints, steps)
    independence, turn, h = constraints.independence, constraints.turn, steps.h
    for l in range(LANES):
        if accepted[l] != 0.0 and has_corner(_lane(own, l), independence[l], turn[l], abs(h[l])):
            _lane(own, l).member = IDLE


@part
def _accept(own, batch, run, steps, l):
    """Process an accepted step: output, the next step size, possibly the end."""
    lane, h, t = _lane(own, l), steps.h[l], steps.t_end[l]
    if steps.bad[l] != 0.0:
        lane.member = IDLE
        return
    if steps.watches_stiffness:
        run.stiff_count, run.nonstiff_count = lane.stiff_count, lane.nonstiff_count
        limit = record_at(run.method, TABLEAU).stiff_limit
        count_stiff(run, h, steps.stiffness[l], limit)
        lane.stiff_count, lane.nonstiff_count = run.stiff_count, run.nonstiff_count
    changed = 0.0 if address_of(own.constraints) == 0 else own.constraints.changed[l]
    steps.known[l] = 0.0 if changed > HARMLESS else 1.0
    if address_of(own.linear) != 0:
        own.linear.failures[l] = 0.0
    _store_output(own, batch, run, steps, lane, l, h, t)
    run.error_of_step, run.error_before, run.rejected = steps.size[l], lane.error_before, lane.rejected
    next_step_size(run, h)
    lane.h, lane.error_before, lane.rejected = run.h, run.error_before, run.rejected
    lane.t = t
    lane.steps += 1
    is_done = run.sign * (t - run.t_end) >= 0.0
    if lane.member != IDLE and own.watches != 0 and _is_suspicious(own, run, steps, lane, l, is_done):
        lane.member = IDLE
    elif lane.member != IDLE and is_done:
        k = lane.member
        batch.place = lane.place
        write_numbers(batch, k)
        batch.reasons[k] = finish_member(batch, run, k, _FINISHED)
        lane.member = IDLE


@part
def _is_suspicious(own, run, steps, lane, l, is_done):
    """Whether a member fails the checks of first-order problems at the end of a step or, if `is_done`, of the run."""
    watch = record_at(own.watches + _WATCH_SIZE * l, FIRST_ORDER)
    y = run.scratch
    _gather(y, steps.y, l)
    watch_sign(watch, y)
    if is_done:
        return watch.suspicious != 0
    run.steps, run.error_test_failures, run.newton_failures = lane.steps, lane.failures, 0
    return is_troubled(run, watch)


@part
def _store_output(own, batch, run, steps, lane, l, h, t):
    """Store the states at output times up to the end of the step."""
    times, states, is_ready = batch.times, batch.states[lane.member], False
    limit = run.t_end if run.sign * (t - run.t_end) > 0.0 else t
    n, place = run.n, lane.place
    while lane.next_time < batch.n_times and not run.sign * (times[lane.next_time] - limit) > 0.0:
        at = times[lane.next_time]
        if at == t:
            _gather(states[place, :n], steps.y, l)
        else:
            if not is_ready and address_of(own.linear) != 0:
                _linear_polynomial_of(run, steps, l, t, h)
            elif not is_ready and not _polynomial_of(batch, run, steps, lane, l, h):
                lane.member = IDLE
                return
            is_ready = True
            newton_polynomial(at, t, run.psi, differences(run), run.degree, states[place], run.slope)
        place += 1
        lane.next_time += 1
    lane.place = place


@part
def _polynomial_of(batch, run, steps, lane, l, h):
    """Write the polynomial of a lane's step to the record of single members; False if impossible."""
    tableau = record_at(run.method, TABLEAU)
    n, s = run.n, tableau.stages
    k, y = tableau.k, run.y
    write_numbers(batch, lane.member)
    _gather(differences(run)[0], steps.phi[0], l)
    _gather(y, steps.y, l)
    for i in range(s):
        _gather(k[i], steps.k[i], l)
    run.t = lane.t
    if tableau.dense_stages > 0 and dense_stages(run, lane.t, h) != 0:
        return False
    nodes = tableau.degree
    polynomial(run, h, y, k, tableau.inner, n, nodes)
    close_polynomial(run, h, nodes)
    return True


@part
def _linear_polynomial_of(run, steps, l, t, h):
    """Write the polynomial of a Rosenbrock step to the record of single members."""
    method = record_at(run.method, ROSENBROCK)
    _gather(differences(run)[0], steps.phi[0], l)
    _gather(run.y, steps.y, l)
    method.result = data_of(method.own)
    _gather(floats(method.result, (method.stages + 2) * run.n), steps.slopes.result, l)
    keep_polynomial(run, method, t, h)
