"""What a change of the step size does to a multiplier: BDF for the first-order form, and modified BDF.

A particle is driven round a circle by a tangential force, y'' = (2 y2, -2 y1) + lambda y; the solution is
y = (sin t^2, cos t^2), lambda = -4 t^2. The steps are those of Tables 2.3 and 3.1 of L. Wunderlich's thesis (2005).
"""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save

import daedal

model = daedal.library.particle_on_circle()
steps = 1e-3 * np.array([1.0, 1.0, 0.2, 0.04, 0.008, 0.008, 0.016, 0.032, 0.064, 0.064])
grid = 1.0 + np.concatenate([[0.0], np.cumsum(steps)])


def error(family):
    method = daedal.methods.ModifiedBDF(family=family, max_order=1, grid=grid)
    sol = daedal.solve(model.problem, (1.0, grid[-1]), model.initial, method=method)
    return np.abs(sol["lambda"] + 4.0 * sol.t**2)[1:]


ordinary, modified = error("ordinary"), error("sand")
print("step  h x 1000   implicit Euler   modified Euler   (errors of lambda)")
for i, h in enumerate(steps):
    print(f"{i + 1:4}{1e3 * h:10.3f}{ordinary[i]:17.4f}{modified[i]:17.4f}")

tolerance = 1e-6
sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=tolerance, atol=tolerance)
exact = np.array([model.extra["exact"](t) for t in sol.t]).T
changes = np.count_nonzero(np.abs(np.diff(sol.history.h)) > 1e-12)
print(f"{sol.method}: {sol.stats.steps} steps with {changes} changes of the step size")
print(f"largest error of lambda {np.abs(sol['lambda'] - exact[2]).max():.1e} (lambda grows to -16)")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.semilogy(range(1, 11), ordinary, "C3s-", label="implicit Euler")
left.semilogy(range(1, 11), modified, "C0o-", label="modified Euler")
left.semilogy(range(1, 11), steps, "k:", label="step size")
left.set(xlabel="step", ylabel="error of lambda", title="A given sequence of steps, order 1", ylim=(None, 1e3))
right.semilogy(sol.t[1:], np.abs(sol["lambda"] - exact[2])[1:], "C0o-", ms=3, label="error of lambda")
right.semilogy(sol.history.t, sol.history.h, "k:", label="step size")
right.set(xlabel="t", title=f"Modified BDF with step control, tolerance {tolerance:g}")
left.legend(ncols=3, loc="upper center", fontsize=8)
right.legend()
show_or_save(figure, "second_order")
