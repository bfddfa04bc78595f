"""What came out of a run: values, dense output, quantities by name, tables, and files.

Begin with `solution.py`; `quantities.py` has what all solutions have in common.
"""
