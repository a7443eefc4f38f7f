r"""Linear hypotheses about coefficients, written as in "educ = 0, 2*exper - age = 1".

Names of terms may contain any character, including commas and operators. They are therefore
recognised first, the longest at each position. The rest is arithmetic, which formulaic parses.
"""

import difflib
import re
from decimal import Decimal

import numpy as np
from formulaic.utils.constraints import LinearConstraints

from heckesel.classical.summary import heading_of
from heckesel.data import CONSTANT
from heckesel.errors import DataError

NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(?![\w.:\[(])")
WORD = re.compile(r"[^\s+\-*/=,]+")


def hypotheses_of(fit, terms) -> tuple[np.ndarray, np.ndarray]:
    """R (restrictions, parameters) and r of the hypothesis R params = r.

    terms : (equation, term) pairs, which are zero, and strings
    """
    rows, values, positions = [], [], {label: at for at, label in enumerate(fit.params.index)}
    for term in terms:
        if isinstance(term, str):
            found = _parsed(term, fit, positions)
            rows += list(found.constraint_matrix)
            values += list(found.constraint_values)
        elif isinstance(term, tuple) and term in positions:
            rows.append(np.eye(len(positions))[positions[term]])
            values.append(0.0)
        else:
            raise DataError(f"there is no coefficient {term!r} in this fit{_near(term, fit)}")
    if not rows:
        raise DataError("terms is empty; name at least one coefficient")
    matrix, shown = np.array(rows, dtype=float), ", ".join(map(repr, terms))
    size = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not size.all():
        raise DataError(f"a hypothesis of {shown} names no coefficient")
    if np.linalg.matrix_rank(matrix / size) < len(matrix):
        raise DataError(
            f"the hypotheses {shown} are redundant or contradict each other; state each one once"
        )
    return matrix, np.array(values, dtype=float)


def text_of(fit, row, constant) -> str:
    """One restriction as in "educ + 2*exper = 1", with the shortest name of each term."""
    names = {label: name for name, label in reversed(labels_of(fit).items())}
    names |= {label: name for name, label in labels_of(fit).items() if name == label[1]}
    parts = []
    for label, factor in zip(fit.params.index, row, strict=True):
        if factor:
            size = "" if abs(factor) == 1 else f"{abs(factor):g}*"
            parts.append(f"{'-' if factor < 0 else '+'} {size}{names[label]}")
    text = " ".join(parts)
    return f"{text[2:] if text[0] == '+' else '-' + text[2:]} = {constant:g}"


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


def _parsed(text: str, fit, positions) -> LinearConstraints:
    """The equalities of one string, in which each term is replaced by a valid name."""
    labels, source, at = labels_of(fit), "", 0
    known = sorted(labels, key=len, reverse=True)
    while at < len(text):
        label = next((each for each in known if _stands_at(each, text, at)), None)
        number = NUMBER.match(text, at)
        if number and (label is None or NUMBER.fullmatch(label)):
            source, at = source + format(Decimal(number[0]), "f"), number.end()
        elif label is not None:
            source, at = f"{source} v{positions[labels[label]]} ", at + len(label)
        elif text[at] in "+-*/=,()" or text[at].isspace():
            source, at = source + text[at], at + 1
        else:
            word = WORD.match(text, at)
            unknown = word[0] if word else text[at]
            raise DataError(f"there is no coefficient {unknown!r} in this fit{_near(unknown, fit)}")
    pairs = []
    for part in source.split(","):  # formulaic has no chains a = b = 0, and no sign after =
        sides = part.split("=") if "=" in part else [part, "0"]
        pairs += [f"({a}) - ({b})" for a, b in zip(sides[:-1], sides[1:], strict=True)]
    names = [f"v{at}" for at in range(len(positions))]
    try:
        if any(not side.strip() for side in re.split("[,=]", source)):
            raise ValueError
        return LinearConstraints.from_spec(", ".join(pairs), variable_names=names)
    except Exception:  # of several kinds
        raise DataError(
            f"the hypothesis {text!r} is not a list of linear equations in the coefficients; "
            "write, for example, 'educ = 0, 2*exper - age = 1'"
        ) from None


def _stands_at(label: str, text: str, at: int) -> bool:
    """Whether this term, and no longer name that starts like it, is at this place."""
    if not text.startswith(label, at):
        return False
    end = at + len(label)
    return not re.match(r"[\w.:\[(]", text[end:]) or not re.match(r"\w", label[-1:])


def _near(term, fit) -> str:
    """The end of a message about an unknown name: those like it, or else all."""
    name = ":".join(map(str, term)) if isinstance(term, tuple) else str(term)
    folded: dict[str, str] = {}
    for label in labels_of(fit):
        folded.setdefault(label.lower(), label)
    close = difflib.get_close_matches(name.lower(), folded, n=3)
    if close:
        return f"; did you mean {' or '.join(repr(folded[each]) for each in close)}?"
    names = dict.fromkeys(term for _, term in fit.params.index if term != CONSTANT)
    return f"; it has {', '.join(names)}"
