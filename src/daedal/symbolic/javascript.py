"""Translation of this package's C code to JavaScript, for pages that solve problems in the browser.

The input is the text emitted by :mod:`daedal.symbolic.cuda` and the integrators that call it: functions of scalars,
arrays of floats and records, without allocation and strings. A page therefore performs the steps of the C code,
statement by statement. Other C code is not supported: integers do not overflow, and integer division applies only to
variables declared as integers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from daedal.symbolic.untraceable import Untraceable

_TOKEN = re.compile(
    r"\s*(?:(0x[0-9a-f]*\.?[0-9a-f]*p[+-]?\d+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[uUfFlL]*)|([A-Za-z_]\w*)"
    r"|(->|\+\+|--|&&|\|\||[<>=!+\-*/&|%]=|<<|>>|\"[^\"]*\"|.))"
)
_TYPES = {"real", "double", "float", "int", "size_t", "void", "unsigned"}
_STORAGE = {"static", "inline", "const", "__restrict__", "extern"}
_MATH = {
    **{name: f"Math.{name}" for name in ("sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split())},
    **{
        name: f"Math.{name}" for name in "sqrt cbrt exp expm1 log log2 log10 log1p floor ceil trunc atan2 hypot".split()
    },
    **{"fabs": "Math.abs", "exp2": "libm.exp2", "pow": "libm.pow", "fmod": "libm.fmod", "rint": "libm.rint"},
    **{"copysign": "libm.copysign", "fmax": "libm.fmax", "fmin": "libm.fmin"},
}
_MISSING = {"erf", "erfc", "tgamma", "lgamma"}
_CONSTANTS = {"NAN": "NaN", "INFINITY": "Infinity", "NULL": "null"}
_OPENING, _CLOSING = {"(", "[", "{"}, {")", "]", "}"}
_NUMBER_ALONE = re.compile(r"(?<!\w)\((?=\()(\(-? ?[\d.]+(?:e[+-]?\d+)?\))\)")  # ((0.5))
_BRACES = {"{": "[", "}": "]"}
_WORD = re.compile(r"[A-Za-z_]\w*\Z")

LIBRARY = """\
// Functions of C that JavaScript lacks or defines otherwise.
const libm = {
  exp2: (x) => 2 ** x,
  pow: (x, y) => (x === 1 || y === 0 || (x === -1 && Math.abs(y) === Infinity) ? 1 : Math.pow(x, y)),
  fmod: (x, y) => x % y,
  rint: (x) => {
    const low = Math.floor(x), rest = x - low;
    return rest < 0.5 ? low : rest > 0.5 ? low + 1 : low % 2 ? low + 1 : low;
  },
  copysign: (x, y) => (y < 0 || Object.is(y, -0) ? -Math.abs(x) : Math.abs(x)),
  fmax: (x, y) => (x >= y || y !== y ? x : y),
  fmin: (x, y) => (x <= y || y !== y ? x : y),
};
function rows(m, n) {
  const flat = new Float64Array(m * n), made = [];
  for (let i = 0; i < m; i++) made.push(flat.subarray(i * n, (i + 1) * n));
  made.flat = flat;
  return made;
}
"""
"""Definitions in JavaScript that the translated text requires."""


def javascript(source: str) -> str:
    """Translate C of this package to JavaScript.

    Parameters
    ----------
    source : str
        Functions, tables, enumerations and records, with the definitions that they require.

    Raises
    ------
    Untraceable
        If a function of the C library is used that JavaScript lacks.

    Examples
    --------
    >>> from daedal.symbolic.javascript import javascript
    >>> print(javascript("#define TWICE(x) (2 * (x))\\nstatic double f(const double* y) { return TWICE(fabs(y[0])); }"))
    function f(y) {
    return (2 * (Math.abs(y[0])));
    }
    <BLANKLINE>
    """
    return _Translation(_tokens(_preprocessed(source))).text()


# --- preprocessor -----------------------------------------------------------------------------------------------------


def _preprocessed(source: str) -> str:
    """The text without comments and directives, macros expanded."""
    text = re.sub(r"\\\n", " ", re.sub(r"/\*.*?\*/", " ", source, flags=re.DOTALL))
    macros: dict[str, tuple[list[str] | None, str]] = {}
    lines = list[str]()
    open_ = list[tuple[bool, bool]]()  # for each open #if: whether its branch is active, and whether any has been
    for line in text.splitlines():
        directive = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
        active = all(now for now, _ in open_)
        if directive is None:
            if active and line.strip():
                lines.append(_expanded(line, macros))
            continue
        word, rest = directive[1], directive[2].strip()
        if word in ("if", "ifdef", "ifndef"):
            holds = (rest in macros) == (word == "ifdef") if word != "if" else active and _holds(rest, macros)
            open_.append((holds, holds))
        elif word == "elif":
            _, before = open_.pop()
            holds = not before and _holds(rest, macros)
            open_.append((holds, before or holds))
        elif word == "else":
            _, before = open_.pop()
            open_.append((not before, True))
        elif word == "endif":
            open_.pop()
        elif word == "define" and active:
            found = re.match(r"(\w+)(\(([^)]*)\))?\s*(.*)", rest)
            assert found is not None
            names = None if found[2] is None else [name.strip() for name in found[3].split(",")]
            macros[found[1]] = names, found[4].strip()
    return "\n".join(lines)


def _holds(condition: str, macros: dict[str, tuple[list[str] | None, str]]) -> bool:
    text = re.sub(r"[A-Za-z_]\w*", "0", _expanded(condition, macros))
    for sign, word in (("&&", " and "), ("||", " or "), ("!=", "≠"), ("!", " not "), ("≠", "!=")):
        text = text.replace(sign, word)
    return bool(eval(text, {"__builtins__": {}}))  # the text contains only numbers and operators


def _expanded(line: str, macros: dict[str, tuple[list[str] | None, str]], inside: frozenset[str] = frozenset()) -> str:
    made, place = [], 0
    for found in re.finditer(r"(?<![\w.])[A-Za-z_]\w*", line):
        name = found[0]
        if found.start() < place or name not in macros or name in inside:
            continue
        names, body = macros[name]
        end = found.end()
        if names is not None:
            opening = re.match(r"\s*\(", line[end:])
            if opening is None:
                continue
            given, end = _arguments(line, end + opening.end())
            values = dict(zip(names, (_expanded(one, macros, inside) for one in given), strict=True))
            body = re.sub(r"[A-Za-z_]\w*", lambda word: values.get(word[0], word[0]), body)  # noqa: B023
        made += [line[place : found.start()], _expanded(body, macros, inside | {name})]
        place = end
    return "".join([*made, line[place:]])


def _arguments(line: str, begin: int) -> tuple[list[str], int]:
    """Arguments of a macro call that starts at `begin`, and the position after its closing parenthesis."""
    depth, start, given = 0, begin, []
    for k in range(begin, len(line)):
        if line[k] in _OPENING:
            depth += 1
        elif line[k] in _CLOSING and depth:
            depth -= 1
        elif line[k] == "," and depth == 0:
            given.append(line[start:k].strip())
            start = k + 1
        elif line[k] == ")":
            return [*given, line[start:k].strip()], k + 1
    raise ValueError(f"a macro call has no closing parenthesis: {line}")


# --- statements -------------------------------------------------------------------------------------------------------


def _tokens(text: str) -> list[str]:
    text = re.sub(r'_Pragma\s*\("[^"]*"\)', "", text)
    found = [number or word or sign for number, word, sign in _TOKEN.findall(text)]
    return [_number(token) for token in found if token not in _STORAGE and not token.isspace()]


def _number(token: str) -> str:
    if token.startswith("0x"):
        return repr(float.fromhex(token))
    return re.sub(r"(?<=[\d.])[uUfFlL]+\Z", "", token) if token[0].isdigit() else token


def _upto(tokens: list[str], k: int, ends: str) -> int:
    """Index of the first token from k on that is in `ends`, outside of brackets."""
    depth = 0
    while depth or tokens[k] not in ends:
        depth += (tokens[k] in _OPENING) - (tokens[k] in _CLOSING)
        k += 1
    return k


def _split(tokens: list[str], sign: str = ",") -> Iterator[list[str]]:
    k = 0
    while k < len(tokens):
        end = _upto([*tokens, sign], k, sign)
        yield tokens[k:end]
        k = end + 1


class _Translation:
    """Translates top-level items in order; local arrays and records become global, so that steps allocate no memory."""

    def __init__(self, tokens: list[str]):
        self.tokens, self.records, self.made = tokens, set[str](), list[str]()

    def text(self) -> str:
        tokens, k = self.tokens, 0
        while k < len(tokens):
            if tokens[k] == "enum":
                end = _upto(tokens, k, ";")
                self.made += [f"const {' '.join(one)};" for one in _split(tokens[k + 2 : end - 1])]
            elif tokens[k] == "typedef":
                end = _upto(tokens, k, ";")
                if tokens[k + 1] == "struct":
                    self._record(tokens[end - 1], tokens[k + 3 : end - 2])
            elif tokens[k] == ";":
                end = k
            elif tokens[_upto(tokens, k, "(=;")] == "(":
                end = self._function(k)
            else:
                end = _upto(tokens, k, ";")
                self._table(tokens[k:end])
            k = end + 1
        return _NUMBER_ALONE.sub(r"\1", "\n".join(self.made)) + "\n"

    def _record(self, name: str, tokens: list[str]):
        self.records.add(name)
        fields = []
        for statement in _split(tokens, ";"):
            for declared in _split(statement[1:]):
                field, sizes, _ = _declarator(declared)
                fields.append(f"{field}: {_array(sizes) if sizes else 'null' if declared[0] == '*' else '0'}")
        self.made.append(f"function new_{name}() {{\n  return {{ {', '.join(fields)} }};\n}}")

    def _table(self, tokens: list[str]):
        if "=" in tokens:
            name, _, value = _declarator(tokens[1:])
            self.made.append(
                f"const {name} = {_joined([_BRACES.get(token, token) for token in _without_casts(value)])};"
            )

    def _function(self, k: int) -> int:
        """Translate a function, or skip its declaration; return the index of its last token."""
        tokens = self.tokens
        opening = _upto(tokens, k, "(")
        closing = _upto(tokens, opening + 1, ")")
        if tokens[closing + 1] == ";":
            return closing + 1
        end = _upto(tokens, closing + 2, "}")
        names = [_declarator(one[1:])[0] for one in _split(tokens[opening + 1 : closing]) if one != ["void"]]
        body = _Body(tokens[opening - 1], tokens[closing + 2 : end], self.records)
        self.made += body.variables
        self.made.append(f"function {tokens[opening - 1]}({', '.join(names)}) {{\n{body.text}\n}}")
        return end


def _declarator(tokens: list[str]) -> tuple[str, list[list[str]], list[str]]:
    """Name, sizes of an array, and initial value."""
    rest = [token for token in tokens if token != "*"] if "=" not in tokens else tokens
    while rest[0] == "*":
        rest = rest[1:]
    sizes, k = [], 1
    while k < len(rest) and rest[k] == "[":
        end = _upto(rest, k + 1, "]")
        sizes.append(rest[k + 1 : end])
        k = end + 1
    return rest[0], sizes, rest[k + 1 :]


def _array(sizes: list[list[str]]) -> str:
    numbers = ", ".join(_joined(size) for size in sizes)
    return f"new Float64Array({numbers})" if len(sizes) == 1 else f"rows({numbers})"


class _Body:
    """The statements of a function."""

    def __init__(self, name: str, tokens: list[str], records: set[str]):
        self.name, self.records = name, records
        self.variables: list[str] = []
        self.names: dict[str, str] = {}  # new names of arrays, records and scalars whose address is taken
        self.types = _TYPES | records
        self.scalars = set[str]()  # declared scalars whose address is taken
        self.boxed = {
            tokens[k + 1]
            for k in range(1, len(tokens) - 1)
            if tokens[k] == "&" and not _is_value(tokens[k - 1]) and tokens[k + 2] in ",)"
        }
        self.text = _joined(self._statements(_without_casts(tokens, self.types)))

    def _statements(self, tokens: list[str]) -> list[str]:
        made, k = list[str](), 0
        while k < len(tokens):
            token = tokens[k]
            starts = not made or made[-1] in (";", "{", "}", "else", ")") or made[-2:] == ["for", "("]
            if token in self.types and starts:
                end = _upto(tokens, k, ";")
                declared = self._declared(token, tokens[k + 1 : end])
                made += declared
                k = end + (not declared)
                continue
            made += self._token(tokens, k)
            if token == "&" and not _is_value(tokens[k - 1]):
                k += 1
                made.pop()
                made.append(self.names.get(tokens[k], tokens[k]))
                if tokens[k + 1] in (".", "->"):
                    made += [".", tokens[k + 2], ".", "flat"]
                    k += 8  # &name.field[0][0]
            elif token == "*" and not (k and _is_value(tokens[k - 1])):
                k += 1
                made.pop()
                made += [self.names.get(tokens[k], tokens[k]), "[", "0", "]"]
            k += 1
        return made

    def _token(self, tokens: list[str], k: int) -> list[str]:
        token, before = tokens[k], tokens[k - 1] if k else ""
        if token == "->":
            return ["."]
        if before in (".", "->"):
            return [token]
        if token in _MISSING:
            raise Untraceable(f"calls {token}, which JavaScript lacks", "")
        if token in _MATH and tokens[k + 1 : k + 2] == ["("]:
            return [_MATH[token]]
        if token in self.scalars:
            return [self.names[token], "[", "0", "]"]
        return [_CONSTANTS.get(token, self.names.get(token, token))]

    def _declared(self, kind: str, tokens: list[str]) -> list[str]:
        made = list[str]()
        for one in _split(tokens):
            name, sizes, value = _declarator(one)
            if sizes or (kind in self.records and one[0] != "*"):
                self._hoisted(name, _array(sizes) if sizes else f"new_{kind}()")
                continue
            text = self._statements(value) if value else ["0"]
            if kind == "int" and "/" in value:
                text = ["Math.trunc", "(", *text, ")"]
            if name in self.boxed:
                self._hoisted(name, "new Float64Array(1)")
                self.scalars.add(name)
                made += [*[";"] * bool(made), self.names[name], "[", "0", "]", "=", *text]
            else:
                made += [*[";"] * bool(made), "let", name, "=", *text]
        return made

    def _hoisted(self, name: str, value: str):
        self.names[name] = f"{self.name}_{name}"
        self.variables.append(f"const {self.names[name]} = {value};")


def _without_casts(tokens: list[str], types: set[str] = _TYPES) -> list[str]:
    made, k = list[str](), 0
    while k < len(tokens):
        end = k + 2 if tokens[k + 1 : k + 2] and tokens[k + 1] in types else 0
        while end and tokens[end] == "*":
            end += 1
        if tokens[k] == "(" and end and tokens[end] == ")":
            if tokens[k + 1] == "int":
                made += ["Math.trunc", "(", tokens[end + 1], ")"]
                end += 1
            k = end + 1
        else:
            made.append(tokens[k])
            k += 1
    return made


def _is_value(token: str) -> bool:
    """Whether an operator after this token has a left operand."""
    return token in (")", "]") or bool(_WORD.match(token) and token != "return") or token[0].isdigit()


def _joined(tokens: list[str]) -> str:
    """Tokens as text, a line for each statement."""
    lines, line, depth = list[str](), "", 0
    for k, token in enumerate(tokens):
        after = tokens[k - 1] if k else ""
        tight = token in (")", "]", ",", ";", ".", "[") or after in ("(", "[", ".", "!", "")
        call = (
            token == "(" and bool(_WORD.match(after.split(".")[-1])) and after not in ("if", "for", "while", "return")
        )
        line += ("" if not line or tight or call or token in ("++", "--") else " ") + token
        depth += (token in "([") - (token in ")]")
        if depth == 0 and token in (";", "{", "}"):
            lines.append(line)
            line = ""
    return "\n".join([*lines, line] if line else lines)
