"""What heckesel raises and warns with; every message is one sentence that names the way out."""


class HeckeselError(Exception):
    """Anything this package raises on purpose."""


class DataError(HeckeselError, ValueError):
    """The data or the arguments cannot be used; the message says which and what to do."""


class IdentificationWarning(UserWarning):
    """The fit rests on less than a user would assume: no instrument, or no selection at all."""
