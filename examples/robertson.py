"""Robertson's reaction over eleven decades of time: a stiff DAE of index 1, written down as it stands on paper."""

import matplotlib.pyplot as plt
from _figures import show_or_save

import daedal


def reaction(t, y, yp):
    return [
        yp[0] + 0.04 * y[0] - 1e4 * y[1] * y[2],
        yp[1] - 0.04 * y[0] + 1e4 * y[1] * y[2] + 3e7 * y[1] ** 2,
        y[0] + y[1] + y[2] - 1.0,
    ]


sol = daedal.solve_dae(
    reaction,
    (0.0, 1e11),
    [1.0, 0.0, 0.0],
    [-0.04, 0.04, 0.0],
    names=["A", "B", "C"],
    rtol=1e-7,
    atol=[1e-14, 1e-19, 1e-10],
)
print(sol)

reference = daedal.library.robertson().reference
print("relative errors at the end:", reference.error(sol.y[:, -1]))

figure, axes = plt.subplots(figsize=(7, 4))
later = sol.t > 1e-6
axes.semilogx(sol.t[later], sol["A"][later], label="A")
axes.semilogx(sol.t[later], 1e4 * sol["B"][later], label="10⁴ B")
axes.semilogx(sol.t[later], sol["C"][later], label="C")
axes.set(xlabel="t", ylabel="concentration", title="Robertson's reaction")
axes.legend()
show_or_save(figure, "robertson")
