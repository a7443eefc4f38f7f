"""What heckesel raises and warns with; every message is one sentence that names the way out."""

import difflib


class HeckeselError(Exception):
    """Anything this package raises on purpose."""


class DataError(HeckeselError, ValueError):
    """The data or the arguments cannot be used; the message says which and what to do."""


class IdentificationWarning(UserWarning):
    """The fit rests on less than a user would assume: no instrument, or no selection at all."""


def did_you_mean(name, known) -> str:
    """The end of a message about an unknown name: the one it resembles, if there is one."""
    close = difflib.get_close_matches(str(name), [str(each) for each in known], 1)
    return f"; did you mean {close[0]!r}?" if close else ""
