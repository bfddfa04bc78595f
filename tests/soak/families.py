"""All families of random cases: each is a function of a number, which is the seed."""

from __future__ import annotations

from differential.families import drawn as problems
from soak import (
    clocks,
    derivatives,
    events,
    functions,
    guards,
    index_two,
    machines,
    mistakes,
    mixing,
    networks,
    pulses,
    remedies,
    sliding,
    squares,
    stale,
)

FAMILIES = {
    "problems": problems,
    "functions": functions.drawn,
    "pulses": pulses.drawn,
    "squares": squares.drawn,
    "sliding": sliding.drawn,
    "clocks": clocks.drawn,
    "guards": guards.drawn,
    "stale": stale.drawn,
    "mistakes": mistakes.drawn,
    "events": events.drawn,
    "remedies": remedies.drawn,
    "derivatives": derivatives.drawn,
    "mixing": mixing.drawn,
    "index_two": index_two.drawn,
    "networks": networks.drawn,
    "machines": machines.drawn,
    "linkages": machines.small,
}
