"""Compiled loops shared by methods, the records they work on, and their compilation to machine code.

Start with `records.py` and `newton.py`; `compilation.py`, `building.py` and `units.py` build and load the code.
"""
