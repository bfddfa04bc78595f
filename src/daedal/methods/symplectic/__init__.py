"""RATTLE and compositions of it."""
