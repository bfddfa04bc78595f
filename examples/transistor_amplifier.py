"""A transistor amplifier: a stiff DAE with a singular mass matrix, as plain functions that become machine code."""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save

import daedal

model = daedal.library.transistor_amplifier()
sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
print(sol)
print("relative errors at the end:", model.reference.error(sol.y[:, -1]))

t = np.linspace(*model.t_span, 2000)
y = sol(t)
figure, (top, bottom) = plt.subplots(2, sharex=True, figsize=(7, 5))
top.plot(t, 0.1 * np.sin(200.0 * np.pi * t), color="gray")
top.set(ylabel="input [V]", title="Transistor amplifier")
bottom.plot(t, y[sol.names.index("U5")], label="U5, first stage")
bottom.plot(t, y[sol.names.index("U8")], label="U8, output")
bottom.set(xlabel="t [s]", ylabel="[V]")
bottom.legend()
show_or_save(figure, "transistor_amplifier")
