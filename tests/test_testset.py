"""The Test Set for Initial Value Problem Solvers (Mazzia, Magherini), solved with the defaults from its native index.

The error is that of the test set: of each component, relative to its size or to the ratio of the absolute to the
relative tolerance, whichever matters.
"""

import warnings

import numpy as np
import pytest

import daedal
from daedal import library
from testset import TESTSET

NAMES = ["-".join([name, *map(str, parameters.values())]) for name, parameters in TESTSET]


def final_error(model, rtol):
    """The error at the end of a run, in units of what it is relative to."""
    ratio = np.asarray(model.options["atol"]) / model.options["rtol"]
    switches = model.options.get("switches", "auto")
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol * ratio, switches=switches)
    assert sol.success and sol.t[-1] == model.t_span[1] == model.reference.t
    reference = model.reference.y
    error = np.abs(sol.y[: reference.size, -1] - reference) / (np.abs(reference) + ratio)
    return float(np.nanmax(error))


@pytest.mark.parametrize(("name", "parameters"), TESTSET, ids=NAMES)
def test_defaults_are_as_accurate_as_asked(name, parameters):
    model = library.get(name, **parameters)
    tolerances = (1e-4, 1e-6, 1e-8)
    errors = [final_error(model, rtol) for rtol in tolerances]
    assert all(error < 100.0 * rtol for error, rtol in zip(errors, tolerances, strict=True)), errors
    assert errors[0] > errors[1] > errors[2], errors


# Values printed in the reports of the test set, by component, and how far they are right
PUBLISHED = {
    "hires": ({0: 0.7371312573325668e-3, 3: 0.1175651343283149e-2, 7: 0.2850001604814231e-2}, 1e-13),
    "oregonator": ({0: 0.1000814870318523e1, 1: 0.1228178521549917e4, 2: 0.1320554942846706e3}, 5e-13),
    "van_der_pol": ({0: 0.1706167732170483e1, 1: -0.8928097010247975}, 1e-13),
    "ring_modulator": ({1: -0.7367485485540825e-2, 2: 0.2582956709291169, 9: 0.7267198267264553e-3}, 5e-10),
    "pollution": ({0: 0.5646255480022769e-1, 15: 0.4352846369330103e-17, 19: 0.5682943292316392e-4}, 1e-13),
    "chemical_akzo_nobel": ({0: 0.1150794920661702, 1: 0.1203831471567715e-2, 5: 0.4873531310307455e-2}, 1e-13),
    "medical_akzo_nobel": ({78: 0.2339942217046434e-3, 148: 0.3595616017506735e-3, 209: 0.4026980529594953}, 5e-9),
    "elastic_beam": ({0: -0.5792366591294675e-2, 39: -0.1767201761075102, 79: 1.186724615129384}, 1e-9),
    "pleiades": ({0: 0.3706139143970502, 7: -0.3943437585517392e1, 27: -0.1947020434263292e1}, 1e-13),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_references_are_those_of_the_test_set(name):
    values, accuracy = PUBLISHED[name]
    reference = library.get(name).reference.y
    np.testing.assert_allclose(reference[list(values)], list(values.values()), rtol=accuracy)


def energy_of_stars(y):
    masses = np.arange(1.0, 8.0)
    places, velocities = y[:14].reshape(2, 7), y[14:].reshape(2, 7)
    i, j = np.triu_indices(7, 1)
    distances = np.hypot(*(places[:, i] - places[:, j]))
    return 0.5 * np.sum(masses * velocities**2) - np.sum(masses[i] * masses[j] / distances)


CONSTANT = {
    "the enzyme, free or bound": ("hires", {}, lambda y: y[6] + y[7]),
    "sulphur in the air": ("pollution", {}, lambda y: y[16] + y[17]),
    "nitrogen in the air": ("pollution", {}, lambda y: y[[0, 1, 12, 14, 18]].sum() + 2.0 * y[19]),
    "the sum of the diodes' currents": ("ring_modulator", {"form": "index2"}, lambda y: y[9:13].sum()),
    "the derivative of that sum": ("ring_modulator", {"form": "index2"}, lambda y: y[2] - y[3] + y[4] - y[5]),
    "the energy of the stars": ("pleiades", {}, energy_of_stars),
    "the momentum of the stars": ("pleiades", {}, lambda y: y[14:].reshape(2, 7) @ np.arange(1.0, 8.0)),
}


@pytest.mark.parametrize("what", CONSTANT)
def test_what_is_conserved_is_so_in_the_references(what):
    name, parameters, value = CONSTANT[what]
    model = library.get(name, **parameters)
    np.testing.assert_allclose(value(model.reference.y), value(model.initial[0]), rtol=1e-12, atol=1e-13)


def test_the_force_on_the_beam_ends_between_steps():
    """It depends on time alone, so that long steps need not look for it: Radau begins, which minds no waves."""
    model = library.elastic_beam()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sol = daedal.solve(model.problem, (0.0, 3.5), model.initial, rtol=1e-4, atol=1e-4)
    assert "jacobian" in sol.functions and [event.t for event in sol.events] == [np.pi]
    assert np.pi in sol.t and sol.method.startswith("Radau") and sol.stats.steps < 100


def test_switches_in_steps_of_a_few_units_of_roundoff():
    """Diodes whose currents the tolerance does not resolve: the search for switches goes on all the same."""
    model = library.get("ring_modulator", form="index2")
    sol = daedal.solve(model.problem, model.t_span, model.initial, method="radau", rtol=1e-13, atol=1e-13)
    assert sol.success and sol.t[-1] == model.t_span[1]
