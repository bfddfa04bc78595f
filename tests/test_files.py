"""Solutions as files: the way there and back, and files that are damaged, of a newer version or hostile."""

import io
import json
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import daedal
from daedal.common.tabular import FunctionTable
from daedal.events.event import EventRecord
from daedal.solution.solution import DenseOutput, History, Solution, Statistics
from daedal.solution.status import STATUS_NUMBERS, Status

PARTS = ("t", "y", "yp", "z", "q", "v", "a", "lam", "r", "w", "reaction", "x", "xp", "xpp", "mode_index")


def assert_same(one, other):
    """The same class, arrays, names, events, statistics, words."""
    assert type(one) is type(other) and repr(one) == repr(other) and one.names == other.names
    for name in PARTS:
        try:
            value = getattr(one, name)
        except (AttributeError, daedal.InvalidProblemError):
            continue
        assert np.array_equal(value, getattr(other, name), equal_nan=True), name
    for first, second in zip(one.quantities(), other.quantities(), strict=True):
        assert first.names == second.names and np.array_equal(first.rows(), second.rows(), equal_nan=True)
    for name in ("success", "status", "message", "stats", "drift", "functions", "event_names", "attributes"):
        assert getattr(one, name) == getattr(other, name), name
    assert repr(one.events) == repr(other.events)
    for first, second in zip(one.t_events + one.y_events, other.t_events + other.y_events, strict=True):
        assert np.array_equal(first, second)


def there_and_back(sol, tmp_path):
    path = sol.save(tmp_path / "sol")
    assert path.suffix == ".npz"
    again = daedal.load(path)
    assert_same(sol, again)
    content = path.read_bytes()
    assert again.save(path).read_bytes() == content  # and once more
    return again


def rod_pendulum():
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [0.0, -p["g"]],
        lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=2,
        n_constraints=1,
        names=["x", "y"],
        constraint_names=["rod"],
        params={"g": 9.81},
    )


START = ([1.0, 0.0], [0.0, 0.0])


# --- there and back ---------------------------------------------------------------------------------------------------


def test_a_first_order_solution(tmp_path):
    events = [daedal.Event(lambda t, y: y[0] - 0.5, name="half"), lambda t, y: y[0] - 5.0]
    sol = daedal.solve_dae(
        lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], (0.0, 7.0), [0.0, 1.0], names=["s", "c"], events=events
    )
    sol.attributes = {"units": {"s": "m"}, "runs": [1, 2.5, None], "grid": np.arange(6.0).reshape(2, 3), "nan": np.nan}
    path = sol.save(tmp_path / "sol.npz")
    again = daedal.load(path)
    grid, not_a_number = again.attributes.pop("grid"), again.attributes.pop("nan")
    assert np.array_equal(grid, sol.attributes.pop("grid")) and np.isnan(not_a_number) and sol.attributes.pop("nan")
    assert_same(sol, again)
    times = np.linspace(0.0, 7.0, 101)
    assert np.array_equal(sol(times), again(times)) and np.array_equal(sol(times)["c'"], again(times)["c'"])
    with np.load(path, allow_pickle=False) as plain:  # without Daedal
        assert np.array_equal(plain["y"], sol.y) and json.loads(plain["header.json"])["class"] == "Solution"


def test_a_semi_explicit_solution_without_dense_output(tmp_path):
    problem = daedal.SemiExplicitDAE(lambda t, y, z: [-z[0]], lambda t, y, z: [z[0] - y[0]], 1, 1)
    again = there_and_back(daedal.solve(problem, (0.0, 1.0), ([1.0], None), dense_output=False), tmp_path)
    assert again.z.shape == (1, again.t.size)
    with pytest.raises(daedal.InvalidProblemError, match="no dense output"):
        again(0.5)


@pytest.mark.parametrize("end", [1.0, -1.0])
def test_a_mechanism_keeps_what_its_functions_computed(tmp_path, end):
    sol = daedal.solve(rod_pendulum(), (0.0, end), START, events=lambda t, q, v: q[1] + 0.5)
    again = there_and_back(sol, tmp_path)
    assert again.params == {"g": 9.81} and again.constraint_names == ("rod",)
    times = np.linspace(0.0, end, 301)
    here, there = sol(times), again(times)
    for name in ("q", "v", "a", "lam", "reaction"):
        assert getattr(there, name) == pytest.approx(getattr(here, name), abs=2e-12), name
    assert again(times, derivative=True) == pytest.approx(sol(times, derivative=True), abs=2e-12)
    assert abs(there.q[0] ** 2 + there.q[1] ** 2 - 1.0).max() < 1e-13  # on the constraint, between the steps as well
    with pytest.raises(daedal.InvalidProblemError, match="integrated interval"):
        again(2.0)
    assert_same(pickle.loads(pickle.dumps(again)), sol)


@pytest.mark.parametrize("options", [{}, {"method": "hem5"}, {"method": "radau"}], ids=["auto", "hem5", "radau"])
def test_a_mechanism_with_sensitivities(tmp_path, options):
    sol = daedal.solve(rod_pendulum(), (0.0, 1.0), START, sensitivities=["g"], **options)
    again = there_and_back(sol, tmp_path)
    assert len(again.raw.names) == again.raw.y.shape[0] and np.array_equal(again.raw.y, sol.raw.y)
    with pytest.raises(daedal.InvalidProblemError, match="files do not hold them"):
        again.sensitivity("g")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system")
def test_devices_pipes_and_folders_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", "/dev/urandom", "/dev/null", tmp_path / "pipe"):
        with pytest.raises(daedal.errors.InvalidFileError, match="it is a device or a pipe, not a file"):
            daedal.load(path)
    with pytest.raises(daedal.errors.InvalidFileError, match="it is a folder"):
        daedal.load(tmp_path)


def test_solutions_of_other_classes(tmp_path):
    def pendulum(t, y, yp):
        x, z, u, w, force = y
        return [yp[0] - u, yp[1] - w, yp[2] + force * x, yp[3] + force * z + 9.81, x * x + z * z - 1.0]

    recognised = daedal.solve_dae(pendulum, (0.0, 1.0), [1.0, 0.0, 0.0, 0.0, 0.0])
    assert isinstance(recognised, daedal.solution.RecognisedSolution)
    times = np.linspace(0.0, 1.0, 41)
    again = there_and_back(recognised, tmp_path)
    assert again(times) == pytest.approx(recognised(times), abs=2e-12)
    assert again(times, derivative=True) == pytest.approx(recognised(times, derivative=True), abs=1e-10)
    second = daedal.SecondOrderDAE(
        lambda t, x, xp, xpp: [xpp[0] + x[0] * x[2], xpp[1] + x[1] * x[2] + 9.81, x[0] ** 2 + x[1] ** 2 - 1.0],
        3,
        names=["x", "y", "force"],
    )
    sol = daedal.solve(second, (0.0, 0.5), ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]), method="modified_bdf")
    again = there_and_back(sol, tmp_path)
    assert np.array_equal(again.at(0.3).xpp, sol.at(0.3).xpp) and np.array_equal(again["x''"], sol["x''"])


def test_a_run_through_modes(tmp_path):
    model = daedal.library.bouncing_ball()
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    again = there_and_back(sol, tmp_path)
    times = np.linspace(*model.t_span, 201)
    assert again.mode_at(times).tolist() == sol.mode_at(times).tolist()
    assert again(times).q == pytest.approx(sol(times).q, abs=1e-13)
    assert np.array_equal(again.lam, sol.lam, equal_nan=True)
    figure = again.plot(pyplot=False)
    assert len(figure.axes) == len(sol.plot(pyplot=False).axes)


def test_a_failed_run(tmp_path):
    with pytest.raises(daedal.IntegrationError) as caught:
        daedal.solve_dae(lambda t, y, yp: [yp[0] - y[0] ** 2], (0.0, 2.0), [1.0])
    again = there_and_back(caught.value.solution, tmp_path)
    assert again.status == "failed" and not again.success


finite = st.floats(allow_nan=True, allow_infinity=True, width=64)
texts = st.text(max_size=8)


@st.composite
def solutions(draw):
    n, nt, steps = draw(st.integers(1, 3)), draw(st.integers(0, 4)), draw(st.integers(1, 3))
    rows = arrays(float, (n, nt), elements=finite)
    orders = draw(arrays(np.int64, steps, elements=st.integers(0, 2)))
    starts = np.concatenate([[0], np.cumsum(orders + 1)[:-1]])
    dense = DenseOutput(
        0.0,
        np.arange(1.0, steps + 1.0),
        orders,
        starts,
        np.ones((steps, 3)),
        draw(arrays(float, (int(np.sum(orders + 1)), n), elements=st.floats(-1e6, 1e6))),
    )
    event = EventRecord(0.5, np.ones(n), np.zeros(n), 0, draw(texts), draw(st.sampled_from([-1, 1])), True)
    sol = Solution(
        t=np.sort(draw(arrays(float, nt, elements=st.floats(0.0, 1.0)))),
        y=draw(rows),
        yp=draw(rows),
        success=draw(st.booleans()),
        status=Status(draw(st.sampled_from(sorted(STATUS_NUMBERS)))),
        message=draw(texts),
        stats=Statistics(steps=draw(st.integers(0, 2**40)), seconds=draw(st.floats(0.0, 1e9))),
        names=tuple(draw(st.lists(texts, min_size=n, max_size=n, unique=True))),
        drift=draw(st.none() | st.dictionaries(texts, st.floats(0.0, 1.0), max_size=2)),
        events=draw(st.sampled_from([[], [event]])),
        history=draw(st.none() | st.just(History(np.ones(steps), np.ones(steps), np.ones(steps, dtype=np.int64)))),
        dense=draw(st.sampled_from([None, dense])),
        n_differential=draw(st.none() | st.integers(0, n)),
        functions=FunctionTable(draw(st.dictionaries(texts, texts, max_size=2))),
    )
    sol.event_names = ("one",) if sol.events else ()
    leaves = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | texts
    sol.attributes = draw(
        st.dictionaries(
            texts, st.recursive(leaves, lambda inner: st.lists(inner, max_size=3), max_leaves=5), max_size=3
        )
    )
    return sol


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(solutions())
def test_any_solution_goes_there_and_back(tmp_path_factory, sol):
    again = there_and_back(sol, tmp_path_factory.mktemp("files"))
    if sol.dense is not None:
        assert np.array_equal(sol([0.0, 0.3, 1.0]), again([0.0, 0.3, 1.0]))


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], names=["x"], rtol=1e-3)
    return sol.save(tmp_path_factory.mktemp("saved") / "sol.npz")


def refused(path, why=""):
    with pytest.raises(daedal.errors.InvalidFileError, match=why) as caught:
        daedal.load(path)
    assert str(path) in str(caught.value)


def rewritten(saved, path, change=lambda header: None, members=lambda all: None, compression=zipfile.ZIP_STORED):
    """The file with another header and other members."""
    with zipfile.ZipFile(saved) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(contents["header.json"])
    changed = change(header)
    contents["header.json"] = json.dumps(header if changed is None else changed).encode()
    members(contents)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def array_bytes(array, **options):
    content = io.BytesIO()
    np.save(content, array, **options)
    return content.getvalue()


def test_the_untouched_copy_is_read(saved, tmp_path):
    assert_same(daedal.load(rewritten(saved, tmp_path / "copy.npz")), daedal.load(saved))


def test_a_truncated_file_is_refused(saved, tmp_path):
    content = saved.read_bytes()
    for length in (0, 1, 30, len(content) // 2, len(content) - 1):
        (tmp_path / "cut.npz").write_bytes(content[:length])
        refused(tmp_path / "cut.npz")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_flipped_bit_is_seen_or_does_not_matter(saved, tmp_path_factory, data):
    content = bytearray(saved.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("flipped") / "sol.npz"
    path.write_bytes(content)
    try:
        found = daedal.load(path)
    except daedal.errors.InvalidFileError:
        return
    assert_same(found, daedal.load(saved))  # a date, say, that nobody reads


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "sol.npz"
    path.write_bytes(content)
    refused(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_other_value_in_the_header_is_refused_or_a_solution(saved, tmp_path_factory, data):
    def change(header):
        place, keys = header, []
        while isinstance(place, (dict, list)) and place and (not keys or data.draw(st.booleans())):
            options = sorted(place) if isinstance(place, dict) else list(range(len(place)))
            keys.append(data.draw(st.sampled_from(options)))
            before, place = place, place[keys[-1]]
        before[keys[-1]] = data.draw(json_values)

    path = rewritten(saved, tmp_path_factory.mktemp("headers") / "sol.npz", change)
    try:
        found = daedal.load(path)
    except daedal.errors.InvalidFileError:
        return
    assert found.y.shape == (len(found.names), found.t.size)
    repr(found), found.to_csv()
    if found.dense is not None and found.dense.t_end is None:
        found(found.dense.interval[0])


def test_other_versions_are_named(saved, tmp_path):
    refused(rewritten(saved, tmp_path / "a.npz", lambda h: h.update(version=2)), "format version 2.*upgrade")
    refused(rewritten(saved, tmp_path / "b.npz", lambda h: h.update(version="1")), "no format version")
    refused(
        rewritten(saved, tmp_path / "c.npz", lambda h: h.update(format="else")), "does not identify a Daedal solution"
    )
    refused(
        rewritten(saved, tmp_path / "d.npz", lambda h: h.update({"class": "os.system"})),
        "which is not a solution class",
    )


class Trap:
    """Leaves a trace if it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("trap-was-sprung",)


def test_a_pickle_is_never_opened(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pickled = array_bytes(np.array([Trap()], dtype=object), allow_pickle=True)
    refused(
        rewritten(saved, tmp_path / "a.npz", members=lambda all: all.update({"y.npy": pickled})), "not plain numbers"
    )
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Trap()))
    refused(tmp_path / "b.npz")
    refused(rewritten(saved, tmp_path / "c.npz", members=lambda all: all.update({"trap.pkl": pickle.dumps(Trap())})))
    assert not (tmp_path / "trap-was-sprung").exists()


def test_bombs_and_tricks_with_names_are_refused(saved, tmp_path):
    refused(rewritten(saved, tmp_path / "a.npz", compression=zipfile.ZIP_DEFLATED), "compressed")
    for name in ("../outside.npy", "/etc/outside.npy", "a\\b.npy", "sub/x.npy"):
        path = rewritten(saved, tmp_path / "b.npz", members=lambda all, name=name: all.update({name: array_bytes(1.0)}))
        refused(path, "is not a valid member name")
    assert not (tmp_path.parent / "outside.npy").exists()
    content = bytearray(saved.read_bytes())  # a member that says that it is huge
    place = content.rindex(b"PK\x01\x02")
    content[place + 20 : place + 28] = struct.pack("<II", 2**31, 2**31)
    (tmp_path / "c.npz").write_bytes(content)
    refused(tmp_path / "c.npz", "declares more")
    nested = b"[" * 100_000 + b"]" * 100_000
    refused(rewritten(saved, tmp_path / "d.npz", members=lambda all: all.update({"header.json": nested})))


def test_arrays_that_lie_about_their_shape_are_refused(saved, tmp_path):
    huge = array_bytes(np.ones(3)).replace(b"'shape': (3,)", b"'shape': (9" + b"9" * 11 + b",)")
    refused(rewritten(saved, tmp_path / "a.npz", members=lambda all: all.update({"y.npy": huge})))
    refused(
        rewritten(saved, tmp_path / "b.npz", members=lambda all: all.update({"y.npy": array_bytes(np.ones((2, 3)))}))
    )
    refused(
        rewritten(saved, tmp_path / "c.npz", members=lambda all: all.update({"y.npy": array_bytes(np.ones(2) > 0)}))
    )
    for name in ("orders", "starts"):  # what compiled code takes for places in memory

        def change(header, name=name):
            header["solution"]["dense"][name]["begin"] = 0
            header["solution"]["dense"][name]["shape"] = [10**9]

        refused(rewritten(saved, tmp_path / "d.npz", change), "outside")


@pytest.mark.parametrize("orders", [[-1], [7], [2**40]])
def test_polynomials_outside_their_array_are_refused(saved, tmp_path, orders):
    sol = daedal.load(saved)
    steps = sol.dense.ends.size
    hostile = DenseOutput(**(vars(sol.dense) | {"orders": np.array(orders * steps)}))
    sol.dense = hostile
    refused(sol.save(tmp_path / "a.npz"), "degree|outside")
    sol.dense = DenseOutput(**(vars(daedal.load(saved).dense) | {"starts": np.full(steps, -(2**40))}))
    refused(sol.save(tmp_path / "b.npz"), "outside")


def test_numbers_that_are_none_in_the_header_are_refused(saved, tmp_path):
    for word in (b"NaN", b"Infinity", b"1e999"):

        def spoil(contents, word=word):
            header = contents["header.json"]
            contents["header.json"] = header.replace(b'"seconds": ', b'"seconds": ' + word + b', "was": ', 1)

        refused(rewritten(saved, tmp_path / "a.npz", members=spoil))


def test_paths_and_what_cannot_be_saved(saved, tmp_path):
    with pytest.raises(FileNotFoundError):
        daedal.load(tmp_path / "absent.npz")
    sol = daedal.load(saved)
    with pytest.raises(daedal.InvalidProblemError, match=r"must end in .npz"):
        sol.save(tmp_path / "sol.csv")
    sol.attributes = {"function": lambda: 0}
    with pytest.raises(daedal.InvalidProblemError, match="attributes must hold"):
        sol.save(tmp_path / "sol.npz")
    assert list(tmp_path.iterdir()) == []  # no part of it was written


def test_a_solution_with_sensitivities_is_saved_without_them(tmp_path):
    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [0.0, -p["g"]],
        constraint=lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=2,
        n_constraints=1,
        params={"g": 9.81},
    )
    sol = daedal.solve(system, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), sensitivities=["g"])
    sol.save(tmp_path / "run.npz")
    loaded = daedal.load(tmp_path / "run.npz")
    for name in ("t", "q", "v", "lam"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(sol, name))
    np.testing.assert_allclose(loaded(0.5).q, sol(0.5).q, rtol=1e-12)
    with pytest.raises(daedal.InvalidProblemError, match="files do not hold them"):
        loaded.sensitivity("g")
