/* All runs. On a GPU, a thread that has finished its run takes the next one as soon as REFILL threads of its warp
 * have: steps of different runs go side by side, and few threads wait. */

#define ARGUMENTS                                                                                                   \
  const real *starts, const real *params, const real *rtol, const real *atol, const double *t_eval, real *outputs,   \
      real *ends, double *end_times, int *statuses, int *steps, int *rejections, int *fired, const int *order,       \
      unsigned int *next, double t0, double t1, double first_step, double longest_step, double negligible,           \
      double largest_correction, int max_steps, int n_eval, int count
#define SETTING                                                                                                     \
  {t0, t1, first_step, longest_step, (real)negligible, (real)largest_correction, max_steps, n_eval, (size_t)count,   \
   starts, params, rtol, atol, t_eval, outputs, ends, end_times, statuses, steps, rejections, fired}

#ifdef __CUDACC__
extern "C" __global__ void __launch_bounds__(BLOCK, LEAST_BLOCKS) run(ARGUMENTS) {
  const Setting s = SETTING;
  Member m = {{0}};
  m.status = FINISHED;
  int is_waiting = 1; /* for a run, until there are none */
  for (;;) {
    const unsigned int idle = __ballot_sync(0xffffffffu, m.status != RUNNING && is_waiting);
    const unsigned int busy = __ballot_sync(0xffffffffu, m.status == RUNNING);
    if (idle && (__popc(idle) >= REFILL || !busy)) {
      if (m.status != RUNNING && is_waiting) {
        const unsigned int k = atomicAdd(next, 1u);
        if (k < (unsigned int)count) begin(&s, &m, order ? order[k] : k); else is_waiting = 0;
      }
    } else if (!busy) break;
    advance(&s, &m);
  }
}
#else
void run(ARGUMENTS) {
  const Setting s = SETTING;
  (void)next;
  for (int k = 0; k < count; k++) {
    Member m;
    begin(&s, &m, order ? order[k] : k);
    while (m.status == RUNNING) advance(&s, &m);
  }
}
#endif
