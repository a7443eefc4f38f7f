"""Names and numbers for LaTeX."""

import math

from heckesel.display.number_text import number_text, p_text
from heckesel.errors import printable

SPECIAL = str.maketrans(
    {character: "\\" + character for character in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "\n": " ",
    }
)


def escaped(text: str) -> str:
    """`text` with the characters that are commands in LaTeX escaped."""
    found = printable(text).translate(SPECIAL)
    # after the end of a row, \\, these would be an option of it
    return "{}" + found if found.startswith(("[", "*")) else found


def latex_number(value: float, digits: int = 4) -> str:
    r"""As `number_text`, with a minus sign and powers of ten, such as $1.2 \times 10^{-5}$."""
    if math.isinf(value):
        return r"$-\infty$" if value < 0 else r"$\infty$"
    mantissa, e, exponent = number_text(value, digits).partition("e")
    if e:
        return rf"${mantissa} \times 10^{{{int(exponent)}}}$"
    return f"${mantissa}$" if mantissa.startswith("-") else mantissa


def latex_p(p: float) -> str:
    """As `p_text`."""
    text = p_text(p)
    return f"${text}$" if "<" in text else text
