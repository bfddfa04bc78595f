"""The mutants of a source file: one changed place in its syntax tree each."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Add,
}


@dataclass(frozen=True)
class Mutant:
    """A file of the package, the place in it, in bytes, and what stands there instead."""

    file: str  # below the package
    line: int
    kind: str
    begin: int
    end: int
    before: str
    after: str

    def applied(self, source: bytes) -> bytes:
        """The text of the file with the change."""
        assert source[self.begin : self.end].decode() == self.before, f"{self.file} has changed"
        return source[: self.begin] + self.after.encode() + source[self.end :]

    def __str__(self):
        return f"{self.file}:{self.line}: {self.kind}: {_short(self.before)}  ->  {_short(self.after)}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 90 else f"{text[:60]} ... {text[-25:]}"


def mutants(package: Path, file: str) -> list[Mutant]:
    """All mutants of a file, in the order of its text."""
    source = (package / file).read_bytes()
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found = []
    for node, kind, changed in _changes(ast.parse(source)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        after = changed if isinstance(changed, str) else ast.unparse(changed)
        if isinstance(node, ast.expr):
            after = f"({after})"
        found.append(Mutant(file, node.lineno, kind, begin, end, source[begin:end].decode(), after))
    return found


def _changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, ast.AST | str]]:
    """Places that matter to what is computed: no messages, annotations, decorators, imports or docstrings."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Assert):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.If | ast.While | ast.IfExp) and not _is_negated_anyway(node.test):
            yield node.test, "condition", ast.UnaryOp(ast.Not(), node.test)
        yield from ((node, kind, changed) for kind, changed in _of(node))
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            children = value if isinstance(value, list) else [value]
            waiting += [child for child in children if isinstance(child, ast.AST)]


def _of(node: ast.AST) -> Iterator[tuple[str, ast.AST | str]]:
    """The changes of one node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in COMPARISONS[type(node.ops[0])]:
            yield "comparison", _with(node, ops=[other()])
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        if not (isinstance(node, ast.BinOp) and _is_text(node)):
            yield "arithmetic", _with(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield "and, or", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "sign" if isinstance(node.op, ast.USub) else "negation", node.operand
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield "constant", ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield "off by one", ast.Constant(node.value + 1)
        elif isinstance(node.value, float):
            yield "constant", ast.Constant(2.0 * node.value if node.value else 1.0)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "range" and not node.keywords:
        stop = min(1, len(node.args) - 1)
        shorter = [*node.args]
        shorter[stop] = ast.BinOp(shorter[stop], ast.Sub(), ast.Constant(1))
        yield "off by one", _with(node, args=shorter)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "deleted", "pass"
    elif isinstance(node, ast.AugAssign):
        yield "deleted", "pass"
    elif isinstance(node, ast.Assign) and all(isinstance(t, ast.Attribute | ast.Subscript) for t in node.targets):
        yield "deleted", "pass"


def _with(node: ast.AST, **fields) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_negated_anyway(test: ast.expr) -> bool:
    """Whether another mutant negates a condition, or it is a constant."""
    negation = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    return negation or isinstance(test, ast.Constant) or (isinstance(test, ast.Compare) and len(test.ops) == 1)


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
