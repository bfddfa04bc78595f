"""What functions read from outside, in containers and objects of every kind: a change is seen by the next run."""

import argparse
import array
import collections
import configparser
import contextvars
import ctypes
import functools
import types
import typing
import weakref

import numpy as np
import pytest
import scipy.sparse
from scipy.interpolate import PPoly, interp1d

import daedal


class Desc:
    def __init__(s):
        s.v = 1.0

    def __get__(s, o, t=None):
        return s.v


class WithDesc:
    d = Desc()


class Ref:
    k = 1.0


class ClassList:
    ks: typing.ClassVar = [1.0]


class S(ctypes.Structure):
    _fields_ = [("k", ctypes.c_double)]


class Own:
    def __init__(s):
        s.k = 1.0

    def __hash__(s):
        return 1

    def __eq__(s, o):
        return True


def cases():
    a = argparse.Namespace(k=1.0)
    yield "Namespace", lambda: a.k, lambda: setattr(a, "k", 2.0)
    u = collections.UserDict(k=1.0)
    yield "UserDict", lambda: u["k"], lambda: u.__setitem__("k", 2.0)
    l = collections.UserList([1.0])
    yield "UserList", lambda: l[0], lambda: l.__setitem__(0, 2.0)
    c = collections.ChainMap({}, {"k": 1.0})
    yield "ChainMap", lambda: c["k"], lambda: c.__setitem__("k", 2.0)
    base = {"k": 1.0}
    m = types.MappingProxyType(base)
    yield "MappingProxy", lambda: m["k"], lambda: base.__setitem__("k", 2.0)
    ar = array.array("d", [1.0])
    yield "array.array", lambda: ar[0], lambda: ar.__setitem__(0, 2.0)
    by = bytearray(8)
    mv = memoryview(by).cast("d")
    mv[0] = 1.0
    yield "memoryview", lambda: mv[0], lambda: mv.__setitem__(0, 2.0)
    cv = contextvars.ContextVar("k")
    cv.set(1.0)
    yield "ContextVar", lambda: cv.get(), lambda: cv.set(2.0)
    r = Ref()
    w = weakref.ref(r)
    yield "weakref", lambda: w().k, lambda: setattr(r, "k", 2.0)
    p = functools.partial(lambda k=0.0: k, k=1.0)
    yield "partial", lambda: p(), lambda: p.keywords.__setitem__("k", 2.0)
    d = {"k": 1.0}
    v = d.values()
    yield "dict view", lambda: next(iter(v)), lambda: d.__setitem__("k", 2.0)
    cp = configparser.ConfigParser()
    cp["x"] = {"k": "1.0"}
    yield "configparser", lambda: float(cp["x"]["k"]), lambda: cp["x"].__setitem__("k", "2.0")
    st = S(1.0)
    yield "ctypes", lambda: st.k, lambda: setattr(st, "k", 2.0)
    cd = ctypes.c_double(1.0)
    yield "ctypes number", lambda: cd.value, lambda: setattr(cd, "value", 2.0)
    WithDesc.__dict__["d"].v, ClassList.ks[0] = 1.0, 1.0
    o = WithDesc()
    yield "descriptor", lambda: o.d, lambda: setattr(WithDesc.__dict__["d"], "v", 2.0)
    cl = ClassList()
    yield "class list", lambda: cl.ks[0], lambda: ClassList.ks.__setitem__(0, 2.0)
    own = Own()
    ss = {own}
    yield "object in a set", lambda: next(iter(ss)).k, lambda: setattr(own, "k", 2.0)
    own2 = Own()
    dk = {own2: 1}
    yield "dict key", lambda: next(x.k for x in dk), lambda: setattr(own2, "k", 2.0)
    own3 = Own()
    oa = np.array([own3], dtype=object)
    yield "object array", lambda: oa[0].k, lambda: setattr(own3, "k", 2.0)
    li = [1.0]
    ol = np.empty(1, object)
    ol[0] = li
    yield "list in object array", lambda: ol[0][0], lambda: li.__setitem__(0, 2.0)
    sp = scipy.sparse.lil_array([[1.0]])
    yield "lil", lambda: sp.toarray()[0, 0], lambda: sp.__setitem__((0, 0), 2.0)
    dk2 = scipy.sparse.dok_array(np.array([[1.0]]))
    yield "dok", lambda: dk2.toarray()[0, 0], lambda: dk2.__setitem__((0, 0), 2.0)
    cs = scipy.sparse.csr_array(np.array([[1.0, 2.0]]))
    yield "csr indices", lambda: (cs @ np.array([1.0, 0.0]))[0], lambda: cs.indices.__setitem__(slice(None), [1, 0])
    I = interp1d([0, 1.0], [1.0, 1.0])
    yield "interp1d", lambda: I(0.5), lambda: I.y.__setitem__(slice(None), 2.0) or I._y.__setitem__(slice(None), 2.0)
    P = PPoly(np.ones((1, 1)), np.array([0.0, 1.0]))
    yield "PPoly", lambda: P(0.5), lambda: P.c.__setitem__(slice(None), 2.0)
    po = np.poly1d([1.0])
    yield "poly1d", lambda: po(0.5), lambda: po.coeffs.__setitem__(0, 2.0)
    pl = np.polynomial.Polynomial([1.0])
    yield "Polynomial", lambda: pl(0.5), lambda: pl.coef.__setitem__(0, 2.0)
    box = [1.0]
    vec = np.vectorize(lambda x: x * box[0])
    yield "vectorize", lambda: vec(1.0), lambda: box.__setitem__(0, 2.0)
    meth = [1.0].__getitem__
    ll = meth.__self__
    yield "bound method", lambda: meth(0), lambda: ll.__setitem__(0, 2.0)
    de = collections.deque([1.0])
    it = de.__len__
    yield "method wrapper", lambda: float(it()), lambda: de.append(1)
    dd = collections.defaultdict(float, k=1.0)
    yield "defaultdict", lambda: dd["k"], lambda: dd.__setitem__("k", 2.0)
    ct = collections.Counter(k=1)
    yield "Counter", lambda: float(ct["k"]), lambda: ct.__setitem__("k", 2)
    ns = types.SimpleNamespace(k=1.0)
    yield "SimpleNamespace", lambda: ns.k, lambda: setattr(ns, "k", 2.0)
    fz = frozenset([own])
    yield "frozenset", lambda: next(iter(fz)).k, lambda: setattr(own, "k", 3.0)
    rec = np.rec.array([(1.0,)], dtype=[("k", float)])
    yield "recarray", lambda: rec.k[0], lambda: rec.k.__setitem__(0, 2.0)


CASES = {name: (read, change) for name, read, change in cases()}


@pytest.mark.parametrize("prepared", [False, True], ids=["solve", "prepared"])
@pytest.mark.parametrize("name", CASES)
def test_the_third_run_sees_a_change(name, prepared):
    read, change = {name: (read, change) for name, read, change in cases()}[name]
    problem = daedal.ODE(lambda t, y: [-read() * y[0]], 1)
    solver = daedal.prepare(problem)
    run = solver.solve if prepared else lambda span, start: daedal.solve(problem, span, start)
    for _ in range(2):
        assert run((0.0, 1.0), [1.0]).y[0, -1] == pytest.approx(np.exp(-float(read())), abs=1e-5)
    before = read()
    change()
    assert read() != before
    assert run((0.0, 1.0), [1.0]).y[0, -1] == pytest.approx(np.exp(-float(read())), abs=1e-5)


def test_a_prepared_solver_can_be_asked_to_trace_again():

    class Watched:
        def __call__(self, t, y):
            return [-y[0]]

    solver = daedal.prepare(daedal.ODE(Watched(), 1))
    plan = solver.plan
    solver.solve((0.0, 1.0), [1.0])
    assert solver.plan is plan
    solver.refresh()
    assert solver.plan is not plan
    assert solver.solve((0.0, 1.0), [1.0]).y[0, -1] == pytest.approx(np.exp(-1.0), abs=1e-5)
