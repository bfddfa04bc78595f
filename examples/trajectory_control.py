"""Which controls keep a re-entering vehicle on a prescribed path? A DAE of index 2 answers without optimisation."""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save

import daedal

model = daedal.library.tppc2()
sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
print(sol)
for name, value, error in zip(sol.names, sol.y[:, -1], model.reference.error(sol.y[:, -1])):
    print(f"{name:8} {value:16.8f}   relative error {error:.1e}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
left.plot(sol.t, sol["H"] / 3280.84)
left.set(xlabel="t [s]", ylabel="altitude [km]", title="Re-entry")
for name, label in (("alpha", "angle of attack"), ("beta", "bank angle"), ("gamma", "flight-path angle")):
    right.plot(sol.t, np.degrees(sol[name]), label=label)
right.set(xlabel="t [s]", ylabel="degrees", title="Controls")
right.legend()
show_or_save(figure, "trajectory_control")
