"""Switching functions and their zeros along a step.

Begin with `event.py`; `enclosure.py` shows that a step has no zero, `roots.py` locates one.
"""
