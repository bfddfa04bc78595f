r"""Equations in LaTeX as MathML, which browsers set without a script: the part of LaTeX that the library uses.

>>> from daedal.viz.mathml import equation_html
>>> equation_html(r"x = -\lambda y")
'<div class="row"><math><mrow><mi>x</mi><mo>=</mo><mo>−</mo><mi>λ</mi><mi>y</mi></mrow></math></div>'
"""

from __future__ import annotations

import html
import re

from daedal.viz.labels import GREEK

_TOKEN = re.compile(r"\\(?:text|mathrm|operatorname)\{[^{}]*\}|\\[A-Za-z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.DOTALL)
_LETTERS = dict(zip(GREEK, "αβγδϵζηθικλμνξπρστυϕχψωΓΔΘΛΞΠΣΥΦΨΩ")) | {"varphi": "φ", "varepsilon": "ε", "varrho": "ϱ"}
_OPERATORS = {
    "|": "‖",
    "approx": "≈",
    "in": "∈",
    "perp": "⟂",
    "geq": "≥",
    "leq": "≤",
    "partial": "∂",
    "sum": "∑",
    "cdot": "·",
    "dots": "…",
    "le": "≤",
    "ge": "≥",
    "ne": "≠",
    "circ": "∘",
    "infty": "∞",
    "to": "→",
    "pm": "±",
    "times": "×",
}
_ACCENTS = {"hat": "^", "dot": "˙", "ddot": "¨", "bar": "¯", "tilde": "~"}
_FUNCTIONS = {"sin", "cos", "tan", "exp", "log", "max", "min", "sgn", "sign"}
_SPACES = {",": 0.17, ";": 0.28, " ": 0.25, "quad": 1.0, "qquad": 2.0}
_NO_TERM = set("=<>(,^_&+-|[") | {"", "\\le", "\\ge", "\\,"}  # a sign behind one of these belongs to a number
_SIZES = {"bigl", "bigr", "Bigl", "Bigr", "big", "Big", "left", "right", "displaystyle"}


class UnknownLatex(ValueError):
    """A command that is not among those known here."""


def equation_html(latex: str) -> str:
    r"""HTML of an equation or of several: a row for each line, in it a formula for each part between ``\qquad``.

    Parts stand side by side and wrap where the page is narrow. What is not understood is shown as it was written.
    """
    try:
        rows = [[_math(part) for part in _split(row, ("\\quad", "\\qquad"))] for row in _split(_bare(latex), ("\\\\",))]
    except UnknownLatex:
        return f"<code>{html.escape(latex)}</code>"
    return "".join(f'<div class="row">{"".join(row)}</div>' for row in rows if row)


def _bare(latex: str) -> str:
    match = re.fullmatch(r"\s*\\begin\{aligned\}(.*)\\end\{aligned\}\s*", latex, re.DOTALL)
    return match.group(1) if match else latex


def _split(latex: str, separators: tuple[str, ...]) -> list[str]:
    """The parts between separators that stand outside of braces and environments."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(latex):
        depth += (token in ("{", "\\begin")) - (token in ("}", "\\end"))
        if token in separators and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [part for part in parts if part.strip()]


def _math(latex: str) -> str:
    """A formula; between its terms a line may break."""
    terms = [f"<math>{_Parser(term, k > 0).row()}</math>" for k, term in enumerate(_terms(latex))]
    return terms[0] if len(terms) == 1 else f'<span class="formula">{"<wbr/>".join(terms)}</span>'


def _terms(latex: str) -> list[str]:
    """The formula cut before the signs that stand between two terms, outside of braces, environments and words."""
    terms, depth, before = [""], 0, ""
    for token in _TOKEN.findall(latex):
        depth += (token in ("{", "\\begin")) - (token in ("}", "\\end"))
        if token in "+-" and depth == 0 and before not in _NO_TERM:
            terms.append("")
        terms[-1] += token
        before = token if not token.isspace() else before
    return terms


class _Parser:
    """Recursive descent over tokens; `row` and `atom` return MathML. A later term of a formula is `inside` it."""

    def __init__(self, latex: str, inside: bool = False):
        self.inside = inside
        self.tokens = [token for token in _TOKEN.findall(latex) if not token.isspace()]
        self.k = 0

    def peek(self) -> str:
        return self.tokens[self.k] if self.k < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.k += 1
        return token

    def row(self, *ends: str) -> str:
        """Everything up to one of `ends`, which is not consumed."""
        items: list[str] = []
        while self.peek() and self.peek() not in ends:
            if self.peek() == "&":
                self.next()
                continue
            items.append(self.scripts(self.atom()))
        return f"<mrow>{''.join(items)}</mrow>"

    def scripts(self, base: str) -> str:
        """`base` with the indices, exponents and primes that follow it."""
        below, above, primes = "", "", 0
        while self.peek() in ("_", "^", "'"):
            token = self.next()
            if token == "'":
                primes += 1
            elif token == "_":
                below = self.argument()
            else:
                above = self.argument()
        if primes:
            marks = f'<mo class="prime">{"′" * primes}</mo>'
            above = f"<mrow>{marks}{above}</mrow>" if above else marks
        if below and above:
            return f"<msubsup>{base}{below}{above}</msubsup>"
        if below or above:
            return f"<msub>{base}{below}</msub>" if below else f"<msup>{base}{above}</msup>"
        return base

    def argument(self) -> str:
        """A group in braces, or one atom; of a number the first digit, as in LaTeX."""
        if self.peek()[:1].isdigit() and len(self.peek()) > 1:
            digits = self.next()
            self.k -= 1
            self.tokens[self.k] = digits[1:]
            return f"<mn>{digits[0]}</mn>"
        if self.peek() != "{":
            return self.atom()
        self.next()
        inside = self.row("}")
        self.expect("}")
        return inside

    def expect(self, token: str) -> None:
        if self.next() != token:
            raise UnknownLatex(f"{token!r} is missing")

    def atom(self) -> str:
        first, token = self.k == 0, self.next()
        if not token or token in "}^_":
            raise UnknownLatex("an argument is missing")
        if token == "{":
            self.k -= 1
            return self.argument()
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        form = ' form="infix"' if first and token in "+-" and self.inside else ""
        return f"<mo{form}{_fence(token)}>{html.escape('−' if token == '-' else token)}</mo>"

    def command(self, name: str) -> str:
        if name in _LETTERS:
            return f"<mi>{_LETTERS[name]}</mi>"
        if name in _OPERATORS:
            return f"<mo>{_OPERATORS[name]}</mo>"
        if name in _FUNCTIONS:
            return self.scripts(f"<mi>{name}</mi>") + '<mspace width="0.17em"></mspace>'
        if name in _SPACES:
            return f'<mspace width="{_SPACES[name]}em"></mspace>'
        if name in _SIZES:
            return self.atom()
        if name in ("frac", "tfrac", "dfrac"):
            style = ' displaystyle="false"' if name == "tfrac" else ""
            return f"<mstyle{style}><mfrac>{self.argument()}{self.argument()}</mfrac></mstyle>"
        if name == "binom":
            return _matrix([[self.argument()], [self.argument()]])
        if name == "sqrt":
            return f"<msqrt>{self.argument()}</msqrt>"
        if name in _ACCENTS:
            return f'<mover accent="true">{self.argument()}<mo>{_ACCENTS[name]}</mo></mover>'
        word, _, text = name.partition("{")
        if word in ("operatorname", "text", "mathrm"):
            kind = "mtext" if word == "text" else "mi"
            words = html.escape(text[:-1]).replace(" ", "\u00a0")
            return f"<{kind}>{words}</{kind}>"
        if name == "begin":
            return self.environment()
        raise UnknownLatex(f"\\{name} is not known")

    def environment(self) -> str:
        name = self.name()
        if name != "pmatrix":
            raise UnknownLatex(f"the environment {name} is not known")
        rows: list[list[str]] = [[]]
        while self.peek() and self.peek() != "\\end":
            rows[-1].append(self.cell())
            if self.peek() == "&":
                self.next()
            elif self.peek() == "\\\\":
                self.next()
                rows.append([])
        self.expect("\\end")
        self.name()
        return _matrix(rows)

    def name(self) -> str:
        self.expect("{")
        letters = ""
        while self.peek() not in ("}", ""):
            letters += self.next()
        self.expect("}")
        return letters

    def cell(self) -> str:
        items = []
        while self.peek() not in ("&", "\\\\", "\\end", ""):
            items.append(self.scripts(self.atom()))
        return f"<mrow>{''.join(items)}</mrow>"


def _fence(token: str) -> str:
    return ' stretchy="false"' if token in "()[]|" else ""


def _matrix(rows: list[list[str]]) -> str:
    body = "".join(f"<mtr>{''.join(f'<mtd>{cell}</mtd>' for cell in row)}</mtr>" for row in rows)
    return f"<mrow><mo>(</mo><mtable>{body}</mtable><mo>)</mo></mrow>"
