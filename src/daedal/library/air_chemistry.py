"""Chemistry of the air: the pollution problem of twenty species."""

import numpy as np

import daedal
from daedal.library.model import Model, explicit_start, known_reference, model
from daedal.library.sources import TEST_SET

# Verwer's 25 reactions: the rate constant, the species that react, those that come about (one twice where two of it do)
REACTIONS = (
    (0.35, ("NO2",), ("NO", "O3P")),
    (26.6, ("NO", "O3"), ("NO2",)),
    (1.23e4, ("HO2", "NO"), ("NO2", "OH")),
    (8.6e-4, ("HCHO",), ("HO2", "HO2", "CO")),
    (8.2e-4, ("HCHO",), ("CO",)),
    (1.5e4, ("HCHO", "OH"), ("HO2", "CO")),
    (1.3e-4, ("ALD",), ("MEO2", "HO2", "CO")),
    (2.4e4, ("ALD", "OH"), ("C2O3",)),
    (1.65e4, ("C2O3", "NO"), ("NO2", "MEO2", "CO2")),
    (9.0e3, ("C2O3", "NO2"), ("PAN",)),
    (2.2e-2, ("PAN",), ("C2O3", "NO2")),
    (1.2e4, ("MEO2", "NO"), ("CH3O", "NO2")),
    (1.88, ("CH3O",), ("HCHO", "HO2")),
    (1.63e4, ("NO2", "OH"), ("HNO3",)),
    (4.8e6, ("O3P",), ("O3",)),
    (3.5e-4, ("O3",), ("O1D",)),
    (1.75e-2, ("O3",), ("O3P",)),
    (1.0e8, ("O1D",), ("OH", "OH")),
    (4.44e11, ("O1D",), ("O3P",)),
    (1.24e3, ("SO2", "OH"), ("SO4", "HO2")),
    (2.1, ("NO3",), ("NO",)),
    (5.78, ("NO3",), ("NO2", "O3P")),
    (4.74e-2, ("NO2", "O3"), ("NO3",)),
    (1.78e3, ("NO3", "NO2"), ("N2O5",)),
    (3.12, ("N2O5",), ("NO3", "NO2")),
)
SPECIES = (
    *("NO2", "NO", "O3P", "O3", "HO2", "OH", "HCHO", "CO", "ALD", "MEO2"),
    *("C2O3", "CO2", "PAN", "CH3O", "HNO3", "O1D", "SO2", "SO4", "NO3", "N2O5"),
)
INITIAL = {"NO": 0.2, "O3": 0.04, "HCHO": 0.1, "CO": 0.3, "ALD": 0.01, "SO2": 0.007}


FIRST = np.array([SPECIES.index(reacting[0]) for _, reacting, _ in REACTIONS])
SECOND = np.array([SPECIES.index(reacting[1]) if len(reacting) == 2 else -1 for _, reacting, _ in REACTIONS])
RATE = np.array([rate for rate, _, _ in REACTIONS])
# How many of species i a reaction k brings about, less those that it uses up: i, k and that number
CHANGES = [
    (i, k, made.count(name) - reacting.count(name))
    for k, (_, reacting, made) in enumerate(REACTIONS)
    for i, name in enumerate(SPECIES)
    if made.count(name) != reacting.count(name)
]
CHANGED, BY, AMOUNT = (np.array(column) for column in zip(*CHANGES, strict=True))


def pollution_residual(t, y, yp):
    rate = np.empty(25)
    for k in range(25):
        rate[k] = RATE[k] * y[FIRST[k]]
        if SECOND[k] >= 0:
            rate[k] = rate[k] * y[SECOND[k]]
    r = yp.copy()
    for j in range(len(CHANGED)):
        r[CHANGED[j]] = r[CHANGED[j]] - AMOUNT[j] * rate[BY[j]]
    return r


@model(
    title="Air pollution (POLLU)",
    source="J. G. Verwer, Gauss-Seidel iteration for stiff ODEs from chemical kinetics, SIAM J. Sci. Comput. 15 "
    "(1994), pp. 1243-1250; " + TEST_SET,
    description="The chemistry of polluted air, as developed at the Dutch National Institute of Public Health: 25 "
    "reactions of 20 species, among them ozone and nitrogen oxides, over one hour. Rate constants span sixteen orders "
    "of magnitude, concentrations as many.",
    equations=r"""y_i' = \sum_{k=1}^{25} \nu_{ik}\, k_k \prod_{j\ \text{reacts in}\ k} y_j,\qquad
    i = 1, \ldots, 20""",
)
def pollution() -> Model:
    """Twenty species in the air over 60 minutes; ``daedal.library.air_chemistry.REACTIONS`` lists the reactions."""
    problem = daedal.ImplicitDAE(pollution_residual, 20, names=SPECIES)
    return Model(
        problem=problem,
        t_span=(0.0, 60.0),
        initial=explicit_start(problem, np.array([INITIAL.get(name, 0.0) for name in SPECIES])),
        index=0,
        reference=known_reference("pollution"),
        options={"rtol": 1e-6, "atol": 1e-12},
        plot={"variables": ["NO2", "NO", "O3", "PAN"], "factors": {"PAN": 100.0}},
    )
