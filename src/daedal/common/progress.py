"""A progress bar over model time."""

from collections.abc import Callable


class Progress:
    """Progress bar (tqdm) over model time; if `show` is a function, it is called with the time instead."""

    def __init__(self, show: bool | Callable[[float], None], t_span: tuple[float, float]):
        self._t0, self._t1 = t_span
        self._bar = None
        self._tell = show if callable(show) else None
        if show and self._tell is None:
            from tqdm.auto import tqdm

            self._bar = tqdm(
                total=100.0, bar_format="{percentage:3.0f}%|{bar}| {desc} [{elapsed}]", desc=f"t = {self._t0:.4g}"
            )

    def update(self, t: float):
        """Report that model time `t` has been reached."""
        if self._tell is not None:
            self._tell(t)
        if self._bar is not None:
            share = 100.0 * min(max((t - self._t0) / (self._t1 - self._t0), 0.0), 1.0)
            self._bar.set_description(f"t = {t:.4g}", refresh=False)
            self._bar.update(share - self._bar.n)

    def close(self):
        """Stop updating the bar."""
        if self._bar is not None:
            self._bar.close()
