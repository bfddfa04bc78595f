"""Many runs of one model: inputs, workers, results.

All ensembles share one procedure. :func:`daedal.solve_many` checks its arguments (`inputs.py`), divides the members
into chunks and passes these to a *backend*, which returns a :class:`~daedal.ensembles.part.Part` for each, in any
order; the collector (`collector.py`) combines parts into arrays, reductions and checkpoints, and `ensemble.py` is the
result.

A backend is a class with

``name``: its name in ``ensemble.message``, for example ``"2 threads"``;
``__init__(request, workers)``: `request` is a checked :class:`~daedal.ensembles.inputs.EnsembleRequest`: the problem,
  its settings, the interval, the output times, and what to store;
``run(chunks, deliver)``: takes :class:`~daedal.ensembles.columns.Chunk` from the iterator `chunks` (starts and
parameters of some members, as arrays if possible) whenever it has capacity for one, and calls ``deliver(part)`` for
each, in the thread that called ``run``. It returns when all parts are delivered. `KeyboardInterrupt` may occur at any
time: the backend stops the current work and re-raises it.

A member's result must not depend on how members are divided into chunks, or on the backend. Threads (`backends.py`),
processes (`processes.py`), executors and Dask (`executors.py`) share the code for a chunk (`work.py`); ``on="gpu"``
loads the class ``GPUBackend`` of ``daedal.ensembles.gpu`` on demand.

>>> import daedal
>>> sorted(daedal.ensembles.sample({"k": (1.0, 2.0)}, 4))
['k']
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals(), old_names={"Reduction": "daedal.ensembles.Aggregator"})
