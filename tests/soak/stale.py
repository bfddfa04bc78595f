"""What functions read from outside, in containers and objects of every kind, changed between runs: the next run sees it.

A container is what sets it up, the expression that reads its number, and the statement that changes it.
"""

from __future__ import annotations

import numpy as np

from soak.case import Script

IMPORTS = """import argparse, array, collections, configparser, contextvars, ctypes, dataclasses, functools, types, weakref
import numpy as np, scipy.interpolate, scipy.sparse
import daedal

class Holder:
    k = 1.0
    ks = [1.0]
    def __init__(self, k=1.0):
        self.k = k
    def rate(self):
        return self.k

class Hashed(Holder):
    def __hash__(self):
        return 1
    def __eq__(self, other):
        return True

class Slotted:
    __slots__ = ("k",)

class Descriptor:
    v = 1.0
    def __get__(self, instance, owner=None):
        return self.v

class Described:
    d = Descriptor()

class Structure(ctypes.Structure):
    _fields_ = [("k", ctypes.c_double)]

@dataclasses.dataclass
class Data:
    k: float = 1.0
    inner: list = dataclasses.field(default_factory=lambda: [1.0])

class Property:
    _k = 1.0
    @property
    def k(self):
        return self._k
"""

CONTAINERS = {
    "number": ("o = 1.0", "o", "o = 2.0"),
    "list": ("o = [1.0]", "o[0]", "o[0] = 2.0"),
    "nested list": ("o = [[1.0], [3.0]]", "o[0][0]", "o[0][0] = 2.0"),
    "list that grows": ("o = [1.0]", "float(len(o))", "o.append(0.0)"),
    "tuple of lists": ("o = ([1.0],)", "o[0][0]", "o[0][0] = 2.0"),
    "dict": ("o = {'k': 1.0}", "o['k']", "o['k'] = 2.0"),
    "dict with get": ("o = {}", "o.get('k', 1.0)", "o['k'] = 2.0"),
    "nested dict": ("o = {'a': {'k': 1.0}}", "o['a']['k']", "o['a']['k'] = 2.0"),
    "in dict": ("o = {'j': 1.0}", "(2.0 if 'k' in o else 1.0)", "o['k'] = 2.0"),
    "set": ("o = {1.0}", "sum(o)", "o.add(2.0)"),
    "array": ("o = np.ones(2)", "o[0]", "o[0] = 2.0"),
    "view": ("b = np.ones((2, 2)); o = b[0]", "o[0]", "b[:] = 2.0"),
    "0-d array": ("o = np.array(1.0)", "o[()]", "o[()] = 2.0"),
    "transposed array": ("o = np.ones((2, 3))", "o.T[1, 0]", "o[0, 1] = 2.0"),
    "integer array": ("o = np.array([1])", "float(o[0])", "o[0] = 2"),
    "mask": ("o = np.array([True, True])", "float(2 - o[1])", "o[1] = False"),
    "large array": ("o = np.ones(100_000)", "o[70_000]", "o[70_000] = 2.0"),
    "read-only view": ("b = np.ones(2); o = b.view(); o.flags.writeable = False", "o[0]", "b[0] = 2.0"),
    "memmap": (
        "import tempfile\nwith tempfile.TemporaryFile() as b:\n    o = np.memmap(b, float, 'w+', shape=2)\no[:] = 1",
        "o[0]",
        "o[0] = 2.0",
    ),
    "instance": ("o = Holder()", "o.k", "o.k = 2.0"),
    "class": ("o = Holder()", "o.k", "Holder.k = 2.0; del o.k"),
    "method": ("o = Holder()", "o.rate()", "o.k = 2.0"),
    "bound method": ("h = Holder(); o = h.rate", "o()", "h.k = 2.0"),
    "replaced method": ("o = Holder()", "o.rate()", "o.rate = lambda: 2.0"),
    "instance in a list": ("o = [Holder()]", "o[0].k", "o[0].k = 2.0"),
    "slots": ("o = Slotted(); o.k = 1.0", "o.k", "o.k = 2.0"),
    "dataclass": ("o = Data()", "o.k", "o.k = 2.0"),
    "list of a dataclass": ("o = Data()", "o.inner[0]", "o.inner[0] = 2.0"),
    "property": ("o = Property()", "o.k", "o._k = 2.0"),
    "getattr": ("o = Holder()", "getattr(o, 'k')", "o.k = 2.0"),
    "vars": ("o = Holder()", "vars(o)['k']", "o.k = 2.0"),
    "Namespace": ("o = argparse.Namespace(k=1.0)", "o.k", "o.k = 2.0"),
    "SimpleNamespace": ("o = types.SimpleNamespace(k=1.0)", "o.k", "o.k = 2.0"),
    "module": ("o = types.ModuleType('settings'); o.k = 1.0", "o.k", "o.k = 2.0"),
    "function attribute": ("def o(): return o.k\no.k = 1.0", "o()", "o.k = 2.0"),
    "default of a function": ("def o(k=1.0): return k", "o()", "o.__defaults__ = (2.0,)"),
    "keyword default": ("def o(*, k=1.0): return k", "o()", "o.__kwdefaults__['k'] = 2.0"),
    "code of a function": ("def o(): return 1.0", "o()", "o.__code__ = (lambda: 2.0).__code__"),
    "global of a helper": ("g = 1.0\ndef o(): return g", "o()", "g = 2.0"),
    "helper by another name": ("def o(): return 1.0", "o()", "o = lambda: 2.0"),
    "partial": ("o = functools.partial(lambda k=0.0: k, k=1.0)", "o()", "o.keywords['k'] = 2.0"),
    "UserDict": ("o = collections.UserDict(k=1.0)", "o['k']", "o['k'] = 2.0"),
    "UserList": ("o = collections.UserList([1.0])", "o[0]", "o[0] = 2.0"),
    "ChainMap": ("o = collections.ChainMap({}, {'k': 1.0})", "o['k']", "o['k'] = 2.0"),
    "MappingProxy": ("b = {'k': 1.0}; o = types.MappingProxyType(b)", "o['k']", "b['k'] = 2.0"),
    "OrderedDict": ("o = collections.OrderedDict(k=1.0)", "o['k']", "o['k'] = 2.0"),
    "defaultdict": ("o = collections.defaultdict(float, k=1.0)", "o['k']", "o['k'] = 2.0"),
    "Counter": ("o = collections.Counter(k=1)", "float(o['k'])", "o['k'] = 2"),
    "deque": ("o = collections.deque([1.0])", "o[0]", "o[0] = 2.0"),
    "namedtuple of a list": ("o = collections.namedtuple('N', 'k')([1.0])", "o.k[0]", "o.k[0] = 2.0"),
    "array.array": ("o = array.array('d', [1.0])", "o[0]", "o[0] = 2.0"),
    "bytearray": ("o = bytearray([1])", "float(o[0])", "o[0] = 2"),
    "memoryview": ("b = bytearray(8); o = memoryview(b).cast('d'); o[0] = 1.0", "o[0]", "o[0] = 2.0"),
    "ContextVar": ("o = contextvars.ContextVar('k'); o.set(1.0)", "o.get()", "o.set(2.0)"),
    "weakref": ("h = Holder(); o = weakref.ref(h)", "o().k", "h.k = 2.0"),
    "dict view": ("b = {'k': 1.0}; o = b.values()", "next(iter(o))", "b['k'] = 2.0"),
    "configparser": (
        "o = configparser.ConfigParser(); o['x'] = {'k': '1.0'}",
        "float(o['x']['k'])",
        "o['x']['k'] = '2.0'",
    ),
    "ctypes structure": ("o = Structure(1.0)", "o.k", "o.k = 2.0"),
    "ctypes number": ("o = ctypes.c_double(1.0)", "o.value", "o.value = 2.0"),
    "descriptor": ("o = Described()", "o.d", "Described.__dict__['d'].v = 2.0"),
    "class list": ("o = Holder()", "o.ks[0]", "Holder.ks[0] = 2.0"),
    "object in a set": ("h = Hashed(); o = {h}", "next(iter(o)).k", "h.k = 2.0"),
    "dict key": ("h = Hashed(); o = {h: 1}", "next(x.k for x in o)", "h.k = 2.0"),
    "object array": ("h = Hashed(); o = np.array([h], dtype=object)", "o[0].k", "h.k = 2.0"),
    "list in object array": ("o = np.empty(1, object); o[0] = [1.0]", "o[0][0]", "o[0][0] = 2.0"),
    "lil": ("o = scipy.sparse.lil_array([[1.0]])", "o.toarray()[0, 0]", "o[0, 0] = 2.0"),
    "dok": ("o = scipy.sparse.dok_array(np.array([[1.0]]))", "o.toarray()[0, 0]", "o[0, 0] = 2.0"),
    "csr data": ("o = scipy.sparse.csr_array(np.eye(2))", "(o @ np.ones(2))[0]", "o.data[0] = 2.0"),
    "csr indices": (
        "o = scipy.sparse.csr_array(np.array([[1.0, 2.0]]))",
        "(o @ np.array([1.0, 0.0]))[0]",
        "o.indices[:] = [1, 0]",
    ),
    "interp1d": (
        "o = scipy.interpolate.interp1d([0.0, 1.0], [1.0, 1.0])",
        "o(0.5)",
        "o.y[:] = 2.0; o._y[:] = 2.0",
    ),
    "PPoly": ("o = scipy.interpolate.PPoly(np.ones((1, 1)), np.array([0.0, 1.0]))", "o(0.5)", "o.c[:] = 2.0"),
    "poly1d": ("o = np.poly1d([1.0])", "o(0.5)", "o.coeffs[0] = 2.0"),
    "Polynomial": ("o = np.polynomial.Polynomial([1.0])", "o(0.5)", "o.coef[0] = 2.0"),
    "vectorize": ("b = [1.0]; o = np.vectorize(lambda x: x * b[0])", "o(1.0)", "b[0] = 2.0"),
    "method of a list": ("b = [1.0]; o = b.__getitem__", "o(0)", "b[0] = 2.0"),
    "method wrapper": ("b = collections.deque([1.0]); o = b.__len__", "float(o())", "b.append(1.0)"),
    "frozenset": ("h = Hashed(); o = frozenset([h])", "next(iter(o)).k", "h.k = 3.0"),
    "recarray": ("o = np.rec.array([(1.0,)], dtype=[('k', float)])", "o.k[0]", "o.k[0] = 2.0"),
    "structured array": ("o = np.zeros(1, [('k', float)]); o['k'] = 1.0", "o['k'][0]", "o['k'] = 2.0"),
    "masked array": ("o = np.ma.array([1.0])", "o[0]", "o[0] = 2.0"),
    "cached property": ("o = Holder(); o.__dict__['c'] = 1.0", "o.c", "o.__dict__['c'] = 2.0"),
    "closure": (
        "def make():\n    k = 1.0\n    def get(): return k\n    def put(x):\n        nonlocal k\n        k = x\n"
        "    return get, put\no, put = make()",
        "o()",
        "put(2.0)",
    ),
    "generator expression": ("o = [1.0]", "sum(x for x in o)", "o[0] = 2.0"),
    "lru_cache cleared": (
        "b = [1.0]\n@functools.lru_cache\ndef o(): return b[0]",
        "o()",
        "b[0] = 2.0; o.cache_clear()",
    ),
    "global deleted": ("o = types.SimpleNamespace(k=1.0)", "getattr(o, 'k', 2.0)", "del o.k"),
    "string": ("o = ['slow']", "{'slow': 1.0, 'fast': 2.0}[o[0]]", "o[0] = 'fast'"),
    "flag": ("o = [False]", "(2.0 if o[0] else 1.0)", "o[0] = True"),
    "function in a table": ("o = {'f': lambda: 1.0}", "o['f']()", "o['f'] = lambda: 2.0"),
    "iterator of a list": ("o = [1.0, 0.0]", "max(iter(o))", "o[1] = 2.0"),
    "range": ("o = [range(1)]", "float(len(o[0]))", "o[0] = range(2)"),
    "bytes": ("o = [b'1.0']", "float(o[0])", "o[0] = b'2.0'"),
    "matrix in a model": ("o = Holder(np.eye(2))", "(o.k @ np.ones(2))[0]", "o.k[0, 0] = 2.0"),
    "rebound array": ("o = Holder(np.ones(2))", "o.k[0]", "o.k = np.full(2, 2.0)"),
}

WAYS = {
    "global": "def rate():\n    return {read}",
    "default": "def rate(o=o):\n    return {read}",
    "closure": "def outer(o):\n    def rate():\n        return {read}\n    return rate\nrate = outer(o)",
    "attribute": "class Model:\n    def __init__(self):\n        self.o = o\n    def rate(self):\n        o = self.o\n"
    "        return {read}\nrate = Model().rate",
    "callable object": "class Rate:\n    def __call__(self):\n        o = self.o\n        return {read}\n"
    "rate = Rate()\nrate.o = o",
    "class attribute": "class Rate:\n    o = [o]\n    def __call__(self):\n        o, = self.o\n        return {read}\n"
    "rate = Rate()",
    "partial": "rate = functools.partial(lambda o: {read}, o)",
}

FORMS = {
    "ODE": ("daedal.ODE(lambda t, y: [-rate() * y[0]], 1)", "[1.0]", "y"),
    "ImplicitDAE": ("daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + rate() * y[0]], 1)", "([1.0], None)", "y"),
    "SemiExplicitDAE": (
        "daedal.SemiExplicitDAE(lambda t, y, z: [-z[0]], lambda t, y, z: [z[0] - rate() * y[0]], 1, 1)",
        "([1.0], None)",
        "y",
    ),
    "MechanicalSystem": (
        "daedal.MechanicalSystem(1.0, lambda t, q, v: [-rate() * v[0]], n_q=1)",
        "([0.0], [1.0])",
        "v",
    ),
    "late": ("daedal.ODE(lambda t, y: [-(rate() if t > 0.5 else 0.0) * y[0]], 1)", "[1.0]", "y"),
}

SCRIPT = """
{setup}
{way}

problem = {problem}
solver = {solver}

def end():
    sol = {run}
    assert sol.success, sol.message
    return sol.{values}[0, -1]

expected, found_now = [], []
for k in range({before}):
    found_now.append(end())
    expected.append(np.exp(-{part} * float({fresh})))
{change}
for k in range(2):
    found_now.append(end())
    expected.append(np.exp(-{part} * float({fresh})))
assert abs(expected[-1] - expected[0]) > 1e-3

def found():
    return found_now

allowed = 1e-6
"""


def drawn(number: int) -> Script:
    """The container changes first; how it is reached, the form, how many runs come before the change, are drawn."""
    rng, names = np.random.default_rng(number), list(CONTAINERS)
    name = names[number % len(names)]
    setup, read, change = CONTAINERS[name]
    rebinds = change.startswith("o = ") or "rebound" in name
    way = "global" if change.startswith("o = ") else str(rng.choice(list(WAYS)))
    form = str(rng.choice(list(FORMS)))
    problem, initial, values = FORMS[form]
    prepared, before = bool(rng.random() < 0.4), int(rng.integers(1, 7))
    fresh = "rate()" if rebinds or way == "global" else read
    source = IMPORTS + SCRIPT.format(
        setup=setup,
        way=WAYS[way].format(read=read),
        problem=problem,
        solver="daedal.prepare(problem)" if prepared else "None",
        run=f"solver.solve((0.0, 1.0), {initial})" if prepared else f"daedal.solve(problem, (0.0, 1.0), {initial})",
        values=values,
        before=before,
        change=change,
        fresh=fresh,
        part=0.5 if form == "late" else 1.0,
    )
    return Script(f"{name} by {way}, {form}, changed after {before} runs" + ", prepared" * prepared, source)
