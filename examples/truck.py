"""A truck drives over a hump: modified BDF on the equations of motion as they are, against DASSL on first-order forms.

The experiment is that of L. Wunderlich's thesis (2005), with 20 s and her tolerances, on another truck: the thesis
prints no parameters. Her 526 steps with modified BDF and 1268 with DASSL cannot be compared with those below.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save

import daedal

model = daedal.library.truck()
times = np.linspace(0.0, 20.0, 2001)
reference = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-10, atol=1e-10, t_eval=times)

# The thesis: ATOL 1e-4 and RTOL 1e-3 of positions, 1e-3 and 1e-2 of velocities, 1e-2 and 1 of the multiplier, which is
# no test. It measures positions from the equilibrium, where RTOL adds little; here they are heights up to 2.9 m.
n = model.problem.n_q
tolerances: dict[str, Any] = {"atol": np.repeat([1e-4, 1e-3], n), "rtol": np.repeat([1e-12, 1e-2], n)}
runs: dict[str, dict[str, Any]] = {
    "modified BDF": {"method": "modified_bdf"},
    "modified BDF, thesis": {"method": daedal.methods.ModifiedBDF(controller="thesis")},
    "DASSL, index 3": {"method": "dassl", "formulation": "index3"},
    "DASSL, GGL": {"method": "dassl", "formulation": "ggl"},
    "Radau, 3 stages": {"method": daedal.methods.Collocation("radau", stages=3)},
    "PHEM56": {"method": "phem56"},
}
PLOTTED = ("modified BDF", "DASSL, index 3", "DASSL, GGL")
joint, cabin = model.problem.constraint_names.index("joint z"), "z4"
print(f"{'largest errors on [0, 20]':26}{'steps':>6}{'rejected':>10}{'q':>10}{'v':>10}{'lambda':>10}")
figure, (height, force, error) = plt.subplots(3, 1, figsize=(7.5, 8.5), sharex=True)
for name, options in runs.items():
    sol = daedal.solve(model.problem, model.t_span, model.initial, t_eval=times, **tolerances, **options)
    errors = [np.abs(getattr(sol, part) - getattr(reference, part)).max() for part in ("q", "v", "lam")]
    steps = f"{sol.stats.steps:6}{sol.stats.rejected:10}"
    print(f"{name:26}{steps}" + "".join(f"{value:10.1e}" for value in errors))
    if name in PLOTTED:
        computed = dict(zip(sol.raw.names, sol.raw.y, strict=True))["lam[joint z]"]  # as the method has it
        colour = f"C{PLOTTED.index(name)}"
        height.plot(times, sol[cabin] - sol[cabin][0], colour)
        force.plot(times[1:], computed[1:] / 1e3, colour, lw=1)
        error.semilogy(times[1:], np.abs(computed - reference.lam[joint])[1:], colour, lw=1, label=name)
height.plot(times, model.extra["road"](times)[1], "k:", label="road under the front wheel")
force.plot(times, reference.lam[joint] / 1e3, "k:", label="reference")
height.set(ylabel="height of the cabin [m]", title="A truck drives over a hump of 12 cm")
force.set(ylabel="multiplier of the joint [kN]")
error.set(xlabel="t [s]", ylabel="error of the multiplier [N]", ylim=(1e-3, 1e3))
for axes, columns in ((height, 1), (force, 1), (error, 3)):
    axes.legend(fontsize=8, ncols=columns)
show_or_save(figure, "truck")
