"""One mechanism, nine pairs of formulation and method: what each costs, how accurate it is, and how far it drifts."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save

import daedal

model = daedal.library.crank_slider()
span, tolerances = (0.0, 10.0), [1e-4, 1e-6, 1e-8]
pairs: dict[str, tuple[Any, str]] = {
    "projection, DOPRI5": ("projection", "dopri5"),
    "Baumgarte, DOPRI5": (daedal.formulations.Baumgarte(gamma=5.0), "dopri5"),
    "index 1, DOPRI5": ("index1", "dopri5"),
    "state space, DOPRI5": ("state_space", "dopri5"),
    "GGL, DASSL": ("ggl", "dassl"),
    "projected invariants, DASSL": ("projected_invariants", "dassl"),
    "minimal extension, DASSL": ("minimal_extension", "dassl"),
    "index 2, DASSL": ("index2", "dassl"),
    "index 3, DASSL": ("index3", "dassl"),
}
print(daedal.advise(model.problem, span, model.initial, rtol=1e-6))

figure, (work, drift) = plt.subplots(1, 2, figsize=(10, 4.4))
for i, (name, (formulation, method)) in enumerate(pairs.items()):
    style = {"color": f"C{i}", "marker": "osD^vP*Xh"[i], "linestyle": "-" if method == "dopri5" else "--"}
    steps, errors, drifts = [], [], []
    for rtol in tolerances:
        sol = daedal.solve(
            model.problem, span, model.initial, formulation=formulation, method=method, rtol=rtol, atol=rtol
        )
        steps.append(sol.stats.steps)
        errors.append(np.max(np.abs(sol.y[:, -1] - model.reference.y)))
        drifts.append(max(sol.drift["position before projection"], 1e-17))
    print(f"{name:28} error {errors[-1]:.1e} in {steps[-1]:5d} steps, drift {drifts[-1]:.1e}")
    work.loglog(steps, errors, label=name, **style)
    drift.loglog(tolerances, drifts, **style)
work.set(xlabel="steps", ylabel="error of (q, v) at t = 10", title="Crank and slider: work and precision")
drift.set(xlabel="rtol", ylabel="largest |g| of what was integrated", title="Drift")
drift.legend(*work.get_legend_handles_labels(), fontsize=7, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 0.13))
show_or_save(figure, "formulations")
