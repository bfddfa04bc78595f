"""The compiled loops that methods share, the records they work on, and how both become machine code.

Begin with `records.py` and `newton.py`; `compilation.py`, `building.py` and `units.py` build and load them.
"""
