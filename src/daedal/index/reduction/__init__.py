"""Reformulation of problems of any index as problems of index 1 or 2 with the same solutions."""

WAYS = (
    "dummy_derivatives",
    "coordinate_partitioning",
    "minimal_extension",
    "stabilised",
    "projection",
    "strangeness_free",
)
"""The index reduction methods, by name."""
