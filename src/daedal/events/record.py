"""From the switching functions of a run to the record that kernels work on."""

from __future__ import annotations

from functools import cache

import numpy as np

from daedal.events.event import SwitchingFunctions


def switching_record(switching: SwitchingFunctions | None, bridge, n: int, t_span: tuple[float, float], rtol: float):
    """The ROOTS record for functions of a state of length n; `rtol` is the half width of layers by default."""
    from daedal.events.switching import FLOATS, INTEGERS, ROOTS
    from daedal.kernels.records import Arena, Record

    if switching is None:
        return _no_functions()
    m = switching.direction.size
    arena = Arena({**dict.fromkeys((*INTEGERS, *FLOATS), m), "y": n, "yp": n}, integers=INTEGERS)
    arrays = arena.arrays
    for name in ("direction", "terminal", "interior", "touch", "location", "tolerance"):
        arrays[name][:] = getattr(switching, name)
    arrays["count"][:] = switching.occurred
    arrays["delta"][:] = np.where(np.isnan(switching.delta), rtol, switching.delta)
    for name in ("start", "before"):
        arrays[name][:] = switching.initial
    outside = np.abs(switching.initial) > arrays["delta"]
    arrays["side"][:] = np.where(outside, np.sign(switching.initial), 0.0)
    return Record(
        ROOTS,
        arena,
        n=m,
        size=n,
        functions=_callback(switching, bridge, n, m),
        t_end=t_span[1],
        watched=int(np.count_nonzero(switching.location)),
        t_start=t_span[0],
        t_before=t_span[0],
        t_tried=np.inf,
    )


@cache
def _no_functions():
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


def watch_layers(record, system, slope: np.ndarray):
    """Let the method call the check of layers with every step; `slope` is the array where it keeps y'."""
    if not record["watched"]:
        return
    from daedal.events.layer import layer_hook

    record["system"] = system.data.ctypes.data
    record["slope"] = slope.ctypes.data
    record["inner"], record["inner_record"] = system["hook"], system["hook_record"]
    system["hook"], system["hook_record"] = layer_hook.address, record.data.ctypes.data


def leave_layers(record, system):
    """The hook as it was before."""
    if record["watched"]:
        system["hook"], system["hook_record"] = record["inner"], record["inner_record"]
