/* A model for other programs: one instance with its state, parameters, inputs and outputs, stepped by the integrator.
 *
 * Before this stand the integrator with its method, the emitted functions rates, model_outputs, partials,
 * reset_map, next_mode, and these macros and tables: N, P, E (state, parameters, switching functions), N_STATES and
 * STATES (entries of the state that are integrated), N_OUTPUTS, N_INPUTS and INPUTS (entries of the parameters),
 * N_MODES, GUARDS (of each mode), ACCUMULATION (mode that follows where transitions accumulate, or -1),
 * PARTIALS (whether partials exists), ME_PROJECTS. Value references are: 0 for the time; from FIRST_STATE the state,
 * from FIRST_RATE the derivatives, from FIRST_PARAMETER parameters and inputs, from FIRST_OUTPUT the outputs, from
 * FIRST_INDICATOR the event indicators, MODE_REFERENCE for the mode. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

enum {
  FIRST_STATE = 1,
  FIRST_RATE = FIRST_STATE + N,
  FIRST_PARAMETER = FIRST_RATE + N_STATES,
  FIRST_OUTPUT = FIRST_PARAMETER + P,
  FIRST_INDICATOR = FIRST_OUTPUT + N_OUTPUTS,
  MODE_REFERENCE = FIRST_INDICATOR + E
};

enum { CHATTERING = 100 }; /* events that advance by less than LITTLE of a communication step */
#define LITTLE 1e-3
#define AT_ONCE (IS_COSIMULATION ? 1e-10 : 1e-6) /* time between transitions, relative to the time, that counts as none */

#define NO_TIME 1e-13 /* relative to the time */

enum { DISCARDED = 2, ERROR = 3 }; /* as statuses of FMI; 0 is success */
#define TRY(call) do { const int failure = (call); if (failure) return failure; } while (0)

/* All that changes while a model runs: copied as a whole to save and restore it. */
typedef struct {
  Member m;
  double start_time, event_time;
  real y[N], p[P + 1], rtol[N];
  int is_started, is_over, is_changed, is_stale, events_at_once;
  real rates[N_STATES + 1], outputs[N_OUTPUTS + 1], indicators[E + 1];
} Model;

typedef struct {
  Model model;
  Setting setting;
  real atol[N], ends[N];
  double end_time;
  int status, steps, rejections, fired;
  char message[256];
  char* name;
  void* environment;
  void (*log)(void* instance, int status, const char* text);
  void* callbacks;
} Instance;

static const char IDENTITY[] = MODEL_TOKEN;

static int report(Instance* c, int status, const char* format, va_list arguments) {
  vsnprintf(c->message, sizeof c->message, format, arguments);
  if (c->log) c->log(c, status, c->message);
  return status;
}

static int fail(Instance* c, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  report(c, ERROR, format, arguments);
  va_end(arguments);
  return ERROR;
}

/* In Model Exchange the importing program may try other values: the evaluation is discarded. */
static int fail_at(Instance* c, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int status = report(c, IS_COSIMULATION ? ERROR : DISCARDED, format, arguments);
  va_end(arguments);
  return status;
}

static const char* words_of(int ending) {
  switch (ending) {
    case ZERO_WEIGHT: return "a tolerance and the value that it belongs to are zero";
    case ERROR_TEST_FAILED: return "the error is above the tolerance however short a step is, as near a singularity";
    case CALLBACK_RAISED: return "a function of the model raises an error there";
    case MATRIX_SINGULAR: return "the equations are singular there";
    case NEWTON_FAILED: case INCONSISTENT: return "constraints or algebraic equations have no solution near the values";
    default: return "a value is not finite";
  }
}

static int evaluation_failed(Instance* c, int status) {
  return fail_at(c, "the model cannot be evaluated at t = %.10g: %s", c->model.m.t, words_of(ending_of(status)));
}

static void set_defaults(Instance* c) {
  Model* w = &c->model;
  memset(w, 0, sizeof *w);
  for (int i = 0; i < N; i++) w->y[i] = START_VALUES[i];
  for (int i = 0; i < P; i++) w->p[i] = PARAMETER_VALUES[i];
  w->p[P] = START_MODE;
  w->start_time = START_TIME;
  w->m.t = START_TIME;
  w->event_time = -INFINITY;
  w->is_stale = 1;
  for (int i = 0; i < N; i++) w->rtol[i] = RTOL[i], c->atol[i] = ATOL[i];
  (void)INPUTS, (void)GUARDS, (void)IMMEDIATE, (void)ACCUMULATION; /* of which some models use none */
  c->setting.max_steps = 2147483647;
  c->setting.longest_step = INFINITY;
  c->setting.first_step = 0;
  c->setting.largest_correction = INFINITE;
  c->setting.negligible = NEGLIGIBLE;
  c->setting.count = 1;
  c->setting.starts = w->y;
  c->setting.params = w->p;
  c->setting.rtol = w->rtol;
  c->setting.atol = c->atol;
  c->setting.ends = c->ends;
  c->setting.end_times = &c->end_time;
  c->setting.statuses = &c->status;
  c->setting.steps = &c->steps;
  c->setting.rejections = &c->rejections;
  c->setting.fired = &c->fired;
}

static Instance* new_instance(const char* name, const char* token) {
  if (!token || strcmp(token, IDENTITY) != 0) return NULL;
  Instance* c = (Instance*)calloc(1, sizeof(Instance));
  if (!c) return NULL;
  set_defaults(c);
  c->name = (char*)malloc(strlen(name) + 1);
  if (!c->name) { free(c); return NULL; }
  strcpy(c->name, name);
  return c;
}

static void free_instance(Instance* c) {
  if (c) free(c->name), free(c);
}

FUNCTION int mode_of(const Model* w) { return (int)w->m.p[P]; }

/* The slope, or the algebraic variables, after values have changed; project_it puts positions on the constraints. */
static int refresh(Instance* c, int project_it) {
  Model* w = &c->model;
  int status = 0;
#if PROJECTS
  if (project_it) status = project((real)w->m.t, w->m.y, w->m.p, EXACT, 1, 0);
#else
  (void)project_it;
#endif
#if SLOPES
  if (status == 0) status = RATE(&w->m, w->m.t, w->m.y, w->m.slope);
#else
  if (status == 0) status = find_algebraic(&c->setting, &w->m, INFINITE);
#endif
  w->is_changed = 0;
  w->is_stale = 1;
  return status == 0 ? 0 : evaluation_failed(c, status);
}

#if E
/* Values of the switching functions from which crossings are judged: those that are zero, up to round-off, take the
 * sign of what follows. */
static void begin_watch(Model* w) {
  const double h = 1e-7 * fmax(1e-3, fmin(1.0, fabs(w->m.h)));
  real now[E], y[N], ahead[E], rate[N] = {0};
  for (int k = 0; k < E; k++) w->m.occurrences[k] = 0;
  if (switching_functions((real)w->m.t, w->m.y, w->m.p, now) != 0) return;
  if (SLOPES) derivatives(&w->m, rate);
  for (int i = 0; i < N; i++) y[i] = w->m.y[i] + (real)h * rate[i];
  const int known = switching_functions((real)(w->m.t + h), y, w->m.p, ahead) == 0;
  for (int k = 0; k < E; k++) {
    const int zero = fabs(now[k]) <= 1e-9 * (1 + fabs(ahead[k]));
    w->m.switching[k] = zero && known && SLOPES ? (ahead[k] >= now[k] ? 1 : -1) * fmax(fabs(now[k]), 1e-300) : now[k];
  }
}
#endif

#if N_MODES > 1
static int take_transition(Instance* c, int guard);

/* Transitions whose guards lie on the wrong side where a mode begins. */
static int settle_mode(Instance* c) {
  for (int count = 0; count < 100; count++) {
    int fired = -1;
    begin_watch(&c->model);
    for (int k = 0; k < GUARDS[mode_of(&c->model)] && fired < 0; k++) {
      if (IMMEDIATE[mode_of(&c->model)][k] && c->model.m.switching[k] < 0) fired = k;
    }
    if (fired < 0) return 0;
    TRY(take_transition(c, fired));
  }
  return fail(c, "transitions follow each other without end at t = %.10g", c->model.m.t);
}

static int take_transition(Instance* c, int guard) {
  Model* w = &c->model;
  real y[N];
  const int mode = mode_of(w);
  int status = 0, target;
  if (w->m.t - w->event_time <= AT_ONCE * fmax(1.0, fabs(w->m.t))) w->events_at_once++;
  else w->events_at_once = 0;
  w->event_time = w->m.t;
  if (w->events_at_once >= 2 && ACCUMULATION[mode] >= 0) {
    w->m.p[P] = ACCUMULATION[mode];
    return refresh(c, 1);
  }
  if (w->events_at_once > 1000) return fail(c, "transitions accumulate at t = %.10g", w->m.t);
  for (int i = 0; i < N; i++) y[i] = w->m.y[i];
  target = next_mode(mode, guard, w->m.t, w->m.y, w->m.p);
  status = reset_map(mode, guard, (real)w->m.t, w->m.y, w->m.p, y);
  if (status != 0) return evaluation_failed(c, status);
  if (target < 0 || target >= N_MODES) return fail(c, "no mode follows at t = %.10g", w->m.t);
  for (int i = 0; i < N; i++) w->m.y[i] = y[i];
  w->m.p[P] = target;
  return refresh(c, 1);
}
#endif

/* Values and parameters as they were set, made consistent; the run begins. */
static int begin_run(Instance* c, double stop) {
  Model* w = &c->model;
  c->setting.t0 = w->start_time;
  c->setting.t1 = stop > w->start_time ? stop : w->start_time + 1;
  w->m.p[P] = w->p[P];
  begin(&c->setting, &w->m, 0);
  if (w->m.status != RUNNING) return fail(c, "the model cannot be started: %s", words_of(w->m.status));
  w->is_started = 1;
  w->is_stale = 1;
  w->event_time = -INFINITY;
#if N_MODES > 1
  TRY(refresh(c, 1));
  return settle_mode(c);
#elif E
  begin_watch(w);
#endif
  return 0;
}

/* An event at the current time: a transition, or a switch within the functions. */
static int handle_event(Instance* c) {
  Model* w = &c->model;
#if N_MODES > 1
  const int fired = w->m.fired;
  w->m.fired = -1;
  if (fired < GUARDS[mode_of(w)]) {
    TRY(take_transition(c, fired));
    return settle_mode(c);
  }
#endif
  w->m.fired = -1;
  TRY(refresh(c, 0));
#if E
  begin_watch(w);
#endif
  return 0;
}

/* To t_end, exactly. */
FUNCTION int advance_to(Instance* c, double t_end) {
  Model* w = &c->model;
  const double length = t_end - w->m.t;
  double since = w->m.t;
  int events = 0;
  c->setting.t1 = t_end;
  if (w->is_changed) {
    TRY(refresh(c, 0));
#if N_MODES > 1
    TRY(settle_mode(c));
#elif E
    begin_watch(w);
#endif
  }
  w->is_stale = 1;
  w->m.steps = 0;
  while (w->m.t < t_end) {
    if (t_end - w->m.t <= NO_TIME * fmax(fabs(t_end), fabs(w->m.t))) { /* after an event: nothing moves in it */
      w->m.t = t_end;
      break;
    }
    w->m.status = RUNNING;
    w->m.failures = w->m.errors = 0;
    if (!(fabs(w->m.h) > 0) || !(fabs(w->m.h) < INFINITY)) w->m.h = t_end - w->m.t;
    while (w->m.status == RUNNING) advance(&c->setting, &w->m);
    if (w->m.status == FINISHED) break;
    if (w->m.status != EVENT_STOP) {
      return fail(c, "the integration ends at t = %.10g: %s; start values, parameters or inputs must change", w->m.t,
                  words_of(w->m.status));
    }
    if (++events % CHATTERING == 0) {
      if (w->m.t - since < LITTLE * length) {
        return fail(c, "events follow each other without end at t = %.10g, as where a solution slides along a switch: "
                    "state what happens there as a mode of its own", w->m.t);
      }
      since = w->m.t;
    }
    TRY(handle_event(c));
  }
  w->m.status = RUNNING;
#if !SLOPES
  const int status = find_algebraic(&c->setting, &w->m, INFINITE);
  if (status != 0) return evaluation_failed(c, status);
#endif
  for (int i = 0; i < N; i++) if (!(fabs(w->m.y[i]) < INFINITY)) return evaluation_failed(c, NOT_FINITE);
  return 0;
}

/* A communication step. */
FUNCTION int step_from(Instance* c, double t, double h) {
  const double now = c->model.m.t;
  if (!c->model.is_started) return fail(c, "a step is possible after the initialisation only");
  if (c->model.is_over) return fail(c, "the simulation is terminated: reset the instance to use it again");
  if (!(h > 0 && h < INFINITY)) return fail(c, "the step size must be positive and finite, got %g", h);
  if (!(fabs(t - now) <= 1e-9 * fmax(h, fabs(t))))
    return fail(c, "a step starts at t = %.17g, but the model is at %.17g", t, now);
  return advance_to(c, t + h);
}

static int set_experiment(Instance* c, int has_tolerance, double tolerance, double start) {
  Model* w = &c->model;
  if (!(fabs(start) < INFINITY)) return fail(c, "the start time must be finite, got %g", start);
  if (has_tolerance && !(tolerance > 0 && tolerance < INFINITY))
    return fail(c, "the tolerance must be positive and finite, got %g", tolerance);
  for (int i = 0; has_tolerance && i < N; i++) w->rtol[i] = (real)tolerance;
  w->start_time = w->m.t = start;
  return 0;
}

/* Derivatives, outputs and event indicators at the current values. */
static int update(Instance* c) {
  Model* w = &c->model;
  if (!w->is_stale && !w->is_changed) return 0;
  if (!w->is_started) {
    for (int i = 0; i < N; i++) w->m.y[i] = w->y[i];
    for (int i = 0; i <= P; i++) w->m.p[i] = w->p[i];
    w->m.t = w->start_time;
  }
  if (w->is_changed || !w->is_started) TRY(refresh(c, !w->is_started));
  const int failed = rates((real)w->m.t, w->m.y, w->m.p, w->rates);
  const int unknown = model_outputs((real)w->m.t, w->m.y, w->m.p, w->outputs);
  if (failed || unknown) return evaluation_failed(c, failed ? failed : unknown);
#if E
  if (switching_functions((real)w->m.t, w->m.y, w->m.p, w->indicators) != 0) return evaluation_failed(c, RAISES);
#endif
  w->is_stale = 0;
  return 0;
}

static int get_number(Instance* c, unsigned int reference, double* value) {
  Model* w = &c->model;
  const real* y = w->is_started ? w->m.y : w->y;
  const real* p = w->is_started ? w->m.p : w->p;
  if (reference == 0) *value = w->is_started ? w->m.t : w->start_time;
  else if (reference < FIRST_RATE) {
#if ALGEBRAIC || PROJECTS
    TRY(update(c));
    y = w->m.y;
#endif
    *value = y[reference - FIRST_STATE];
  } else if (reference >= FIRST_PARAMETER && reference < FIRST_OUTPUT) *value = p[reference - FIRST_PARAMETER];
  else if (reference < MODE_REFERENCE) {
    TRY(update(c));
    if (reference < FIRST_PARAMETER) *value = w->rates[reference - FIRST_RATE];
    else if (reference < FIRST_INDICATOR) *value = w->outputs[reference - FIRST_OUTPUT];
    else *value = w->indicators[reference - FIRST_INDICATOR];
  } else return fail(c, "value reference %u is not a variable of floating-point type", reference);
  return 0;
}

static int set_number(Instance* c, unsigned int reference, double value) {
  Model* w = &c->model;
  if (!(fabs(value) < INFINITY)) return fail(c, "value reference %u must be a finite number, got %g", reference, value);
  if (reference >= FIRST_STATE && reference < FIRST_RATE) {
    (w->is_started ? w->m.y : w->y)[reference - FIRST_STATE] = value;
  } else if (reference >= FIRST_PARAMETER && reference < FIRST_OUTPUT) {
    real* place = &(w->is_started ? w->m.p : w->p)[reference - FIRST_PARAMETER];
    if (*place == value) return 0;
    *place = value;
  } else return fail(c, "value reference %u cannot be set", reference);
  w->is_changed = w->is_stale = 1;
  return 0;
}

/* The time of Model Exchange. */
FUNCTION int set_time(Instance* c, double t) {
  Model* w = &c->model;
  if (!(fabs(t) < INFINITY)) return fail(c, "the time must be finite, got %g", t);
  w->m.t = t;
  if (!w->is_started) w->start_time = t;
  w->is_changed = w->is_stale = 1;
  return 0;
}

#define WRONG_SIZE "%u values are given or requested, but there are %d"

FUNCTION int set_states(Instance* c, const double* x, size_t n) {
  if (n != N_STATES) return fail(c, WRONG_SIZE, (unsigned)n, N_STATES);
  for (int i = 0; i < N_STATES; i++) TRY(set_number(c, FIRST_STATE + STATES[i], x[i]));
  return 0;
}

FUNCTION int get_states(Instance* c, double* x, size_t n) {
  const real* y = c->model.is_started ? c->model.m.y : c->model.y;
  if (n != N_STATES) return fail(c, WRONG_SIZE, (unsigned)n, N_STATES);
  for (int i = 0; i < N_STATES; i++) x[i] = y[STATES[i]];
  return 0;
}

FUNCTION int get_evaluated(Instance* c, const real* from, double* values, size_t n, int count) {
  if (n != (size_t)count) return fail(c, WRONG_SIZE, (unsigned)n, count);
  TRY(update(c));
  for (int i = 0; i < count; i++) values[i] = from[i];
  return 0;
}

/* Serialised states begin with the identity of the model. */
enum { STATE_SIZE = sizeof IDENTITY + sizeof(Model) };

static int save_state(Instance* c, const void* from, void** state) {
  if (!*state) *state = malloc(sizeof(Model));
  if (!*state) return fail(c, "there is no memory for a state");
  memcpy(*state, from, sizeof(Model));
  return 0;
}

static int restore_state(Instance* c, const void* state) {
  if (!state) return fail(c, "there is no state to restore");
  memcpy(&c->model, state, sizeof(Model));
  return 0;
}

static int serialise(Instance* c, const void* state, char* bytes, size_t size) {
  if (!state || size < STATE_SIZE) return fail(c, "a serialised state needs a state and %d bytes", STATE_SIZE);
  memcpy(bytes, IDENTITY, sizeof IDENTITY);
  memcpy(bytes + sizeof IDENTITY, state, sizeof(Model));
  return 0;
}

static int deserialise(Instance* c, const char* bytes, size_t size, void** state) {
  if (size != STATE_SIZE || memcmp(bytes, IDENTITY, sizeof IDENTITY) != 0)
    return fail(c, "the bytes are no serialised state of this model");
  return save_state(c, bytes + sizeof IDENTITY, state);
}

#if PARTIALS
/* The place of a variable among unknowns (derivatives, state, outputs) or knowns (states, inputs) of partials; -1 if none. */
static int place_of_unknown(unsigned int reference) {
  if (reference >= FIRST_STATE && reference < FIRST_RATE) return (int)(N_STATES + reference - FIRST_STATE);
  if (reference >= FIRST_RATE && reference < FIRST_PARAMETER) return (int)(reference - FIRST_RATE);
  if (reference >= FIRST_OUTPUT && reference < FIRST_INDICATOR) return (int)(N_STATES + N + reference - FIRST_OUTPUT);
  return -1;
}

static int place_of_known(unsigned int reference) {
  for (int k = 0; k < N_STATES; k++) if (reference == (unsigned)(FIRST_STATE + STATES[k])) return k;
  for (int k = 0; k < N_INPUTS; k++) if (reference == (unsigned)(FIRST_PARAMETER + INPUTS[k])) return N_STATES + k;
  return -1;
}

/* The product of the partial derivatives with a seed, or that of their transpose if `back`. */
static int derivative_along(Instance* c, int back, const unsigned int* unknowns, size_t n, const unsigned int* knowns,
                            size_t m, const double* seed, double* result) {
  enum { ROWS = N_STATES + N + N_OUTPUTS, COLUMNS = N_STATES + N_INPUTS };
  real matrix[ROWS * COLUMNS + 1];
  TRY(update(c));
  const int status = partials((real)c->model.m.t, c->model.m.y, c->model.m.p, matrix);
  if (status != 0) return evaluation_failed(c, status);
  for (size_t k = 0; k < (back ? m : n); k++) result[k] = 0;
  for (size_t i = 0; i < n; i++) {
    const int row = place_of_unknown(unknowns[i]);
    if (row < 0) return fail(c, "value reference %u is no derivative, state or output", unknowns[i]);
    for (size_t j = 0; j < m; j++) {
      const int column = place_of_known(knowns[j]);
      if (column < 0) return fail(c, "value reference %u is no state and no input", knowns[j]);
      result[back ? j : i] += matrix[row * COLUMNS + column] * seed[back ? i : j];
    }
  }
  return 0;
}
#endif

/* Model Exchange: what happens at an event; *moved tells whether states have changed. */
FUNCTION int discrete_update(Instance* c, int* moved) {
  Model* w = &c->model;
  real before[N];
  *moved = 0;
  for (int i = 0; i < N; i++) before[i] = w->m.y[i];
#if N_MODES > 1
  {
    real watched[E];
    int fired = -1;
    for (int k = 0; k < E; k++) watched[k] = w->m.switching[k];
    TRY(refresh(c, 0));
    begin_watch(w); /* a guard that is zero fires if it is about to become negative */
    for (int k = 0; k < GUARDS[mode_of(w)] && fired < 0; k++) {
      if (w->m.switching[k] < 0 && watched[k] > 0) fired = k;
    }
    if (fired >= 0) {
      TRY(take_transition(c, fired));
      TRY(settle_mode(c));
    }
  }
#endif
  TRY(refresh(c, ME_PROJECTS));
#if E
  begin_watch(w);
#endif
  for (int i = 0; i < N_STATES; i++) if (before[STATES[i]] != w->m.y[STATES[i]]) *moved = 1;
  return 0;
}

/* After a step of the importing program: guards are watched from here; 1 in *event if constraints are violated. */
FUNCTION int step_completed(Instance* c, int* event) {
  Model* w = &c->model;
  (void)w;
  *event = 0;
#if E
  real now[E];
  if (switching_functions((real)w->m.t, w->m.y, w->m.p, now) == 0) {
    for (int k = 0; k < E; k++) {
      const int is_guard = k < GUARDS[mode_of(w)];
      if (is_guard && now[k] < 0 && w->m.switching[k] > 0) *event = 1; /* crossed, unseen by the importing program */
      else if (now[k] != 0) w->m.switching[k] = now[k];
    }
  }
#endif
#if ME_PROJECTS
  real y[N];
  for (int i = 0; i < N; i++) y[i] = w->m.y[i];
  if (project((real)w->m.t, y, w->m.p, EXACT, 1, 0) != 0) return evaluation_failed(c, NOT_CONVERGED);
  real distance = 0;
  for (int i = 0; i < N; i++) {
    const real x = (real)fabs(y[i] - w->m.y[i]) / weight(&c->setting, w->m.y[i], i);
    distance = MAXIMUM(distance, x);
  }
  if (distance > 1) *event = 1;
#endif
  return 0;
}
