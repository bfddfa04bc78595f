"""The kernels' record of a run's switching functions."""

from functools import cache
from typing import Any

import numpy as np

from daedal.events.event import Enclosed, SwitchingFunctions

MOST_BOXES, FURTHER_BOXES = 2000, 50
"""Maximum number of pieces of a step that are examined to decide whether a function has a zero in it: usually, and in
steps after an undecided search. Chosen."""
_DEEPEST = 64


class Switching:
    """The ROOTS record of switching functions for a state of length n, created once and reset for every run."""

    def __init__(self, functions: SwitchingFunctions, n: int, most_boxes: int = MOST_BOXES):
        from daedal.events.switching import ROOTS
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.records import Record

        m = functions.direction.size
        self.functions, self.count, self.bridge = functions, m, Bridge()
        self._made_with = functions.params
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
        self.search = self._search(functions, most_boxes) if functions.enclosed else None
        self._enclosed = np.zeros(m) if self.search is None else self.search.array("enclosed").copy()
        self.address = self.record.address
        self._arrays, self._fields = self.record.block.copy(), self.record.data.copy()
        self._begun: tuple[Any, ...] | None = None  # functions, their state, and the arrays and fields of their start

    def _search(self, functions: SwitchingFunctions, most_boxes: int) -> Any:
        """The SEARCH record; enclosed functions are not sampled, unless they may touch zero."""
        from daedal.events.switching import SEARCH
        from daedal.kernels.records import Record

        interior, chain = self.record.array("interior"), 0
        search = Record.allocated(
            SEARCH, n=self.count, most_boxes=most_boxes, further_boxes=min(FURTHER_BOXES, most_boxes), depth=_DEEPEST
        )
        self._chain = []
        for enclosed in functions.enclosed:
            self._chain.append(_enclosure(enclosed, self.bridge, chain))
            chain = self._chain[-1].address
            places = enclosed.first + enclosed.program.index
            search.array("enclosed")[places] = (functions.location[places] == 0) & functions.interior[places]
        search["enclosure"] = chain
        interior[(search.array("enclosed") != 0) & ~functions.touch] = 0
        self.record["search"], self.record["encloses"] = search.address, 1
        self._search_fields = search.block.copy(), search.data.copy()
        return search

    def takes(self, functions: SwitchingFunctions) -> bool:
        """Use the given functions if they differ only in parameters, directions and start; return whether they do."""
        if functions is self.functions:
            return True
        if not functions.is_like(self.functions):
            return False
        self.functions = functions
        self.bridge.replace(self._made_with, functions.params)
        return True

    def located(self, i: int, t: float) -> str:
        """How zeros of function i are located at t; bounds that fail later in the run do not change the answer."""
        if self.search is None or not self._enclosed[i]:
            return "sampled"
        array, record = self.search.array, self.record
        holds = array("enclosed")[i] > array("doubtful")[i]
        ahead = t - array("doubt")[i]
        return "enclosed" if holds or ahead * (record["t_end"] - record["t_begin"]) <= 0.0 else "sampled"

    @property
    def doubts(self) -> tuple[tuple[str, float], ...]:
        """Functions for which the existence of zeros was undecided, each with the first such time."""
        if self.search is None or not self.search["doubts"]:
            return ()
        names, doubt = self.functions.names, self.search.array("doubt")
        return tuple((names[i], float(doubt[i])) for i in np.flatnonzero(self.search.array("doubtful")))

    def begin(self, t_begin: float, t_end: float, rtol: float):
        """Reset to the start of a run; `rtol` is the half width of layers by default."""
        functions, record = self.functions, self.record
        self.bridge.refresh()
        begun, key = self._begun, (rtol, functions.occurred.tobytes())
        if begun is None or begun[0] is not functions or begun[1] != key:
            record.block[:], record.data[:] = self._arrays, self._fields
            record.array("count")[:] = functions.occurred
            record.array("direction")[:] = functions.direction
            record["held"] = len(functions.held)
            for i, side, time in functions.held:
                record.array("held_side")[i], record.array("held_for")[i] = side, time
            record.array("delta")[:] = np.where(self._default_delta, rtol, functions.delta)
            self._begun = functions, key, record.block.copy(), record.data.copy()
        else:
            record.block[:], record.data[:] = begun[2:]
        if self.search is not None:
            self.search.block[:], self.search.data[:] = self._search_fields
        record["t_begin"], record["t_end"] = t_begin, t_end

    def image(self) -> list[np.ndarray]:
        """All memory that a run changes."""
        search = [] if self.search is None else [self.search.block, self.search.data.view(np.int64)]
        return [self.record.block, self.record.data.view(np.int64), *search]

    def watch_layers(self, system, slope: np.ndarray):
        """Make the method check the layers in every step; `slope` is the array in which it stores y'."""
        if not self.record["watched"]:
            return
        from daedal.events.layer import layer_hook

        record = self.record
        record["system"], record["slope"] = system.address, slope.ctypes.data
        record["inner"], record["inner_record"] = system["hook"], system["hook_record"]
        system["hook"], system["hook_record"] = layer_hook.address, record.address

    def leave_layers(self, system):
        """Restore the previous hook."""
        if self.record["watched"]:
            system["hook"], system["hook_record"] = self.record["inner"], self.record["inner_record"]


def _enclosure(enclosed: Enclosed, bridge: Any, following: int) -> Any:
    """The ENCLOSURE record of functions, whose parameters are read before every run."""
    from daedal.events.enclosure import ENCLOSURE
    from daedal.kernels.intervals import PROGRAM
    from daedal.kernels.records import Record

    program = enclosed.program
    numbers = np.zeros(0)
    if enclosed.read is not None:
        numbers = bridge.numbers(enclosed.read, enclosed.params)
    codes = Record.allocated(
        PROGRAM,
        n=program.size,
        given=program.given,
        length=program.numbers.size,
        numbers=program.numbers,
        lower=program.bounds.copy(),
        upper=program.bounds.copy(),
        steady=np.ones(program.size, dtype=np.int64),
        **program.columns,
    )
    return Record.allocated(
        ENCLOSURE,
        program=codes,
        n=program.n,
        functions=program.values.size,
        index=enclosed.first + program.index,
        values=program.values,
        rates=program.rates,
        inputs=program.nodes.size,
        nodes=program.nodes,
        places=program.places,
        parameters=program.parameter_nodes.size,
        parameter_nodes=program.parameter_nodes,
        parameter_places=program.parameter_places,
        numbers=numbers,
        following=following,
    )


@cache
def no_functions() -> Any:
    """The record without switching functions."""
    from daedal.events.switching import ROOTS
    from daedal.kernels.records import Record

    return Record(ROOTS)


def _callback(switching: SwitchingFunctions, bridge, n: int, m: int):
    """The functions in callback form, native if all of them are compiled."""
    native = switching.native
    if native is not None:

        def store(result, target):
            target[:] = switching.checked(result)

        native = native.of_length(n) if hasattr(native, "of_length") else native
        return bridge.function(native, (n, n), (m,), store, switching.params)
    block = np.zeros(2 * n + m)

    def body(t):
        block[2 * n :] = switching.evaluate(t, block[:n].copy(), block[n : 2 * n].copy())

    return bridge.python(body, block)
