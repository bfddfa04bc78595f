"""One pendulum, three sets of equations: how far each lets the constraint drift."""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save

import daedal

labels = {
    "index1": "index 1: accelerations constrained",
    "index2": "index 2: velocities constrained",
    "ggl": "stabilised index 2: positions and velocities",
}
figure, axes = plt.subplots(figsize=(7, 4))
for form, label in labels.items():
    model = daedal.library.pendulum(form)
    options = dict(model.options) | {"rtol": 1e-6, "atol": 1e-6}
    sol = daedal.solve(model.problem, (0.0, 20.0), model.initial, **options)
    drift = np.maximum.accumulate(np.abs(model.extra["constraints"](sol.y)[0]))
    print(f"{label:46} {sol.stats.steps:5d} steps, largest error of the length {drift[-1]:.1e}")
    axes.semilogy(sol.t[1:], drift[1:], label=label)
axes.set(xlabel="t", ylabel=r"largest $|z_1^2 + z_2^2 - 1|$ so far", title="Drift of a pendulum, rtol = 1e-6")
axes.legend()
show_or_save(figure, "pendulum_forms")
