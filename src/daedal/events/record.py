"""From the switching functions of a run to the record that kernels work on."""

from functools import cache
from typing import Any

import numpy as np

from daedal.events.event import SwitchingFunctions


class Switching:
    """The ROOTS record of switching functions of a state of length n; made once, and begun anew for every run."""

    def __init__(self, functions: SwitchingFunctions, n: int):
        from daedal.events.switching import ROOTS
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.records import Record

        m = functions.direction.size
        self.functions, self.count, self.bridge = functions, m, Bridge()
        self._default_delta = np.isnan(functions.delta)
        self.record = Record.allocated(
            ROOTS,
            n=m,
            size=n,
            functions=_callback(functions, self.bridge, n, m),
            watched=int(np.count_nonzero(functions.location)),
            t_tried=np.inf,
        )
        for name in ("direction", "terminal", "interior", "touch", "location", "tolerance"):
            self.record.array(name)[:] = getattr(functions, name)
        self.address = self.record.address
        self._arrays, self._fields = self.record.block.copy(), self.record.data.copy()

    def begin(self, t_end: float, rtol: float):
        """As at the start of a run; `rtol` is the half width of layers by default."""
        self.bridge.refresh()
        self.record.block[:] = self._arrays
        self.record.data[:] = self._fields
        self.record["t_end"] = t_end
        self.record.array("count")[:] = self.functions.occurred
        self.record.array("delta")[:] = np.where(self._default_delta, rtol, self.functions.delta)

    def image(self) -> list[np.ndarray]:
        """All memory that a run changes."""
        return [self.record.block, self.record.data.view(np.int64)]

    def watch_layers(self, system, slope: np.ndarray):
        """Let the method call the check of layers with every step; `slope` is the array where it keeps y'."""
        if not self.record["watched"]:
            return
        from daedal.events.layer import layer_hook

        record = self.record
        record["system"], record["slope"] = system.address, slope.ctypes.data
        record["inner"], record["inner_record"] = system["hook"], system["hook_record"]
        system["hook"], system["hook_record"] = layer_hook.address, record.address

    def leave_layers(self, system):
        """The hook as it was before."""
        if self.record["watched"]:
            system["hook"], system["hook_record"] = self.record["inner"], self.record["inner_record"]


@cache
def no_functions() -> Any:
    """The record of no switching functions at all."""
    from daedal.events.switching import ROOTS
    from daedal.kernels.records import Record

    return Record(ROOTS)


def _callback(switching: SwitchingFunctions, bridge, n: int, m: int):
    """The functions in the form that kernels call, natively if all of them are compiled."""
    if switching.native is not None:

        def store(result, target):
            target[:] = switching.checked(result)

        return bridge.function(switching.native, (n, n), (m,), store, switching.params)
    block = np.zeros(2 * n + m)

    def body(t):
        block[2 * n :] = switching.evaluate(t, block[:n].copy(), block[n : 2 * n].copy())

    return bridge.python(body, block)
