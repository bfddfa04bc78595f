"""Which test files rest on a source file, judged by imports and names.

Nearly all tests go through ``daedal.solve``, and compiled kernels cannot be watched, so that neither imports alone nor
a trace would tell. So files are compared by their words: the name of the module, what it defines, and the modules that
import it, each with a weight that says how rare the word is among the tests.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from functools import cache
from pathlib import Path

# What looks at the sources, needs another environment, or runs processes of its own.
LEFT_OUT = (
    *("test_benchmarks", "test_browser", "test_docs", "test_examples", "test_first_use", "test_kernels_build"),
    *("test_kernels_obstacles", "test_mutations", "test_notebooks", "test_quick_calls", "test_reproduce"),
    *("test_scene_browser", "test_wheel", "test_words"),
)
MOST = 10  # test files for a source file
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]+")


class Resting:
    """The test files that rest on the files of a package."""

    def __init__(self, package: Path, tests: Path):
        self.package = package
        self.tests = {
            path.name: path.read_text(encoding="utf-8")
            for path in sorted(tests.glob("test_*.py"))
            if path.stem not in LEFT_OUT
        }
        self.words = {name: Counter(_words(text)) for name, text in self.tests.items()}
        self.often = Counter(word for words in self.words.values() for word in words)
        self.users = self._users()

    @cache  # noqa: B019 -- there is one for a process
    def on(self, file: str) -> list[str]:
        """Names of test files that rest on a file of the package, those that are nearest first."""
        module = _module(file)
        wanted = Counter({word: 3.0 for word in _words(module.rpartition(".")[2])})
        for word in self._defined(file):
            wanted[word] += 2.0
        for user in self.users.get(module, ()):
            for word in _words(user.rpartition(".")[2]):
                wanted[word] += 1.0
        scores = {}
        for name, words in self.words.items():
            title = set(_words(name.removesuffix(".py")))
            score = sum(
                weight * self._rarity(word) * ((word in words) + 2 * (word in title)) for word, weight in wanted.items()
            )
            if f"daedal.{module}" in self.tests[name]:
                score += 1000.0  # it imports the module itself
            if score > 0.0:
                scores[name] = score
        return sorted(scores, key=lambda name: -scores[name])[:MOST]

    def _rarity(self, word: str) -> float:
        return math.log((1 + len(self.tests)) / (1 + self.often[word]))

    def _defined(self, file: str) -> set[str]:
        tree = ast.parse((self.package / file).read_text(encoding="utf-8"))
        kinds = ast.FunctionDef | ast.ClassDef
        return {word for node in tree.body if isinstance(node, kinds) for word in _words(node.name)}

    def _users(self) -> dict[str, set[str]]:
        """The modules that import each module."""
        users: dict[str, set[str]] = {}
        for path in self.package.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for imported in re.findall(r"^ *from daedal\.([\w.]+) import", text, re.MULTILINE):
                users.setdefault(imported, set()).add(_module(str(path.relative_to(self.package))))
        return users


def _module(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _words(text: str) -> list[str]:
    """Words in lower case; names with underscores and capitals inside count as a whole and by their parts."""
    found = []
    for name in re.findall(r"[A-Za-z_][A-Za-z0-9_]+", text):
        parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+", name)]
        found += {name.strip("_").lower(), *(part for part in parts if len(part) > 2)}
    return [word for word in found if word not in ("test", "daedal")]
