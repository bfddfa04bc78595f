"""Figures that notebooks display only once."""

import io

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A pyplot figure for notebooks with inline figures.

    Such notebooks display open figures at the end of a cell, so that the result of the cell would appear twice.
    """

    def _ipython_display_(self) -> None:
        import matplotlib.pyplot as plt
        from IPython.display import Image, display

        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=self.dpi)
        display(Image(data=stream.getvalue()))
        plt.close(self)
