"""Machine code of graphs: pieces, layout, status, and object code on disk under attack."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from daedal.common import object_store
from daedal.symbolic import Graph, emission, scalar_argument, trace, vector_argument
from daedal.symbolic import machine as code_generation
from daedal.symbolic.machine import compile_function
from symbolic_tools import assert_same, machine, points, traced


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for object code, and nothing in memory."""
    monkeypatch.setenv("DAEDAL_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    return tmp_path / "cache"


def forget():
    code_generation._recent.clear()
    code_generation._in_memory.clear()
    code_generation._objects.clear()


def function(t, q):
    return np.array([t * np.sin(q[0]) + q[1] ** 3, np.exp(q[0] * q[1])])


def counted(monkeypatch):
    """How often code is generated."""
    made = []
    generate = code_generation._generated
    monkeypatch.setattr(code_generation, "_generated", lambda text: made.append(1) or generate(text))
    return made


def test_code_is_generated_once_and_found_again_in_memory_and_on_disk(folder, monkeypatch):
    made = counted(monkeypatch)
    for fresh in (False, False, True):
        if fresh:
            forget()
        assert_same(function, points(2))
    assert len(made) == 1
    assert len(list(folder.glob("*.o"))) == 1


def with_numbers(a, b):
    """A function with constants in arithmetic, in a power, in a condition and in a table."""

    def function(t, q):
        kink = np.interp(q[0], [-a, 0.1 * a, b], [b, 1.0, a])
        return [a * q[0] + b, np.exp(q[1] / a) if q[0] < 0.3 * b else abs(q[1]) ** b, kink, b, np.sin(a * t) - 3.7]

    return function


def test_functions_that_differ_in_numbers_share_object_code(folder, monkeypatch):
    made = counted(monkeypatch)
    for a, b in ((1.3, 2.7), (4.0, 5.5), (12.5, 1e6), (0.1, 7.25)):
        assert_same(with_numbers(a, b), points(2))
    assert len(made) == 1
    assert len(list(folder.glob("*.o"))) == 1


def test_functions_of_several_pieces_share_object_code(folder, monkeypatch):
    made = counted(monkeypatch)
    monkeypatch.setattr(emission, "LONGEST", 10)
    monkeypatch.setattr(emission, "PIECE", 5)
    for a in (1.3, 4.4):
        assert_same(lambda t, q, a=a: [np.sum(np.sin(q[0] * a * np.arange(3.0, 20.0))), a], points(1))
    assert len(made) == 1


def test_special_numbers_belong_to_the_shape():
    for a in (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan):
        assert_same(lambda t, q, a=a: [a * q[0], q[0] + a, np.copysign(q[1], a), a], points(2))


@pytest.mark.parametrize("damage", ["empty", "half", "flipped", "other", "folder"])
def test_a_damaged_file_is_compiled_again(folder, monkeypatch, damage):
    assert_same(function, points(2))
    [file] = folder.glob("*.o")
    content = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(
            {"empty": b"", "half": content[: len(content) // 2], "flipped": content[:-9] + b"x" + content[-8:]}.get(
                damage, b"daedal object code 1\n" + bytes(32) + b"not code"
            )
        )
    forget()
    made = counted(monkeypatch)
    assert_same(function, points(2))
    assert made == [1]
    if damage != "folder":
        assert file.read_bytes() == content


@pytest.mark.parametrize("obstacle", ["a file in its place", "read-only", "nowhere"])
def test_without_a_folder_code_is_generated_all_the_same(tmp_path, monkeypatch, obstacle):
    place = tmp_path / "cache"
    if obstacle == "a file in its place":
        place.write_text("")
    elif obstacle == "read-only":
        place.mkdir(mode=0o500)
    else:
        place = tmp_path / "\0"
    monkeypatch.setattr(object_store, "folder", lambda: place)
    forget()
    assert_same(function, points(2))


def test_a_file_appears_whole_or_not_at_all(folder, monkeypatch):
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    assert_same(function, points(2))
    assert list(folder.iterdir()) == []


def test_files_that_were_not_used_for_longest_go(folder, monkeypatch):
    monkeypatch.setattr(object_store, "_EVERY", 1)
    for k in range(6):
        assert_same(lambda t, q, k=k: [np.sin(q[0]) ** (k + 1)], points(1))
        newest = max(folder.glob("*.o"), key=lambda file: file.stat().st_mtime_ns)
        os.utime(newest, (k, k))
    files = sorted(folder.glob("*.o"), key=lambda file: file.stat().st_mtime)
    assert len(files) == 6
    monkeypatch.setenv("DAEDAL_CACHE_SIZE", str(3.9e-6 * files[0].stat().st_size))
    assert_same(lambda t, q: [q[0] * 99.0], points(1))
    left = set(folder.glob("*.o"))
    assert 1 <= len(left) <= 3
    assert left.isdisjoint(files[:4])


WRITER = """
import numpy as np
from daedal.symbolic import Graph, vector_argument, trace
from daedal.symbolic.machine import compile_function
for k in range(12):
    graph = Graph()
    result = trace(lambda q: [np.sin(q[0]) ** (k + 1)], [vector_argument(graph, "q", 1)])
    code = compile_function(graph, {"q": 1}, {"x": result.array})
    assert abs(code(0.0, q=[1.0])[1]["x"][0] / np.sin(1.0) ** (k + 1) - 1.0) < 1e-14
"""


def test_processes_that_write_at_once_do_not_disturb_each_other(folder):
    running = [subprocess.Popen([sys.executable, "-c", WRITER], env={**os.environ}) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert len(list(folder.glob("*.o"))) == 12
    assert not list(folder.glob("part-*"))


def test_threads_compile_at_once(folder):
    results = []

    def work(k):
        results.append(
            machine(traced(lambda t, q: [q[0] * k + np.cos(q[1])], 2), 2)(0.0, [2.0, 0.0])[1][0] == 2.0 * k + 1.0
        )

    threads = [threading.Thread(target=work, args=(k % 3,)) for k in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 9


TEXT = """
import hashlib, numpy as np
from daedal.library import squeezer
from daedal.symbolic import Graph, emission, scalar_argument, trace, vector_argument
from daedal.symbolic.mechanism_dynamics import Mechanism
functions = squeezer.squeezer_mass, squeezer.squeezer_force, squeezer.loops
m = Mechanism(*functions, n_q=7, n_constraints=6, params=np.ones(1))
places = {m.graph.argument(name, k): k for name in "qvp" for k in range(7)}
nodes = [*m.accelerations.solutions[0], m.accelerations.quality]
text = emission.emit(m.graph, m.t, places, list(enumerate(nodes)), [], 0).text
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_the_program_is_the_same_in_every_process():
    texts = {
        subprocess.run(
            [sys.executable, "-c", TEXT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


@pytest.mark.parametrize("piece", [1, 2, 7, 1000])
def test_pieces_of_any_length_give_the_same_bits(monkeypatch, piece):
    def several(t, q):
        r = np.zeros(4)
        for k in range(4):
            r[k] = np.where(
                q[k] > q[3 - k], np.sin(q[k]) / (1.0 + q[0] ** 2), np.interp(q[k], [0.0, 0.5, 1.0], [1.0, 3.0, 2.0])
            )
        return r + q @ q if q[0] > 0 else r * max(q)

    reference = [machine(traced(several, 4), 4)(0.3, q)[1] for q in points(4, 6)]
    monkeypatch.setattr(emission, "LONGEST", piece)
    monkeypatch.setattr(emission, "PIECE", piece)
    found = [machine(traced(several, 4), 4)(0.3, q)[1] for q in points(4, 6)]
    assert np.array_equal(reference, found)


def test_many_results_are_stored_by_functions_of_bounded_length():
    """Constants, arguments and values, each in many places: every store counts, whatever it stores."""
    graph = Graph()
    q = [graph.argument("q", k) for k in range(3)]
    kinds = [graph.constant(2.5), q[1], graph.multiply(q[0], q[2]), graph.zero, graph.add(q[0], q[1])]
    program = emission.emit(graph, None, dict(zip(q, range(3))), [(3 + k, kinds[k % 5]) for k in range(2000)], [], 2003)
    longest = max(text.count("store ") for text in program.text.split("define ")[1:])
    assert longest <= 2 * 400 and program.operations == 2  # a value of 400 places is stored where it is computed
    code = compile_function(graph, {"q": 3}, {"r": [kinds[k % 5] for k in range(2000)]})
    _, found = code(0.0, q=[2.0, 3.0, 5.0])
    assert found["r"].tolist() == [[2.5, 3.0, 10.0, 0.0, 5.0][k % 5] for k in range(2000)]


def test_values_that_wait_do_not_become_more_along_a_chain():
    """What a long program hands on from piece to piece is what its recurrence does, not all that it has computed."""
    graph = Graph()
    n = 1500
    q = [graph.argument("q", k) for k in range(n)]
    sines = [graph.apply("sin", x) for x in q]  # all made before any is used
    total = graph.zero
    for sine in sines:
        total = graph.subtract(graph.multiply(total, total), sine)
    code = compile_function(graph, {"q": n}, {"r": [total]})
    assert code.operations > emission.LONGEST and code.size - (n + 1) <= 4


def test_the_block_is_that_of_a_callback():
    """Arguments, result by columns, parameters: kernels take the address in place of that of a compiled function."""
    graph = Graph()
    t, q, p = scalar_argument(graph, "t"), vector_argument(graph, "q", 2), vector_argument(graph, "p", 1)
    result = trace(lambda t, q, p: np.array([[q[0], t], [p[0], q[1]], [0.0, 1.0]]), (t, q, p), (3, 2))
    code = compile_function(graph, {"q": 2}, {"M": result.array}, {"p": 1})
    assert (code.slices, code.size) == ({"q": slice(0, 2), "M": slice(2, 8), "p": slice(8, 9)}, 9)
    block = np.array([1.0, 2.0, *[np.nan] * 6, 5.0])
    status = code_generation._SIGNATURE(code.address)(7.0, block.ctypes.data)
    assert status == 0
    assert block.tolist() == [1.0, 2.0, 1.0, 5.0, 0.0, 7.0, 2.0, 1.0, 5.0]


def test_no_product_is_fused_with_a_sum():
    """(1 + 2^-30)^2 - (1 + 2^-29) is 0 with rounding after the product and 2^-60 without."""
    call = machine(traced(lambda t, q: [q[0] * q[0] - q[1]], 2), 2)
    assert call(0.0, [1.0 + 2.0**-30, 1.0 + 2.0**-29])[1][0] == 0.0


def test_code_generation_is_linear_in_the_number_of_operations():
    """By the text that is generated: no piece is longer than the limit."""
    result = traced(lambda t, q: [np.sum(np.sin(q * k)) for k in range(1, 101)], 100)
    graph = result.graph
    places = {graph.argument("q", k): k for k in range(100)}
    program = emission.emit(graph, None, places, list(enumerate(result.nodes, 100)), [], 200)
    pieces = program.text.split("define ")[1:]
    assert program.operations > 20_000
    assert max(piece.count("\n") for piece in pieces) < 6 * emission.PIECE
    assert program.workspace < 1000
