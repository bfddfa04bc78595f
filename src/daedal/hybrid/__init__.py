"""Discontinuous models: modes, transitions between them, and the run through them."""
