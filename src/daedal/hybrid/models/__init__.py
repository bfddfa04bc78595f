"""Discontinuous models made of modes and transitions: sliding, friction, impact, contacts, hysteresis, breaking."""
