"""Switching functions and their zeros along a step.

Start reading at `event.py`; `enclosure.py` proves that a step has no zero, `roots.py` locates one.
"""
