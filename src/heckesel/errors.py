"""Exceptions and warnings; every message is one sentence that says what to do."""

import contextlib
import difflib
import importlib
import re
import sys
import warnings
from collections.abc import Iterable
from numbers import Integral, Rational, Real


class HeckeselError(Exception):
    """Base class of the errors that heckesel raises; its message is one line."""

    def __init__(self, message: str = "", *rest):
        super().__init__(re.sub(r"\s*\n\s*", " ", message), *rest)


class DataError(HeckeselError, ValueError):
    """The data or the arguments cannot be used; the message says why and what to do."""


class ColumnError(DataError):
    """A column cannot be used as it is.

    terms : columns or levels, such as region[north], of which one can be omitted to go on
    reason : why, as the end of a sentence about the term
    """

    def __init__(self, message: str = "", terms: tuple[str, ...] = (), reason: str = ""):
        super().__init__(message)
        self.terms, self.reason = terms, reason


class IdentificationWarning(UserWarning):
    """The data do not fully support the model, for example because there is no instrument."""


def warn_user(message: str, category: type[Warning] = IdentificationWarning) -> None:
    """A warning at the line outside this package that led to it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("heckesel."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


# Control characters except line breaks and tabs, and characters that change the direction of text:
# on a terminal they could hide or forge output.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """`text` with control characters written as escapes, such as \\x1b."""
    return UNSAFE.sub(lambda found: repr(found[0])[1:-1], text)


def cannot_import(package: str, error: Exception, install: str) -> str:
    """The end of a sentence about a required package that is missing or broken.

    The way out names the installed version with its build, such as 2.13.0+cpu, since pip would
    otherwise put the build for CUDA in its place.
    """
    if isinstance(error, ModuleNotFoundError) and error.name == package:
        return f"{package}, which is not installed: {install}"
    reason = " ".join(str(error).split()) or type(error).__name__
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    with contextlib.suppress(PackageNotFoundError):
        install = f"pip install --force-reinstall --no-deps {package}=={version(package)}"
    return f"{package}, which is installed but fails to import ({reason}); reinstall it: {install}"


def imported(module: str, needs: str, extra: str):
    """A module of an optional dependency; `needs` starts the sentence if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise HeckeselError(f"{needs}: pip install 'heckesel[{extra}]'") from None


def is_one_of(value, known) -> bool:
    """Whether an option is one of the strings `known`; `in` would fail for a frame."""
    return isinstance(value, str) and value in known


def is_share(value) -> bool:
    """Whether a level is a number between 0 and 1."""
    return isinstance(value, Real) and not isinstance(value, Rational) and 0 < float(value) < 1


def is_whole(value) -> bool:
    """Whether a count or a seed is a whole number; True is not one."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_device(name) -> None:
    """Refuse a name that is not a device, before torch is imported, which is slow."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", str(name)):
        raise DataError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:0', got {str(name)!r}")


def as_list(name: str, given) -> list:
    """The list of names in an option that takes one name or several."""
    if isinstance(given, str | Integral):
        return [given]
    scalar = getattr(given, "shape", None) == ()  # an array without dimensions
    listed = list(given) if isinstance(given, Iterable) and not scalar else [None]
    if not all(isinstance(each, str | Integral | tuple) for each in listed):
        raise DataError(f"{name} must be a name or a list of names, got {given!r}")
    return listed


def did_you_mean(name, known) -> str:
    """The end of a message about an unknown name: the most similar one, if there is one."""
    close = difflib.get_close_matches(str(name), [str(each) for each in known], 1)
    return f"; did you mean {close[0]!r}?" if close else ""
