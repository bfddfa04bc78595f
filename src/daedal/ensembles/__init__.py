"""Many runs of one model: inputs, workers, results.

One way for all of them. :func:`daedal.solve_many` checks its arguments (`inputs.py`), cuts the members
into chunks and hands these to a *backend*, which gives back a :class:`~daedal.ensembles.part.Part` for each, in any
order; the collector (`collector.py`) puts parts into arrays, reductions and checkpoints, and `ensemble.py` is the
result.

A backend is a class with

* ``name``: what ``ensemble.message`` calls it, for example ``"2 threads"``;
* ``__init__(request, workers)``: `request` is an :class:`~daedal.ensembles.inputs.EnsembleRequest`, checked: the
  problem, its settings, the interval, the output times, what is to be kept;
* ``run(chunks, deliver)``: takes :class:`~daedal.ensembles.columns.Chunk` from the iterator `chunks` (starts and
  parameters of some members, as arrays where they are) whenever it has room for one, and calls ``deliver(part)`` for
  each, in the thread that called ``run``. It returns when all are delivered. `KeyboardInterrupt` may arrive at any
  time: it stops what is under way and lets the exception go on.

Nothing of a member's result may depend on how members are cut into chunks, or on who computes them. Threads
(`backends.py`), processes (`processes.py`), executors and Dask (`executors.py`) share the work on a chunk (`work.py`);
``on="gpu"`` loads ``daedal.ensembles.gpu`` with a class ``GPUBackend`` when it is asked for.
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals(), old_names={"Reduction": "daedal.ensembles.Aggregator"})
