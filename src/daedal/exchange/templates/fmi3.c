/* The functions of FMI 3.0 (Functional Mock-up Interface Specification, Modelica Association, version 3.0.1), declared
 * from its text. */

#include <stdbool.h>
#include <stdint.h>

typedef void* fmi3Instance;
typedef void* fmi3InstanceEnvironment;
typedef void* fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef float fmi3Float32;
typedef double fmi3Float64;
typedef bool fmi3Boolean;
typedef const char* fmi3String;
typedef uint8_t fmi3Byte;
typedef const fmi3Byte* fmi3Binary;
typedef bool fmi3Clock;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef enum { fmi3Independent, fmi3Constant, fmi3Fixed, fmi3Tunable, fmi3Discrete, fmi3Dependent } fmi3DependencyKind;
typedef enum { fmi3IntervalNotYetKnown, fmi3IntervalUnchanged, fmi3IntervalChanged } fmi3IntervalQualifier;
typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String, fmi3String);
typedef void (*fmi3IntermediateUpdateCallback)(fmi3InstanceEnvironment, fmi3Float64, fmi3Boolean, fmi3Boolean, fmi3Boolean,
                                               fmi3Boolean, fmi3Boolean, fmi3Boolean*, fmi3Float64*);
typedef void (*fmi3ClockUpdateCallback)(fmi3InstanceEnvironment);
typedef void (*fmi3LockPreemptionCallback)(void);

#define MODEL ((Instance*)c)
#define CHECKED(call) ((fmi3Status)(call))

static void log_fmi3(void* instance, int status, const char* text) {
  Instance* c = (Instance*)instance;
  union { void* object; fmi3LogMessageCallback function; } f;
  f.object = c->callbacks;
  if (f.function) f.function(c->environment, (fmi3Status)status, "logStatusError", text);
}

static fmi3Instance make(fmi3String name, fmi3String token, void* environment, fmi3LogMessageCallback log) {
  Instance* c = new_instance(name ? name : "", token);
  union { void* object; fmi3LogMessageCallback function; } f;
  if (!c) {
    if (log) log(environment, fmi3Error, "logStatusError",
                 "the FMU cannot be instantiated: its token differs from that of modelDescription.xml");
    return NULL;
  }
  f.function = log;
  c->callbacks = f.object;
  c->environment = environment;
  c->log = log_fmi3;
  return c;
}

EXPORT const char* fmi3GetVersion(void) { return "3.0"; }

EXPORT fmi3Status fmi3SetDebugLogging(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String categories[]) {
  (void)c, (void)on, (void)n, (void)categories; /* errors are always logged, and nothing else */
  return fmi3OK;
}

EXPORT fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                                 fmi3Boolean logging, fmi3InstanceEnvironment environment,
                                                 fmi3LogMessageCallback log) {
  (void)resources, (void)visible, (void)logging;
  return IS_COSIMULATION ? NULL : make(name, token, environment, log);
}

EXPORT fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                                fmi3Boolean logging, fmi3Boolean event_mode_used, fmi3Boolean early_return,
                                                const fmi3ValueReference required[], size_t n,
                                                fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                                fmi3IntermediateUpdateCallback intermediate) {
  (void)resources, (void)visible, (void)logging, (void)event_mode_used, (void)early_return, (void)required, (void)n, (void)intermediate;
  return IS_COSIMULATION ? make(name, token, environment, log) : NULL;
}

EXPORT fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String resources,
                                                      fmi3Boolean visible, fmi3Boolean logging,
                                                      fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                                      fmi3ClockUpdateCallback update_clock,
                                                      fmi3LockPreemptionCallback lock, fmi3LockPreemptionCallback unlock) {
  (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)environment, (void)log;
  (void)update_clock, (void)lock, (void)unlock;
  return NULL;
}

EXPORT void fmi3FreeInstance(fmi3Instance c) { free_instance(MODEL); }

EXPORT fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean tolerance_defined, fmi3Float64 tolerance,
                                              fmi3Float64 start, fmi3Boolean stop_defined, fmi3Float64 stop) {
  (void)stop_defined, (void)stop;
  return CHECKED(set_experiment(MODEL, tolerance_defined, tolerance, start));
}

EXPORT fmi3Status fmi3ExitInitializationMode(fmi3Instance c) {
  return CHECKED(begin_run(MODEL, MODEL->model.start_time + 1));
}
EXPORT fmi3Status fmi3EnterEventMode(fmi3Instance c) { (void)c; return fmi3OK; }
EXPORT fmi3Status fmi3Terminate(fmi3Instance c) { MODEL->model.is_over = 1; return fmi3OK; }
EXPORT fmi3Status fmi3Reset(fmi3Instance c) { set_defaults(MODEL); return fmi3OK; }

EXPORT fmi3Status fmi3GetFloat64(fmi3Instance c, const fmi3ValueReference r[], size_t n, fmi3Float64 values[], size_t m) {
  int status = m == n ? 0 : fail(MODEL, WRONG_SIZE, (unsigned)m, (int)n);
  for (size_t i = 0; i < n && status == 0; i++) status = get_number(MODEL, r[i], &values[i]);
  return CHECKED(status);
}

EXPORT fmi3Status fmi3SetFloat64(fmi3Instance c, const fmi3ValueReference r[], size_t n, const fmi3Float64 values[], size_t m) {
  int status = m == n ? 0 : fail(MODEL, WRONG_SIZE, (unsigned)m, (int)n);
  for (size_t i = 0; i < n && status == 0; i++) status = set_number(MODEL, r[i], values[i]);
  return CHECKED(status);
}

EXPORT fmi3Status fmi3GetInt32(fmi3Instance c, const fmi3ValueReference r[], size_t n, int32_t values[], size_t m) {
  if (m != n) return CHECKED(fail(MODEL, WRONG_SIZE, (unsigned)m, (int)n));
  for (size_t i = 0; i < n; i++) {
    if (N_MODES < 2 || r[i] != MODE_REFERENCE) return CHECKED(fail(MODEL, "value reference %u is no Int32", r[i]));
    values[i] = (int32_t)(MODEL->model.is_started ? MODEL->model.m.p[P] : MODEL->model.p[P]);
  }
  return fmi3OK;
}

#define NO_GET(NAME, TYPE)                                                                                            \
  EXPORT fmi3Status fmi3Get##NAME(fmi3Instance c, const fmi3ValueReference r[], size_t n, TYPE values[], size_t m) {  \
    (void)values, (void)m;                                                                                            \
    return n == 0 ? fmi3OK : CHECKED(fail(MODEL, "value reference %u is no " #NAME, r[0]));                           \
  }
#define NO_SET(NAME, TYPE)                                                                                            \
  EXPORT fmi3Status fmi3Set##NAME(fmi3Instance c, const fmi3ValueReference r[], size_t n, const TYPE values[],        \
                                  size_t m) {                                                                         \
    (void)values, (void)m;                                                                                            \
    return n == 0 ? fmi3OK : CHECKED(fail(MODEL, "value reference %u is no " #NAME " that can be set", r[0]));        \
  }
#define NO_VARIABLES(NAME, TYPE) NO_GET(NAME, TYPE) NO_SET(NAME, TYPE)
NO_VARIABLES(Float32, fmi3Float32)
NO_VARIABLES(Int8, int8_t)
NO_VARIABLES(UInt8, uint8_t)
NO_VARIABLES(Int16, int16_t)
NO_VARIABLES(UInt16, uint16_t)
NO_SET(Int32, int32_t)
NO_VARIABLES(UInt32, uint32_t)
NO_VARIABLES(Int64, int64_t)
NO_VARIABLES(UInt64, uint64_t)
NO_VARIABLES(Boolean, fmi3Boolean)
NO_VARIABLES(String, fmi3String)

EXPORT fmi3Status fmi3GetBinary(fmi3Instance c, const fmi3ValueReference r[], size_t n, size_t sizes[], fmi3Binary values[],
                                size_t m) {
  (void)sizes, (void)values, (void)m;
  return n == 0 ? fmi3OK : CHECKED(fail(MODEL, "value reference %u is no Binary", r[0]));
}
EXPORT fmi3Status fmi3SetBinary(fmi3Instance c, const fmi3ValueReference r[], size_t n, const size_t sizes[],
                                const fmi3Binary values[], size_t m) {
  (void)sizes, (void)values, (void)m;
  return n == 0 ? fmi3OK : CHECKED(fail(MODEL, "value reference %u is no Binary", r[0]));
}
EXPORT fmi3Status fmi3GetClock(fmi3Instance c, const fmi3ValueReference r[], size_t n, fmi3Clock values[]) {
  (void)values;
  return n == 0 ? fmi3OK : CHECKED(fail(MODEL, "value reference %u is no Clock", r[0]));
}
EXPORT fmi3Status fmi3SetClock(fmi3Instance c, const fmi3ValueReference r[], size_t n, const fmi3Clock values[]) {
  (void)values;
  return n == 0 ? fmi3OK : CHECKED(fail(MODEL, "value reference %u is no Clock", r[0]));
}

EXPORT fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance c, fmi3ValueReference r, size_t* n) {
  (void)r;
  *n = 0;
  return CHECKED(fail(MODEL, "dependencies are not part of this FMU"));
}
EXPORT fmi3Status fmi3GetVariableDependencies(fmi3Instance c, fmi3ValueReference dependent, size_t dependents[],
                                              fmi3ValueReference independents[], size_t elements[],
                                              fmi3DependencyKind kinds[], size_t n) {
  (void)dependent, (void)dependents, (void)independents, (void)elements, (void)kinds, (void)n;
  return CHECKED(fail(MODEL, "dependencies are not part of this FMU"));
}

EXPORT fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState* state) {
  return CHECKED(save_state(MODEL, &MODEL->model, state));
}
EXPORT fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState state) {
  return CHECKED(restore_state(MODEL, state));
}
EXPORT fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState* state) {
  (void)c;
  if (state) free(*state), *state = NULL;
  return fmi3OK;
}
EXPORT fmi3Status fmi3SerializedFMUStateSize(fmi3Instance c, fmi3FMUState state, size_t* size) {
  (void)c, (void)state;
  *size = STATE_SIZE;
  return fmi3OK;
}
EXPORT fmi3Status fmi3SerializeFMUState(fmi3Instance c, fmi3FMUState state, fmi3Byte bytes[], size_t size) {
  return CHECKED(serialise(MODEL, state, (char*)bytes, size));
}
EXPORT fmi3Status fmi3DeserializeFMUState(fmi3Instance c, const fmi3Byte bytes[], size_t size, fmi3FMUState* state) {
  return CHECKED(deserialise(MODEL, (const char*)bytes, size, state));
}

EXPORT fmi3Status fmi3GetDirectionalDerivative(fmi3Instance c, const fmi3ValueReference unknowns[], size_t n,
                                               const fmi3ValueReference knowns[], size_t m, const fmi3Float64 seed[],
                                               size_t n_seed, fmi3Float64 result[], size_t n_result) {
  if (n_seed != m) return CHECKED(fail(MODEL, WRONG_SIZE, (unsigned)n_seed, (int)m));
  if (n_result != n) return CHECKED(fail(MODEL, WRONG_SIZE, (unsigned)n_result, (int)n));
#if PARTIALS
  return CHECKED(derivative_along(MODEL, 0, unknowns, n, knowns, m, seed, result));
#else
  (void)unknowns, (void)n, (void)knowns, (void)m, (void)seed, (void)result;
  return CHECKED(fail(MODEL, "the FMU has no directional derivatives"));
#endif
}
EXPORT fmi3Status fmi3GetAdjointDerivative(fmi3Instance c, const fmi3ValueReference unknowns[], size_t n,
                                           const fmi3ValueReference knowns[], size_t m, const fmi3Float64 seed[],
                                           size_t n_seed, fmi3Float64 result[], size_t n_result) {
  if (n_seed != n) return CHECKED(fail(MODEL, WRONG_SIZE, (unsigned)n_seed, (int)n));
  if (n_result != m) return CHECKED(fail(MODEL, WRONG_SIZE, (unsigned)n_result, (int)m));
#if PARTIALS
  return CHECKED(derivative_along(MODEL, 1, unknowns, n, knowns, m, seed, result));
#else
  (void)unknowns, (void)n, (void)knowns, (void)m, (void)seed, (void)result;
  return CHECKED(fail(MODEL, "the FMU has no adjoint derivatives"));
#endif
}

EXPORT fmi3Status fmi3EnterConfigurationMode(fmi3Instance c) { (void)c; return fmi3OK; }
EXPORT fmi3Status fmi3ExitConfigurationMode(fmi3Instance c) { (void)c; return fmi3OK; }

#define NO_CLOCKS(NAME, UNUSED, ...)                                                                                  \
  EXPORT fmi3Status fmi3##NAME(fmi3Instance c, const fmi3ValueReference r[], size_t n, __VA_ARGS__) {                 \
    UNUSED;                                                                                                           \
    return n == 0 ? fmi3OK : CHECKED(fail(MODEL, "value reference %u is no Clock", r[0]));                            \
  }
NO_CLOCKS(GetIntervalDecimal, ((void)a, (void)b), fmi3Float64 a[], fmi3IntervalQualifier b[])
NO_CLOCKS(GetIntervalFraction, ((void)a, (void)b, (void)d), uint64_t a[], uint64_t b[], fmi3IntervalQualifier d[])
NO_CLOCKS(GetShiftDecimal, (void)a, fmi3Float64 a[])
NO_CLOCKS(GetShiftFraction, ((void)a, (void)b), uint64_t a[], uint64_t b[])
NO_CLOCKS(SetIntervalDecimal, (void)a, const fmi3Float64 a[])
NO_CLOCKS(SetIntervalFraction, ((void)a, (void)b), const uint64_t a[], const uint64_t b[])
NO_CLOCKS(SetShiftDecimal, (void)a, const fmi3Float64 a[])
NO_CLOCKS(SetShiftFraction, ((void)a, (void)b), const uint64_t a[], const uint64_t b[])

EXPORT fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance c) { (void)c; return fmi3OK; }

EXPORT fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean* needs_update, fmi3Boolean* terminate,
                                           fmi3Boolean* nominals_changed, fmi3Boolean* values_changed,
                                           fmi3Boolean* next_event_defined, fmi3Float64* next_event) {
  int moved = 0;
  *needs_update = *terminate = *nominals_changed = *values_changed = *next_event_defined = false;
  *next_event = 0;
  if (IS_COSIMULATION) return fmi3OK;
  const int status = discrete_update(MODEL, &moved);
  *values_changed = moved != 0;
  return CHECKED(status);
}

EXPORT fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance c) { (void)c; return fmi3OK; }

EXPORT fmi3Status fmi3CompletedIntegratorStep(fmi3Instance c, fmi3Boolean no_set_state_prior, fmi3Boolean* enter_event_mode,
                                              fmi3Boolean* terminate) {
  int event = 0;
  (void)no_set_state_prior;
  *terminate = false;
  const int failed = step_completed(MODEL, &event);
  *enter_event_mode = event != 0;
  return CHECKED(failed);
}

EXPORT fmi3Status fmi3SetTime(fmi3Instance c, fmi3Float64 t) { return CHECKED(set_time(MODEL, t)); }

EXPORT fmi3Status fmi3SetContinuousStates(fmi3Instance c, const fmi3Float64 x[], size_t n) {
  return CHECKED(set_states(MODEL, x, n));
}

EXPORT fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance c, fmi3Float64 derivatives[], size_t n) {
  return CHECKED(get_evaluated(MODEL, MODEL->model.rates, derivatives, n, N_STATES));
}

EXPORT fmi3Status fmi3GetEventIndicators(fmi3Instance c, fmi3Float64 indicators[], size_t n) {
  return CHECKED(get_evaluated(MODEL, MODEL->model.indicators, indicators, n, E));
}

EXPORT fmi3Status fmi3GetContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n) {
  return CHECKED(get_states(MODEL, x, n));
}

EXPORT fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance c, fmi3Float64 nominals[], size_t n) {
  if (n != N_STATES) return CHECKED(fail(MODEL, WRONG_SIZE, (unsigned)n, N_STATES));
  for (size_t i = 0; i < n; i++) nominals[i] = 1;
  return fmi3OK;
}

EXPORT fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance c, size_t* n) { (void)c; *n = E; return fmi3OK; }
EXPORT fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance c, size_t* n) { (void)c; *n = N_STATES; return fmi3OK; }
EXPORT fmi3Status fmi3EnterStepMode(fmi3Instance c) { (void)c; return fmi3OK; }

EXPORT fmi3Status fmi3GetOutputDerivatives(fmi3Instance c, const fmi3ValueReference r[], size_t n, const int32_t orders[],
                                           fmi3Float64 values[], size_t m) {
  (void)r, (void)orders, (void)values, (void)m;
  return n == 0 ? fmi3OK : CHECKED(fail(MODEL, "the FMU has no derivatives of outputs"));
}

EXPORT fmi3Status fmi3DoStep(fmi3Instance c, fmi3Float64 t, fmi3Float64 h, fmi3Boolean no_set_state_prior,
                             fmi3Boolean* event_needed, fmi3Boolean* terminate, fmi3Boolean* early_return,
                             fmi3Float64* last_time) {
  (void)no_set_state_prior;
  *event_needed = *terminate = *early_return = false;
  const int status = step_from(MODEL, t, h);
  *last_time = MODEL->model.m.t;
  return CHECKED(status);
}

EXPORT fmi3Status fmi3ActivateModelPartition(fmi3Instance c, fmi3ValueReference clock, fmi3Float64 time) {
  (void)clock, (void)time;
  return CHECKED(fail(MODEL, "the FMU has no clocks"));
}
