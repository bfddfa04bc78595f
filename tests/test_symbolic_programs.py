"""Random programs: assignments, slices, loops and branches in any order have the same values traced and untraced."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_tools import machine, points, traced

N = 3
SCALARS = ["q[0]", "q[1]", "q[2]", "r[0]", "r[1]", "r[2]", "x", "t", "0.5", "-1.5", "2", "0.0", "A[1, 2]"]
VECTORS = ["q", "r", "q[::-1]", "A @ q", "A[0]", "np.roll(r, 1)", "np.array([x, t, q[0]])", "np.ones(3)"]
UNARY = ["math.sin({})", "np.cos({})", "abs({})", "np.tanh({})", "-({})", "({}) ** 2", "float({})", "np.sign({})"]
BINARY = ["({}) + ({})", "({}) - ({})", "({}) * ({})", "({}) / (2.0 + abs({}))", "max({}, {})", "np.minimum({}, {})"]
WIDE = ["np.sin({})", "({}) ** 2", "-({})", "np.where(({}) > 0.1, {}, 0.3)", "np.abs({})", "np.clip({}, -0.5, 0.7)"]
REDUCED = ["np.sum({})", "({}) @ q", "np.max({})", "np.linalg.norm({})", "sum({})", "np.dot({}, A[2])"]
INDICES = st.integers(0, N - 1)


def expressions(leaves, forms, more):
    """Texts built of leaves by forms with one or two holes."""
    return st.recursive(
        st.sampled_from(leaves),
        lambda inner: st.one_of(
            st.builds(lambda form, a: form.replace("{}", a), st.sampled_from(forms), inner),
            st.builds(lambda form, a, b: form.format(a, b), st.sampled_from(more), inner, inner),
        ),
        max_leaves=4,
    )


VECTOR = expressions(VECTORS, WIDE, ["({}) + ({})", "({}) * ({})", "np.maximum({}, {})", "np.cross({}, {})"])
SCALAR = st.one_of(
    expressions(SCALARS, UNARY, BINARY), st.builds(lambda form, v: form.format(v), st.sampled_from(REDUCED), VECTOR)
)
SIMPLE = st.one_of(
    st.builds("x = {}".format, SCALAR),
    st.builds("r[{}] = {}".format, INDICES, SCALAR),
    st.builds("r[{}:] += {}".format, INDICES, SCALAR),
    st.builds("r = {} + 0.0".format, VECTOR),
    st.builds("r *= {}".format, SCALAR),
    st.builds("r[:] = {}".format, VECTOR),
    st.builds("r[r > {}] = 0.25".format, SCALAR),
    st.builds("r = np.array([{}, {}, x])".format, SCALAR, SCALAR),
    st.builds("A[{}, 1] = {}".format, INDICES, SCALAR),
    st.builds("A += np.outer({}, r)".format, VECTOR),
)
LOOPS = st.builds("for k in range(3): r[k] = r[k] * 0.5 + q[k - 1] * ({})".format, SCALAR)
BRANCHES = st.builds(
    "if {} > {}:\n        {}\n    else:\n        {}".format, st.sampled_from(SCALARS), SCALAR, SIMPLE, SIMPLE
)
PROGRAMS = st.lists(st.one_of(SIMPLE, SIMPLE, LOOPS, BRANCHES), min_size=1, max_size=6)
MATRIX = np.array([[0.3, -0.2, 0.1], [0.5, 0.4, -0.6], [-0.1, 0.2, 0.7]])


@settings(max_examples=150)
@given(PROGRAMS)
def test_a_random_program_has_the_same_values_traced(statements):
    body = "\n    ".join(["r, x, A = np.zeros(3), 0.5, MATRIX.copy()", *statements, "return r + x * A[0]"])
    namespace = {"np": np, "math": math, "MATRIX": MATRIX}
    exec(f"def program(t, q):\n    {body}", namespace)
    program = namespace["program"]
    call = machine(traced(program, N), N)
    for q in points(N, 3):
        with np.errstate(all="ignore"):
            expected = program(0.7, q.copy())
        scale = 1.0 + np.abs(expected).max()
        if scale < 1e8:
            np.testing.assert_allclose(call(0.7, q)[1], expected, rtol=1e-10, atol=1e-11 * scale, err_msg=body)
