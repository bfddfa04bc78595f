"""Modes, transitions between them, and the run through them."""
