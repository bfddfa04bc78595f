/* Explicit Runge-Kutta steps for y' = f(t, y), whose last stage is the slope at the end; mechanisms are projected.
 * combine(i, ...) adds the slopes of stage i, and estimate those of the error. */

#define RATE(m, t, y, slope) slopes((real)(t), y, (m)->p, slope)

FUNCTION real derivative(const Member* m, int i) {
#if POSITIONS
  if (i < POSITIONS) return m->y[POSITIONS + i];
#endif
  return m->slope[i - POSITIONS];
}

#if POSITIONS
/* A part of the shortest of |q|/|v| and (|q|/|a|)^(1/2) that suits the tolerance; 0 if there is none. */
FUNCTION double mechanical_step(const Setting* s, const Member* m) {
  double q = 0, v = 0, a = 0, largest = 0, ratio = 0, tolerance = 0;
  for (int i = 0; i < POSITIONS; i++) {
    q = fmax(q, (double)fabs(m->y[i]));
    v = fmax(v, (double)fabs(m->y[POSITIONS + i]));
    a = fmax(a, (double)fabs(m->slope[i]));
    largest = fmax(largest, (double)s->atol[i]);
    ratio = fmax(ratio, s->atol[i] / fmax((double)s->rtol[i], 1e-14));
  }
  if (q > 0 && q <= largest) q = ratio;
  if (q == 0) return 0;
  const double speed = fmax(v / q, sqrt(a / q));
  for (int i = 0; i < POSITIONS; i++) tolerance = fmax(tolerance, s->rtol[i] + s->atol[i] / q);
  if (!(speed > 0 && speed < INFINITE)) return 0;
  return 0.1 * power((real)fmin(tolerance, 1.0), NUMBER(1.0 / (ORDER + 1))) / speed;
}
#else
#define mechanical_step(s, m) 0
#endif

/* The size of the first step (Brenan, Campbell, Petzold 5.2.4; Hairer, Norsett, Wanner II.4). */
FUNCTION double first_step(const Setting* s, const Member* m) {
  const double length = fabs(s->t1 - s->t0), sign = s->t1 > s->t0 ? 1 : -1;
  const double longest = fmin(0.1 * length, s->longest_step);
  if (s->first_step > 0) return sign * fmin(s->first_step, longest);
  double h = 1e-3 * length, size = 0, slope = 0;
  for (int i = 0; i < N; i++) {
    const double w = weight(s, m->y[i], i);
    size += (m->y[i] / w) * (m->y[i] / w);
    slope += (derivative(m, i) / w) * (derivative(m, i) / w);
  }
  size = sqrt(size);
  slope = sqrt(slope);
  if (slope / sqrt((double)N) > 0.5 / h && slope < INFINITE) h = 0.5 * sqrt((double)N) / slope;
  h = fmin(fmax(h, fmin(100 * 2.220446049250313e-16 * fmax(fabs(s->t0), fabs(s->t1)), length)), s->longest_step);
  const double mechanical = mechanical_step(s, m);
  if (mechanical > 0) return sign * fmin(mechanical, longest);
  if (size > 0 && slope > 0 && size / slope < INFINITE) return sign * fmin(fmax(0.01 * size / slope, h), longest);
  return sign * h;
}

/* On the constraints, with the slope there. */
FUNCTION int start(const Setting* s, Member* m) {
  int status = project((real)m->t, m->y, m->p, EXACT, 1, 0);
  if (status == 0) status = RATE(m, m->t, m->y, m->slope);
  if (status == 0) m->h = first_step(s, m);
  return status;
}

FUNCTION int attempt(const Setting* s, const Member* m, double h, Step* step, real* error) {
  int status = 0;
  UNROLL
  for (int i = 0; i < K; i++) step->k[0][i] = m->slope[i];
  UNROLL_STAGES
  for (int i = 1; i < STAGES; i++) {
    combine(i, m->y, step->k, (real)h, step->y);
    const int failed = RATE(m, m->t + NODES[i] * h, step->y, step->k[i]);
    status = status ? status : failed;
  }
  estimate(step->k, (real)h, step->moved);
  *error = size_of(s, step->moved, step->y, m->y);
  return status;
}

/* The end of the step is projected; its slope is the first one of the next step, unless that has moved it. */
FUNCTION int settle(const Setting* s, Member* m, double t, Step* step, int wanted) {
  int status = 0;
#if PROJECTS
  int moved = 0;
  real slope[K];
  if (ANY(wanted)) {
    UNROLL
    for (int i = 0; i < N; i++) step->moved[i] = -step->y[i];
    status = project((real)t, step->y, m->p, t == s->t1 ? EXACT : s->negligible, wanted, 1);
    UNROLL
    for (int i = 0; i < N; i++) step->moved[i] += step->y[i];
    moved = wanted && status == 0 && !(size_of(s, step->moved, m->y, m->y) <= HARMLESS);
    if (ANY(moved)) {
      const int failed = RATE(m, t, step->y, slope);
      if (moved) status = failed;
    }
  }
  UNROLL
  for (int i = 0; i < K; i++) if (moved && status == 0) m->slope[i] = slope[i];
#else
  const int moved = 0;
  UNROLL
  for (int i = 0; i < N; i++) step->moved[i] = 0;
#endif
  UNROLL
  for (int i = 0; i < K; i++) if (wanted && status == 0 && !moved) m->slope[i] = step->k[STAGES - 1][i];
  return status;
}
