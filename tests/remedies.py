"""What tests of remedies share: a row provokes a message, and does what the message says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import daedal


@dataclass(frozen=True)
class Remedy:
    """A case, what the message must say, and what its remedies, taken as they are written, must give.

    ``taken`` holds pairs of a run and what comes out at its end; a run returns a solution, or numbers.
    """

    name: str
    provoke: Callable[[], Any]
    says: tuple[str, ...]
    taken: tuple[tuple[Callable[[], Any], Any], ...]
    rel: float = 1e-4

    def check(self):
        """Provoke the message, read it, and take its remedies."""
        with pytest.raises(daedal.DaedalError) as caught:
            self.provoke()
        message = str(caught.value)
        for words in self.says:
            assert words in message, f"'{words}' is not in:\n{message}"
        for run, expected in self.taken:
            np.testing.assert_allclose(at_the_end(run()), expected, rtol=self.rel, atol=self.rel)


def at_the_end(result) -> np.ndarray:
    """The state at the end of a run that went well."""
    if hasattr(result, "success"):
        assert result.success, result.message
        values = result.q if hasattr(result, "q") else result.y
        return np.asarray(values)[:, -1]
    return np.asarray(result)


def named(rows: list[Remedy]):
    """For pytest: one test for each row."""
    return pytest.mark.parametrize("remedy", rows, ids=[row.name for row in rows])
