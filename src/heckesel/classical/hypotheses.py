r"""Linear hypotheses about coefficients, written as in "educ = 0, 2*exper - age = 1".

Names of terms may contain any character, including commas and operators. They are therefore
recognised first, the longest at each position. The rest is arithmetic, which Python parses.
"""

import ast
import difflib
import re

import numpy as np

from heckesel.classical.summary import heading_of
from heckesel.data import CONSTANT
from heckesel.errors import DataError

NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(?![\w.:\[(])")
OPERATORS = "+-*/=,()"
WORD = re.compile(r"[^\s+\-*/=,]+")
LISTED = 3  # near matches of an unknown name


def hypotheses_of(fit, terms) -> tuple[np.ndarray, np.ndarray]:
    """R (restrictions, parameters) and r of the hypothesis R params = r.

    terms : (equation, term) pairs, which are zero, and strings
    """
    rows: list[np.ndarray] = []
    unit = dict(zip(fit.params.index, np.eye(len(fit.params) + 1)[:-1], strict=True))
    for term in terms:
        if isinstance(term, str):
            rows += _parsed(term, fit, unit)
        elif isinstance(term, tuple) and all(map(_is_text, term)) and term in unit:
            rows.append(unit[term])
        else:
            raise DataError(f"there is no coefficient {term!r} in this fit{_near(term, fit)}")
    if not rows:
        raise DataError("terms is empty; name at least one coefficient")
    found = np.array(rows)
    _check_independent(found[:, :-1], terms)
    return found[:, :-1], -found[:, -1]


def _is_text(value) -> bool:
    return isinstance(value, str)


def _check_independent(matrix, terms) -> None:
    size = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not size.all():
        raise DataError(f"a hypothesis of {_shown(terms)} names no coefficient")
    if np.linalg.matrix_rank(matrix / size) < len(matrix):
        raise DataError(
            f"the hypotheses {_shown(terms)} are redundant or contradict each other; state each "
            "one once"
        )


def _shown(terms) -> str:
    return ", ".join(map(repr, terms))


def labels_of(fit) -> dict[str, tuple[str, str]]:
    """What a term can be called: by its name in the first equation that has it, and in each
    equation as equation:term, where the equation can be called as in the summary, too."""
    outcome = getattr(getattr(fit, "data", None), "y_name", "outcome")
    found: dict[str, tuple[str, str]] = {}
    for equation, term in fit.params.index:
        for name in (equation, heading_of(equation, outcome)):
            found.setdefault(f"{name}:{term}", (equation, term))
    for label in fit.params.index:
        found.setdefault(label[1], label)
    return found


def _parsed(text: str, fit, unit) -> list[np.ndarray]:
    """One row for each equality: the coefficients, then the constant, of left minus right."""
    source, values = _tokens(text, labels_of(fit), fit)
    rows = []
    for part in source.split(","):
        sides = [_evaluated(side, values, unit, text) for side in part.split("=")]
        sides = sides if len(sides) > 1 else [*sides, np.zeros_like(sides[0])]
        rows += [left - right for left, right in zip(sides[:-1], sides[1:], strict=True)]
    return rows


def _tokens(text: str, labels, fit) -> tuple[str, dict]:
    """`text` with each term replaced by a valid Python name, and the terms by name."""
    known = sorted(labels, key=len, reverse=True)
    values: dict[str, tuple[str, str]] = {}
    source, at = "", 0
    while at < len(text):
        label = next((each for each in known if _stands_at(each, text, at)), None)
        number = NUMBER.match(text, at)
        if number and (label is None or NUMBER.fullmatch(label)):
            source, at = source + number[0], number.end()
        elif label is not None:
            name = f"v{len(values)}"
            values[name] = labels[label]
            source, at = f"{source} {name} ", at + len(label)
        elif text[at] in OPERATORS or text[at].isspace():
            source, at = source + text[at], at + 1
        else:
            word = WORD.match(text, at)
            unknown = word[0] if word else text[at]
            raise DataError(f"there is no coefficient {unknown!r} in this fit{_near(unknown, fit)}")
    return source, values


def _stands_at(label: str, text: str, at: int) -> bool:
    """Whether this term, and no longer name that starts like it, is at this place."""
    if not text.startswith(label, at):
        return False
    end = at + len(label)
    return not re.match(r"[\w.:\[(]", text[end:]) or not re.match(r"\w", label[-1:])


def _evaluated(source: str, values, unit, text: str) -> np.ndarray:
    """The coefficients and the constant of an expression that is linear in the terms."""
    size = len(next(iter(unit.values())))

    def constant(value: float) -> np.ndarray:
        row = np.zeros(size)
        row[-1] = value
        return row

    def is_constant(row) -> bool:
        return not row[:-1].any()

    def value_of(node) -> np.ndarray:
        if isinstance(node, ast.Name):
            return unit[values[node.id]]
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return constant(float(node.value))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            return value_of(node.operand) * (-1 if isinstance(node.op, ast.USub) else 1)
        if not isinstance(node, ast.BinOp):
            raise ValueError
        left, right = value_of(node.left), value_of(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult) and (is_constant(left) or is_constant(right)):
            return left * right[-1] if is_constant(right) else left[-1] * right
        if isinstance(node.op, ast.Div) and is_constant(right) and right[-1]:
            return left / right[-1]
        raise ValueError

    try:
        return value_of(ast.parse(source.strip(), mode="eval").body)
    except (ValueError, SyntaxError, RecursionError):
        raise DataError(
            f"the hypothesis {text!r} is not a list of linear equations in the coefficients; "
            "write, for example, 'educ = 0, 2*exper - age = 1'"
        ) from None


def _near(term, fit) -> str:
    """The end of a message about an unknown name: those like it, or else all."""
    labels, name = labels_of(fit), ":".join(map(str, term if isinstance(term, tuple) else [term]))
    folded: dict[str, str] = {}
    for label in labels:
        folded.setdefault(label.lower(), label)
    close = difflib.get_close_matches(name.lower(), folded, LISTED)
    if close:
        return f"; did you mean {' or '.join(repr(folded[each]) for each in close)}?"
    names = dict.fromkeys(term for _, term in fit.params.index if term != CONSTANT)
    return f"; it has {', '.join(names)}"
