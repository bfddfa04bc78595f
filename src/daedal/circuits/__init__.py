"""Circuits from netlists: modified nodal analysis, loops and cutsets, operating points.

>>> from daedal import circuits
>>> circuit = circuits.parse('''
... V1 in 0 SIN(0 10 50)
... D1 in out
... C1 out 0 100u
... R1 out 0 1k
... ''')
>>> circuit.problem().names
('v(in)', 'v(out)', 'i(V1)')
"""

from daedal.circuits.circuit import Circuit, parse, read
from daedal.circuits.circuit_equations import CircuitEquations as CircuitEquations
from daedal.circuits.elements import Branch, Element
from daedal.circuits.loops_and_cutsets import Topology
from daedal.circuits.netlist import quantity
from daedal.circuits.operating_point import OperatingPoint
from daedal.circuits.signals import Constant, PiecewiseLinear, Pulse, Sine

__all__ = [
    "Branch",
    "Circuit",
    "Constant",
    "Element",
    "OperatingPoint",
    "PiecewiseLinear",
    "Pulse",
    "Sine",
    "Topology",
    "parse",
    "quantity",
    "read",
]
