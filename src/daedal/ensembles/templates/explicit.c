/* Explicit Runge-Kutta steps for y' = f(t, y), whose last stage is the slope at the end; mechanisms are projected.
 * combine(i, ...) adds the slopes of stage i, and estimate those of the error. */

#define RATE(m, t, y, slope) slopes((real)(t), y, (m)->p, slope)

/* On the constraints, with the slope there. */
FUNCTION int start(const Setting* s, Member* m) {
  int status = 0;
#if PROJECTS
  real change[N];
  for (int i = 0; i < N; i++) change[i] = -m->y[i];
  status = project((real)m->t, m->y, m->p, EXACT, 1, 0);
  for (int i = 0; i < N; i++) change[i] += m->y[i];
  if (status == 0 && !(size_of(s, change, m->y, m->y) <= s->largest_correction)) status = INCONSISTENT;
#endif
  if (status == 0) status = RATE(m, m->t, m->y, m->slope);
  if (status == 0) m->h = size_of_first_step(s, m);
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
  real slope[K] = {0};
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
  (void)s, (void)t;
  UNROLL
  for (int i = 0; i < N; i++) step->moved[i] = 0;
#endif
  UNROLL
  for (int i = 0; i < K; i++) if (wanted && status == 0 && !moved) m->slope[i] = step->k[STAGES - 1][i];
  return status;
}
