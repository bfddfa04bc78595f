"""What a run that Ctrl-C has ended had computed."""

import pytest


def computed_until(run):
    """The solution that KeyboardInterrupt carries out of ``run()``."""
    with pytest.raises(KeyboardInterrupt) as caught:
        run()
    return caught.value.solution
