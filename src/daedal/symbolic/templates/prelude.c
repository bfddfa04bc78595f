/* What emitted functions rest on, in CUDA C and in plain C. SINGLE asks for single precision, APART for functions that
 * are called: copies of long ones, wherever they are used, would not fit into the instruction cache. ANY asks all threads
 * of a warp. UNROLL stands before loops that a GPU unrolls. */

#ifdef SINGLE
typedef float real;
#define SPACING 1.1920929e-07
#else
typedef double real;
#define SPACING 2.220446049250313e-16
#endif

#define NUMBER(x) ((real)(x))
#define RESTRICT __restrict__

#ifdef __CUDACC__
#define FUNCTION static __device__ __forceinline__
#ifdef APART
#define EMITTED static __device__ __noinline__
#else
#define EMITTED FUNCTION
#endif
#define TABLE static __device__ const
#define ANY(x) __any_sync(0xffffffffu, x)
#define UNROLL _Pragma("unroll")
#define UNROLL_NOTHING _Pragma("unroll 1")
#define NOT_A_NUMBER NUMBER(__longlong_as_double(0x7ff8000000000000LL))
#define INFINITE NUMBER(__longlong_as_double(0x7ff0000000000000LL))
#define SINE_AND_COSINE(x, s, c) sincos(x, &s, &c)
#ifdef SINGLE
#define RECIPROCAL(x) __frcp_rn(x)
#else
#define RECIPROCAL(x) __drcp_rn(x)
#endif
#else
#include <math.h>
#include <stddef.h>
#define FUNCTION static inline
#define EMITTED static
#define TABLE static const
#define ANY(x) (x)
#define UNROLL
#define UNROLL_NOTHING
#define NOT_A_NUMBER NUMBER(NAN)
#define INFINITE NUMBER(INFINITY)
#define SINE_AND_COSINE(x, s, c) (s = NUMBER(sin(x)), c = NUMBER(cos(x)))
#define RECIPROCAL(x) (NUMBER(1) / (x))
#endif

/* NumPy's: NaN of NaN; the first of equals. Arguments are names. */
#define SIGN(x) ((x) > 0 ? NUMBER(1) : (x) < 0 ? NUMBER(-1) : (x))
#define MAXIMUM(a, b) ((a) >= (b) || (a) != (a) ? (a) : (b))
#define MINIMUM(a, b) ((a) <= (b) || (a) != (a) ? (a) : (b))

/* x^exponent of step sizes, of which a few digits do. */
FUNCTION real power(real x, real exponent) {
#ifdef __CUDACC__
  return (real)exp2f((float)exponent * log2f((float)x));
#else
  return (real)pow(x, exponent);
#endif
}

/* Python's a % b, which has the sign of b, and a // b. */
FUNCTION real modulo(real a, real b) {
  const real rest = fmod(a, b);
  return rest == 0 || (rest < 0) == (b < 0) ? rest : rest + b;
}

FUNCTION real floor_divide(real a, real b) {
  const real rest = fmod(a, b), quotient = (a - rest) / b;
  const real near = rest == 0 || (rest < 0) == (b < 0) ? quotient : quotient - 1;
  const real below = floor(near);
  return b == 0 ? a / b : near - below > NUMBER(0.5) ? below + 1 : below;
}

/* How many of n increasing points are not beyond x. NaN is beyond all. */
FUNCTION real locate(real x, const real* points, int n) {
  int low = 0, high = n;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (x < points[middle]) high = middle; else low = middle + 1;
  }
  return (real)low;
}

/* values[index], from the end where the index is negative; NaN where there is no such entry. */
FUNCTION real pick(real index, const real* values, int n) {
  if (!(index >= -n && index < n)) return NOT_A_NUMBER;
  const int i = (int)index;
  return values[i < 0 ? i + n : i];
}
