"""Results of a run: values, dense output, quantities by name, tables and files.

Start with `solution.py`; `quantities.py` contains the common base of all solutions.
"""
