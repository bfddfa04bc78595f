/* The functions of FMI 2.0 (Functional Mock-up Interface for Model Exchange and Co-Simulation, Modelica Association,
 * version 2.0.4), declared from its text. */

typedef void* fmi2Component;
typedef void* fmi2ComponentEnvironment;
typedef void* fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer;
typedef int fmi2Boolean;
typedef char fmi2Char;
typedef const fmi2Char* fmi2String;
typedef char fmi2Byte;
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum { fmi2DoStepStatus, fmi2PendingStatus, fmi2LastSuccessfulTime, fmi2Terminated } fmi2StatusKind;
typedef struct {
  void (*logger)(fmi2ComponentEnvironment, fmi2String, fmi2Status, fmi2String, fmi2String, ...);
  void* (*allocateMemory)(size_t, size_t);
  void (*freeMemory)(void*);
  void (*stepFinished)(fmi2ComponentEnvironment, fmi2Status);
  fmi2ComponentEnvironment componentEnvironment;
} fmi2CallbackFunctions;
typedef struct {
  fmi2Boolean newDiscreteStatesNeeded, terminateSimulation, nominalsOfContinuousStatesChanged,
      valuesOfContinuousStatesChanged, nextEventTimeDefined;
  fmi2Real nextEventTime;
} fmi2EventInfo;

#define MODEL ((Instance*)c)
#define CHECKED(call) ((fmi2Status)(call))

static void log_fmi2(void* instance, int status, const char* text) {
  Instance* c = (Instance*)instance;
  const fmi2CallbackFunctions* f = (const fmi2CallbackFunctions*)c->callbacks;
  if (f && f->logger) f->logger(c->environment, c->name, (fmi2Status)status, "logStatusError", "%s", text);
}

EXPORT const char* fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char* fmi2GetVersion(void) { return "2.0"; }

EXPORT fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) {
  (void)c, (void)on, (void)n, (void)categories; /* errors are always logged, and nothing else */
  return fmi2OK;
}

EXPORT fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                                     const fmi2CallbackFunctions* functions, fmi2Boolean visible, fmi2Boolean logging) {
  (void)resources, (void)visible, (void)logging;
  if (type != (IS_COSIMULATION ? fmi2CoSimulation : fmi2ModelExchange)) return NULL;
  Instance* c = new_instance(name ? name : "", guid);
  if (!c) {
    if (functions && functions->logger)
      functions->logger(functions->componentEnvironment, name, fmi2Error, "logStatusError",
                        "the FMU cannot be instantiated: its guid differs from that of modelDescription.xml");
    return NULL;
  }
  (void)logging;
  c->callbacks = (void*)functions;
  c->environment = functions ? functions->componentEnvironment : NULL;
  c->log = log_fmi2;
  return c;
}

EXPORT void fmi2FreeInstance(fmi2Component c) { free_instance(MODEL); }

EXPORT fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean tolerance_defined, fmi2Real tolerance, fmi2Real start,
                                      fmi2Boolean stop_defined, fmi2Real stop) {
  (void)stop_defined, (void)stop;
  return CHECKED(set_experiment(MODEL, tolerance_defined, tolerance, start));
}

EXPORT fmi2Status fmi2EnterInitializationMode(fmi2Component c) { (void)c; return fmi2OK; }
EXPORT fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
  return CHECKED(begin_run(MODEL, MODEL->model.start_time + 1));
}
EXPORT fmi2Status fmi2Terminate(fmi2Component c) { MODEL->model.is_over = 1; return fmi2OK; }
EXPORT fmi2Status fmi2Reset(fmi2Component c) { set_defaults(MODEL); return fmi2OK; }

EXPORT fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, fmi2Real values[]) {
  int status = 0;
  for (size_t i = 0; i < n && status == 0; i++) status = get_number(MODEL, r[i], &values[i]);
  return CHECKED(status);
}

EXPORT fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, const fmi2Real values[]) {
  int status = 0;
  for (size_t i = 0; i < n && status == 0; i++) status = set_number(MODEL, r[i], values[i]);
  return CHECKED(status);
}

EXPORT fmi2Status fmi2GetInteger(fmi2Component c, const fmi2ValueReference r[], size_t n, fmi2Integer values[]) {
  for (size_t i = 0; i < n; i++) {
    if (N_MODES < 2 || r[i] != MODE_REFERENCE) return CHECKED(fail(MODEL, "value reference %u is no integer", r[i]));
    values[i] = (int)(MODEL->model.is_started ? MODEL->model.m.p[P] : MODEL->model.p[P]);
  }
  return fmi2OK;
}

EXPORT fmi2Status fmi2SetInteger(fmi2Component c, const fmi2ValueReference r[], size_t n, const fmi2Integer values[]) {
  (void)values;
  return n == 0 ? fmi2OK : CHECKED(fail(MODEL, "value reference %u is no integer that can be set", r[0]));
}

#define NO_VARIABLES(NAME, TYPE)                                                                                      \
  EXPORT fmi2Status fmi2Get##NAME(fmi2Component c, const fmi2ValueReference r[], size_t n, TYPE values[]) {           \
    (void)values;                                                                                                     \
    return n == 0 ? fmi2OK : CHECKED(fail(MODEL, "value reference %u is no " #NAME, r[0]));                           \
  }                                                                                                                   \
  EXPORT fmi2Status fmi2Set##NAME(fmi2Component c, const fmi2ValueReference r[], size_t n, const TYPE values[]) {     \
    (void)values;                                                                                                     \
    return n == 0 ? fmi2OK : CHECKED(fail(MODEL, "value reference %u is no " #NAME, r[0]));                           \
  }
NO_VARIABLES(Boolean, fmi2Boolean)
NO_VARIABLES(String, fmi2String)

EXPORT fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate* state) {
  return CHECKED(save_state(MODEL, &MODEL->model, state));
}

EXPORT fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) {
  return CHECKED(restore_state(MODEL, state));
}

EXPORT fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate* state) {
  (void)c;
  if (state) free(*state), *state = NULL;
  return fmi2OK;
}

EXPORT fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t* size) {
  (void)c, (void)state;
  *size = STATE_SIZE;
  return fmi2OK;
}

EXPORT fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
  return CHECKED(serialise(MODEL, state, bytes, size));
}

EXPORT fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate* state) {
  return CHECKED(deserialise(MODEL, bytes, size, state));
}

EXPORT fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknowns[], size_t n,
                                               const fmi2ValueReference knowns[], size_t m, const fmi2Real seed[],
                                               fmi2Real result[]) {
#if PARTIALS
  return CHECKED(derivative_along(MODEL, 0, unknowns, n, knowns, m, seed, result));
#else
  (void)unknowns, (void)n, (void)knowns, (void)m, (void)seed, (void)result;
  return CHECKED(fail(MODEL, "the FMU has no directional derivatives"));
#endif
}

#if IS_COSIMULATION
EXPORT fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference r[], size_t n,
                                              const fmi2Integer order[], const fmi2Real values[]) {
  (void)r, (void)order, (void)values;
  return n == 0 ? fmi2OK : CHECKED(fail(MODEL, "inputs are held constant between communication points"));
}

EXPORT fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference r[], size_t n,
                                               const fmi2Integer order[], fmi2Real values[]) {
  (void)r, (void)order, (void)values;
  return n == 0 ? fmi2OK : CHECKED(fail(MODEL, "the FMU has no derivatives of outputs"));
}

EXPORT fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean no_set_state_prior) {
  (void)no_set_state_prior;
  return CHECKED(step_from(MODEL, t, h));
}

EXPORT fmi2Status fmi2CancelStep(fmi2Component c) { (void)c; return fmi2Error; }
EXPORT fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Status* value) {
  (void)c, (void)kind, (void)value;
  return fmi2Discard;
}
EXPORT fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Real* value) {
  if (kind != fmi2LastSuccessfulTime) return fmi2Discard;
  *value = MODEL->model.m.t;
  return fmi2OK;
}
EXPORT fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Integer* value) {
  (void)c, (void)kind, (void)value;
  return fmi2Discard;
}
EXPORT fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean* value) {
  (void)c;
  if (kind != fmi2Terminated) return fmi2Discard;
  *value = 0;
  return fmi2OK;
}
EXPORT fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind kind, fmi2String* value) {
  (void)c, (void)kind, (void)value;
  return fmi2Discard;
}
#else
EXPORT fmi2Status fmi2EnterEventMode(fmi2Component c) { (void)c; return fmi2OK; }

EXPORT fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo* info) {
  int moved = 0;
  memset(info, 0, sizeof *info);
  const int status = discrete_update(MODEL, &moved);
  info->valuesOfContinuousStatesChanged = moved;
  return CHECKED(status);
}

EXPORT fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c) { (void)c; return fmi2OK; }

EXPORT fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean no_set_state_prior, fmi2Boolean* enter_event_mode,
                                              fmi2Boolean* terminate) {
  (void)no_set_state_prior;
  *terminate = 0;
  return CHECKED(step_completed(MODEL, enter_event_mode));
}

EXPORT fmi2Status fmi2SetTime(fmi2Component c, fmi2Real t) { return CHECKED(set_time(MODEL, t)); }

EXPORT fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n) {
  return CHECKED(set_states(MODEL, x, n));
}

EXPORT fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real derivatives[], size_t n) {
  return CHECKED(get_evaluated(MODEL, MODEL->model.rates, derivatives, n, N_STATES));
}

EXPORT fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real indicators[], size_t n) {
  return CHECKED(get_evaluated(MODEL, MODEL->model.indicators, indicators, n, E));
}

EXPORT fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t n) {
  return CHECKED(get_states(MODEL, x, n));
}

EXPORT fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real nominals[], size_t n) {
  if (n != N_STATES) return CHECKED(fail(MODEL, WRONG_SIZE, (unsigned)n, N_STATES));
  for (size_t i = 0; i < n; i++) nominals[i] = 1;
  return fmi2OK;
}
#endif
