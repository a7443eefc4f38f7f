"""Names of columns, and of the tables of a file that has several."""

from collections.abc import Sequence

from heckesel.errors import DataError, did_you_mean


def full_names(names: Sequence[str], path) -> list[str]:
    """The names, with `column 4` for an empty fourth one; a repeated name is refused."""
    found: list[str] = []
    for position, given in enumerate(names):
        name = given or f"column {position + 1}"
        if name in found or (not given and name in names):
            raise DataError(f"the column name {name!r} appears twice in {path}; rename one")
        found.append(name)
    return found


def chosen(table: str | None, names: Sequence[str], path, what: str) -> str:
    """The table that was asked for, or the only one; what : how a table is called there"""
    if table is not None and table not in names:
        hint = did_you_mean(table, names) or f"; it has {', '.join(names)}"
        raise DataError(f"{path} has no {what} {table!r}{hint}")
    if table is None and len(names) != 1:
        held = f"{len(names)} {what}s ({', '.join(names)})" if names else f"no {what}"
        raise DataError(f"{path} has {held}" + "; choose one with --table" * bool(names))
    return names[0] if table is None else table
