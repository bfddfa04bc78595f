/* One run of an ensemble: steps with an error estimate, output between them, events that end the run.
 *
 * Before this stand: the prelude; N, P, E (sizes of state, parameters, switching functions), STAGES, ORDER and the
 * tableau; BEND, the polynomial that is 1 at the end of a step and 0 at the other nodes of its polynomial; the functions
 * of the problem; the rules for the size of steps (daedal/methods/step_size.py). After it: start, attempt and settle of the method, then the kernel.
 * Of mechanisms, whose state is (q, v, ...), slopes are kept without q' = v: K = N - POSITIONS of them.
 * All threads of a warp go through a step together, those whose step was rejected or whose run is over as well: what is
 * long is called once for all of them, and each keeps what is meant for it.
 * Arrays of an ensemble have the member as their last index: entry i of member k of `count` stands at i * count + k. */

/* A run ends with a number of daedal.kernels.endings. What is evaluated returns 0, RAISES, WEAK_PIVOT or one of these. */
enum { RUNNING = 0, NOT_CONVERGED = 3, NOT_FINITE = 4 };

typedef struct {
  double t0, t1, first_step, longest_step;
  real negligible;  /* size of a correction, relative to the state, whose square does not matter in a step */
  real largest_correction;  /* of a start, in units of the tolerance */
  int max_steps, n_eval;
  size_t count;
  const real *starts, *params, *rtol, *atol;
  const double* t_eval;
  real *outputs, *ends;
  double* end_times;
  int *statuses, *steps, *rejections, *fired;
} Setting;

typedef struct {
  real y[N], slope[K], p[P + 1], switching[E + 1];
  double t, h;
  real error_before;
  int status, steps, rejections, was_rejected, failures, errors, next_output, fired;
  int occurrences[E + 1];
  size_t id;
} Member;

/* Slopes or increments of the stages, y at the end of the step, and by how much a projection has moved it. */
typedef struct { real k[STAGES][K], y[N], moved[N]; } Step;

FUNCTION int ending_of(int status) {
  if (status == INCONSISTENT) return status;
  if (status == RAISES) return CALLBACK_RAISED;
  return status == WEAK_PIVOT ? MATRIX_SINGULAR : status == NOT_CONVERGED ? NEWTON_FAILED : UNEVALUABLE;
}

FUNCTION real weight(const Setting* s, real y, int i) { return s->rtol[i] * (real)fabs(y) + s->atol[i]; }

/* The norm of a vector in units of the tolerance at the larger of two values. */
FUNCTION real size_of(const Setting* s, const real* vector, const real* y, const real* other) {
  real total = 0;
  UNROLL
  for (int i = 0; i < N; i++) {
    const real a = (real)fabs(y[i]), b = (real)fabs(other[i]), larger = MAXIMUM(a, b);
    const real x = (real)fabs(vector[i]) * RECIPROCAL(weight(s, larger, i));
#if MAXIMUM_NORM
    total = MAXIMUM(total, x);
#else
    total += x * x;
#endif
  }
#if MAXIMUM_NORM
  return total;
#else
  return (real)sqrt(total / N);
#endif
}

FUNCTION real polynomial(const real* coefficients, real theta) {
  real w = coefficients[DEGREE - 1];
  UNROLL
  for (int d = DEGREE - 2; d >= 0; d--) w = w * theta + coefficients[d];
  return w * theta;
}

/* y(t + theta h), by the polynomial of the step; its end is where the projection has moved it. */
FUNCTION void interpolate(const Member* m, const Step* step, real h, real theta, real* y) {
  const real bend = polynomial(BEND, theta);
  UNROLL
  for (int i = 0; i < N; i++) y[i] = m->y[i] + bend * step->moved[i];
#if POSITIONS
  UNROLL
  for (int i = 0; i < POSITIONS; i++) y[i] += theta * h * m->y[POSITIONS + i];
#endif
  for (int j = 0; j < STAGES; j++) {
    const real w = polynomial(DENSE[j], theta) * (SLOPES ? h : 1);
    UNROLL
    for (int i = 0; i < K; i++) y[POSITIONS + i] += w * step->k[j][i];
#if POSITIONS
    const real w_positions = polynomial(DENSE_POSITIONS[j], theta) * h * h;
    UNROLL
    for (int i = 0; i < POSITIONS; i++) y[i] += w_positions * step->k[j][i];
#endif
  }
}

FUNCTION void write_point(const Setting* s, size_t row, size_t id, const real* y, real* target) {
  for (int i = 0; i < N; i++) target[(row * N + i) * s->count + id] = y[i];
}

#if PROJECTS
#define EXACT ((real)sqrt(0.5 * SPACING) / 10) /* the next correction would be below round-off */

/* Newton's method for the positions, in the norm of M; then velocities. Threads of a warp may do it together; those for
 * whom it is not wanted keep their y. */
FUNCTION int project(real t, real* y, const real* p, real negligible, int wanted, int together) {
  real change[POSITIONS];
  int status = 0;
#if POSITION_CONSTRAINTS
  int open = wanted;
  for (int iteration = 0; together ? ANY(open) : open; iteration++) {
    const int failed = correct_positions(t, y, p, change);
    real size = LENGTH, moved = 0;
    UNROLL
    for (int i = 0; i < POSITIONS; i++) {
      const real a = (real)fabs(y[i]), b = (real)fabs(change[i]);
      size = MAXIMUM(size, a);
      moved = MAXIMUM(moved, b);
    }
    if (open) {
      const int done = moved <= negligible * size, finite = moved < INFINITE;
      UNROLL
      for (int i = 0; i < POSITIONS; i++) if (finite) y[i] += change[i];
      if (failed) status = failed;
      else if (!finite || (!done && iteration == MOST_CORRECTIONS)) status = NOT_CONVERGED;
      open = !done && status == 0;
    }
  }
#else
  (void)negligible, (void)together;
#endif
  const int failed = correct_velocities(t, y, p, change);
  UNROLL
  for (int i = 0; i < POSITIONS; i++) if (wanted) y[POSITIONS + i] += change[i];
  if (!wanted) return 0;
  return status == 0 || failed == WEAK_PIVOT ? failed : status; /* bad pivots are why Newton's method fails */
}
#else
#define EXACT 0
FUNCTION int project(real t, real* y, const real* p, real negligible, int wanted, int together) {
  (void)t, (void)y, (void)p, (void)negligible, (void)wanted, (void)together;
  return 0;
}
#endif

/* The output between t and t_new, the end of the step or the place of an event. */
#if OUTPUTS
FUNCTION void write_outputs(const Setting* s, Member* m, const Step* step, double h, double t_new) {
  const double sign = h > 0 ? 1 : -1;
  while (m->next_output < s->n_eval && sign * (s->t_eval[m->next_output] - t_new) <= 0) {
    const double t = s->t_eval[m->next_output];
    real y[N];
    interpolate(m, step, (real)h, (real)((t - m->t) / h), y);
    project((real)t, y, m->p, EXACT, 1, 0);
    write_point(s, m->next_output, m->id, y, s->outputs);
    m->next_output++;
  }
}
#else
#define write_outputs(s, m, step, h, t_new) (void)0
#endif

#if E
FUNCTION int crosses(real before, real after, int direction) {
  if (direction >= 0 && before < 0 && after >= 0) return 1;
  return direction <= 0 && before > 0 && after <= 0;
}

/* The first place in the step behind the zero of switching function k: bisection and the secant in turn. */
FUNCTION real locate_zero(const Member* m, const Step* step, double h, int k, real before, real after) {
  real low = 0, high = 1, at_low = before, at_high = after, values[E], y[N];
  for (int i = 0; i < 100 && high - low > 4 * NUMBER(SPACING); i++) {
    real theta = low + (high - low) / 2;
    if (i % 3 != 2) {
      const real secant = low - at_low * (high - low) / (at_high - at_low), rim = (high - low) / 1000;
      theta = secant > low + rim ? (secant < high - rim ? secant : high - rim) : low + rim;
      if (!(theta > low && theta < high)) theta = low + (high - low) / 2;
    }
    if (!(theta > low && theta < high)) break;
    interpolate(m, step, (real)h, theta, y);
    switching_functions((real)(m->t + theta * h), y, m->p, values);
    if ((values[k] < 0) == (before < 0) && values[k] != 0) low = theta, at_low = values[k];
    else high = theta, at_high = values[k];
  }
  return high;
}

/* Whether an event ends the run in this step; *place is where. */
FUNCTION int look_for_events(Member* m, const Step* step, double t, double h, real* place) {
  real after[E], y[N];
  int found = 0;
  *place = 2;
  UNROLL
  for (int i = 0; i < N; i++) y[i] = step->y[i];
  if (switching_functions((real)t, y, m->p, after) != 0) return 0;
  for (int k = 0; k < E; k++) {
    const real before = m->switching[k];
    if (crosses(before, after[k], DIRECTIONS[k])) {
      m->occurrences[k]++;
      if (m->occurrences[k] >= OCCURRENCES[k]) {
        const real theta = locate_zero(m, step, h, k, before, after[k]);
        if (theta < *place) *place = theta, m->fired = k, found = 1;
      }
      m->switching[k] = -before;
    }
    if (after[k] != 0) m->switching[k] = after[k];
  }
  return found;
}
#endif

FUNCTION void derivatives(const Member* m, real* result) {
#if POSITIONS
  for (int i = 0; i < POSITIONS; i++) result[i] = m->y[POSITIONS + i];
#endif
  for (int i = 0; i < K; i++) result[POSITIONS + i] = m->slope[i];
}

#if POSITIONS
FUNCTION double motion(const Setting* s, const Member* m) {
  double q = 0, v = 0, a = 0, largest = 0, ratio = 0, tolerance = 0;
  for (int i = 0; i < POSITIONS; i++) {
    q = fmax(q, (double)fabs(m->y[i]));
    v = fmax(v, (double)fabs(m->y[POSITIONS + i]));
    a = fmax(a, (double)fabs(m->slope[i]));
    largest = fmax(largest, (double)s->atol[i]);
    ratio = fmax(ratio, s->atol[i] / fmax((double)s->rtol[i], 1e-14));
  }
  q = usual_position(q, largest, ratio);
  if (q == 0) return 0;
  for (int i = 0; i < POSITIONS; i++) tolerance = fmax(tolerance, s->rtol[i] + s->atol[i] / q);
  return step_by_motion(q, v, a, tolerance);
}
#else
#define motion(s, m) 0
#endif

/* The size of the first step. */
FUNCTION double size_of_first_step(const Setting* s, const Member* m) {
  const double length = fabs(s->t1 - s->t0), sign = s->t1 > s->t0 ? 1 : -1;
  if (s->first_step > 0) return sign * s->first_step;
  double size = 0, slope = 0;
  real rate[N];
  derivatives(m, rate);
  for (int i = 0; i < N; i++) {
    const double w = weight(s, m->y[i], i);
    size += (m->y[i] / w) * (m->y[i] / w);
    slope += (rate[i] / w) * (rate[i] / w);
  }
  size = sqrt(size);
  slope = sqrt(slope);
  const double shortest = fmin(SPACINGS * ROUNDOFF * fmax(fabs(s->t0), fabs(s->t1)), length);
  const double by_slope = step_by_slope(length, slope / sqrt((double)N), shortest, s->longest_step);
  return sign * first_step(motion(s, m), step_by_size(size, slope), by_slope, length, s->longest_step);
}

FUNCTION int start(const Setting* s, Member* m);
FUNCTION int attempt(const Setting* s, const Member* m, double h, Step* step, real* error);
FUNCTION int settle(const Setting* s, Member* m, double t, Step* step, int wanted);

/* The state of a member that ends here. */
FUNCTION void finish(const Setting* s, Member* m, int status) {
  m->status = status;
  write_point(s, 0, m->id, m->y, s->ends);
  s->end_times[m->id] = m->t;
  s->statuses[m->id] = status;
  s->steps[m->id] = m->steps;
  s->rejections[m->id] = m->rejections;
  s->fired[m->id] = m->fired;
}

FUNCTION void begin(const Setting* s, Member* m, size_t id) {
  m->id = id;
  m->t = s->t0;
  m->error_before = LEAST_BEFORE;
  m->status = RUNNING;
  m->steps = m->rejections = m->was_rejected = m->failures = m->errors = m->next_output = 0;
  m->fired = -1;
  for (int i = 0; i < N; i++) m->y[i] = s->starts[i * s->count + id];
  for (int i = 0; i < P; i++) m->p[i] = s->params[i * s->count + id];
  for (int i = 0; i < N; i++) {
    if (!(weight(s, m->y[i], i) > 0)) {
      finish(s, m, m->y[i] == m->y[i] ? ZERO_WEIGHT : UNEVALUABLE);
      return;
    }
  }
  const int status = start(s, m);
  if (status != 0) {
    finish(s, m, ending_of(status));
    return;
  }
#if E
  for (int k = 0; k < E; k++) m->occurrences[k] = 0;
  switching_functions((real)m->t, m->y, m->p, m->switching);
#endif
#if OUTPUTS
  if (s->t_eval[0] == s->t0) {
    write_point(s, 0, id, m->y, s->outputs);
    m->next_output = 1;
  }
#endif
}

FUNCTION void choose_step(Member* m, double h, real error) {
  const real least = LEAST_BEFORE;
  m->h = h * growth(error, m->error_before, m->was_rejected);
  m->error_before = MAXIMUM(error, least);
  m->was_rejected = 0;
}

FUNCTION void reject(Member* m, double h, int status, real error) {
  m->was_rejected = 1;
  m->rejections++;
  if (status != 0) {
    m->failures++;
    m->h = FAILED * h;
    if (MOST_FAILURES && m->failures >= MOST_FAILURES) m->status = ending_of(status);
    return;
  }
  m->errors++;
  m->h = h * shrinkage(error);
  if (MOST_FAILURES && m->errors >= 2 * MOST_FAILURES) m->status = ERROR_TEST_FAILED;
}

FUNCTION void take_over(Member* m, const Step* step, double t) {
  m->t = t;
  m->steps++;
  m->failures = m->errors = 0;
  UNROLL
  for (int i = 0; i < N; i++) m->y[i] = step->y[i];
}

FUNCTION void accepted(const Setting* s, Member* m, Step* step, double t, double h, real error) {
#if E
  real theta;
  if (look_for_events(m, step, t, h, &theta)) {
    const double t_event = theta < 1 ? m->t + theta * h : t;
    real y[N];
    interpolate(m, step, (real)h, theta, y);
    project((real)t_event, y, m->p, EXACT, 1, 0);
    write_outputs(s, m, step, h, t_event);
    UNROLL
    for (int i = 0; i < N; i++) step->y[i] = y[i];
    take_over(m, step, t_event);
    finish(s, m, EVENT_STOP);
    return;
  }
#endif
  write_outputs(s, m, step, h, t);
  take_over(m, step, t);
  choose_step(m, h, error);
  if (t == s->t1) finish(s, m, FINISHED);
  else if (m->steps >= s->max_steps) finish(s, m, MAX_STEPS);
}

/* One attempt of a step. */
FUNCTION void advance(const Setting* s, Member* m) {
  const double rest = s->t1 - m->t, sign = rest > 0 ? 1 : -1;
  const double h = step_within(m->h, m->t, s->t1, s->longest_step, sign), t = end_of_step(h, m->t, s->t1);
  Step step;
  real error = 0;
  int status = attempt(s, m, h, &step, &error);
  if (status == 0 && !(error < INFINITE)) status = NOT_FINITE;
  int good = m->status == RUNNING && status == 0 && error <= 1;
  const int unsettled = settle(s, m, t, &step, good);
  if (m->status != RUNNING) return;
  if (good && unsettled == 0) {
    accepted(s, m, &step, t, h, error);
    return;
  }
  if (good) status = unsettled;
  reject(m, h, status, error);
  if (m->status == RUNNING && !(fabs(m->h) >= least_step(m->t, rest))) m->status = status ? ending_of(status) : ERROR_TEST_FAILED;
  if (m->status != RUNNING) finish(s, m, m->status);
}
