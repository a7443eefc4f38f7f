"""What heckesel raises and warns with; every message is one sentence that names the way out."""

import difflib
import re
from collections.abc import Iterable
from numbers import Integral, Rational, Real


class HeckeselError(Exception):
    """Anything this package raises on purpose; its message is one line, whatever it quotes."""

    def __init__(self, message: str = "", *rest):
        super().__init__(re.sub(r"\s*\n\s*", " ", message), *rest)


class DataError(HeckeselError, ValueError):
    """The data or the arguments cannot be used; the message says which and what to do."""


class IdentificationWarning(UserWarning):
    """The fit rests on less than a user would assume: no instrument, or no selection at all."""


# Control characters but for line breaks and tabs, and those that turn the direction of text: on a
# terminal they could hide or forge what is shown.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """`text` with characters that command a terminal written as escapes, such as \\x1b."""
    return UNSAFE.sub(lambda found: repr(found[0])[1:-1], text)


def cannot_import(package: str, error: Exception, install: str) -> str:
    """The end of a sentence about a package that is needed: it is not there, or it is broken."""
    if isinstance(error, ModuleNotFoundError) and error.name == package:
        return f"{package}, which is not installed: {install}"
    reason = " ".join(str(error).split()) or type(error).__name__
    return f"{package}, which is installed but fails to import ({reason}); reinstall it: {install}"


def is_one_of(value, known) -> bool:
    """Whether an option is one of the strings `known`; a frame has no answer to `in`."""
    return isinstance(value, str) and value in known


def is_share(value) -> bool:
    """Whether a level is a number between 0 and 1."""
    return isinstance(value, Real) and not isinstance(value, Rational) and 0 < float(value) < 1


def is_whole(value) -> bool:
    """Whether a count or a seed is a whole number; True is not one."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_list(name: str, given) -> list:
    """An option that takes one name or several, as the list of them."""
    if isinstance(given, str | Integral):
        return [given]
    scalar = getattr(given, "shape", None) == ()  # an array, but not of anything
    listed = list(given) if isinstance(given, Iterable) and not scalar else [None]
    if not all(isinstance(each, str | Integral | tuple) for each in listed):
        raise DataError(f"{name} must be a name or a list of names, got {given!r}")
    return listed


def did_you_mean(name, known) -> str:
    """The end of a message about an unknown name: the one it resembles, if there is one."""
    close = difflib.get_close_matches(str(name), [str(each) for each in known], 1)
    return f"; did you mean {close[0]!r}?" if close else ""
