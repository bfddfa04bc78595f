"""What can be said about a problem at a point, and about a run that failed."""

from daedal.analysis.index import Level, LocalIndex, local_index, partials, pencil_index

__all__ = ["Level", "LocalIndex", "local_index", "partials", "pencil_index"]
