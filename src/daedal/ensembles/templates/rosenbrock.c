/* Rosenbrock steps for M y' = f(t, y): whole steps are emitted code (rosenbrock_step), elimination included. */

#if ALGEBRAIC
/* Variables that only algebraic equations determine are found from them by Newton's method. */
FUNCTION int find_algebraic(const Setting* s, Member* m, real largest_correction) {
  for (int iteration = 0;; iteration++) {
    real change[N], size = 0;
    const int status = correct_algebraic((real)m->t, m->y, m->p, change);
    if (status != 0) return status;
    UNROLL
    for (int i = 0; i < N; i++) {
      const real x = (real)fabs(change[i]) * RECIPROCAL(weight(s, m->y[i], i));
      size = MAXIMUM(size, x);
      m->y[i] += change[i];
    }
    if (iteration == 0 && !(size <= largest_correction)) return INCONSISTENT;
    if (size <= NUMBER(1e-3)) return 0;
    if (iteration == MOST_CORRECTIONS || !(size < INFINITE)) return NOT_CONVERGED;
  }
}
#else
#define find_algebraic(s, m, largest_correction) 0
#endif

FUNCTION int start(const Setting* s, Member* m) {
  const int unsolved = find_algebraic(s, m, s->largest_correction);
  if (unsolved != 0) return unsolved;
  /* The increment of a very short step is h gamma y'. */
  Step step;
  const real h = (real)((s->t1 - s->t0) * 1e-16), share = 1 / (h * NUMBER(GAMMA));
  const int status = rosenbrock_step((real)m->t, m->y, m->p, &h, step.y, &step.k[0][0], step.moved);
  if (status == RAISES) return status;
  for (int i = 0; i < N; i++) m->slope[i] = step.k[0][i] * share;
  m->h = size_of_first_step(s, m);
  return 0;
}

FUNCTION int attempt(const Setting* s, const Member* m, double h, Step* step, real* error) {
  const real size = (real)h;
  const int status = rosenbrock_step((real)m->t, m->y, m->p, &size, step->y, &step->k[0][0], step->moved);
  const int inside = m->errors < STUBBORN;
  UNROLL
  for (int i = 0; i < N; i++) {
    const real last = (real)fabs(step->k[STAGES - 1][i]), defect = (real)fabs(step->moved[i]);
    step->moved[i] = inside ? MAXIMUM(last, defect) : last;
  }
  *error = size_of(s, step->moved, step->y, m->y);
  return status;
}

FUNCTION int settle(const Setting* s, Member* m, double t, Step* step, int wanted) {
  (void)s, (void)m, (void)t, (void)wanted;
  UNROLL
  for (int i = 0; i < N; i++) step->moved[i] = 0;
  return 0;
}
