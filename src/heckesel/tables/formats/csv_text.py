"""CSV: bytes to text, text to a frame of strings, and a frame to text."""

import codecs
import csv
import io
import re
from types import SimpleNamespace

import pandas as pd

from heckesel.errors import DataError

DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
DETECTED_FROM = 20  # lines
DECIMALS_FROM = 1000  # rows
# Byte order marks, which identify the encoding of a file.
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is the start of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Latin-1 with letters and signs where Latin-1 has control characters, which no table has.
WESTERN = "cp1252"
CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f]")


def decoded(raw: bytes, path, encoding: str | None) -> tuple[str, str]:
    """The text and its encoding: the one given, else that of the mark at the start, else UTF-8,
    else Windows-1252, of which Latin-1 text is a special case."""
    marked = next((name for mark, name in MARKS.items() if raw.startswith(mark)), None)
    if encoding is not None:
        try:
            name = codecs.lookup(encoding).name
            # a mark at the start is no part of the header
            text = raw.decode("utf-8-sig" if name == "utf-8" else name)
        except LookupError:
            raise DataError(
                f"--encoding must be the name of an encoding, such as utf-8 or cp1252, got "
                f"{encoding!r}"
            ) from None
        except UnicodeError:
            raise DataError(f"{path} is not text in {encoding}; set another --encoding") from None
        return _text(text, path), name
    for name in (marked,) if marked else ("utf-8", WESTERN):
        try:
            text = raw.decode(name)
        except UnicodeDecodeError:
            continue
        if name == WESTERN and CONTROL.search(text):
            break
        return _text(text, path), name
    raise DataError(
        f"{path} is not UTF-8, UTF-16 or Windows-1252 text; set its --encoding, or save it as CSV "
        "in UTF-8"
    )


def _text(text: str, path) -> str:
    if "\0" in text:
        raise DataError(
            f"{path} contains zero bytes, so it is not text in the detected encoding; set its "
            "--encoding, or save it as CSV in UTF-8"
        )
    if not text.strip():
        raise DataError(f"{path} is empty")
    return text


def csv_frame(text: str, path, delimiter: str) -> pd.DataFrame:
    """The table, every column of strings."""
    delimiter = "\t" if delimiter == "\\t" else delimiter  # as it is typed in a shell
    if len(delimiter) != 1 or delimiter in '"\r\n ':
        raise DataError(
            f"--delimiter must be one character other than a quote, space or line break; got "
            f"{delimiter!r}"
        )
    names = _checked_fields(text, path, delimiter)
    try:
        frame = pd.read_csv(
            io.StringIO(text, newline=""),
            sep=delimiter,
            dtype=object,
            keep_default_na=False,
            index_col=False,
        )
    except (pd.errors.ParserError, ValueError) as error:
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
        raise DataError(f"{path} cannot be read as CSV: {reason}") from None
    if not len(frame):
        raise DataError(f"{path} has a header but no rows")
    return frame.set_axis(names, axis=1)


def _checked_fields(text: str, path, delimiter: str) -> list[str]:
    """The names of the columns, after a look at whether every line has a field for each; pandas
    would fill short lines without a word."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names: list[str] = []
    try:
        for fields in reader:
            if fields and not names:
                names = [name.strip() for name in fields]
            elif fields and len(fields) != len(names):
                raise DataError(
                    f"line {reader.line_num} of {path} has {len(fields)} fields, but the header "
                    f"has {len(names)}"
                )
    except csv.Error as error:
        raise DataError(f"line {reader.line_num} of {path} is not valid CSV: {error}") from None
    return names


def delimiter_of(text: str, path) -> str:
    """The one character of DELIMITERS that cuts every one of the first lines alike."""
    lines = text.lstrip("\r\n").split("\n")[:DETECTED_FROM]
    lines = [line for line in lines if line.strip()]
    unquoted = re.sub(r'"[^"]*"', "", lines[0])
    inside = [each for each in DELIMITERS if each in unquoted]
    if len(inside) < 2:
        return inside[0] if inside else ","
    alike = []
    for each in inside:
        try:
            counts = {len(row) for row in csv.reader(lines, delimiter=each)}
        except csv.Error:  # no CSV under this one
            continue
        if len(counts) == 1:
            alike.append(each)
    if len(alike) != 1:
        options = " or ".join(DELIMITERS[each] for each in inside)
        raise DataError(
            f"the columns of {path} may be separated by {options}; choose one with --delimiter"
        )
    return alike[0]


def has_decimal_commas(frame: pd.DataFrame) -> bool:
    """Whether the first rows have numbers such as 1,5 and none such as 1.5."""
    values = frame.head(DECIMALS_FROM).stack().str.strip()
    commas = values.str.fullmatch(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+")
    points = values.str.fullmatch(r"[+-]?\d*\.\d+") & ~values.str.fullmatch(
        r"[+-]?[1-9]\d{0,2}\.\d{3}"
    )
    return bool(commas.any() and not points.any())


def csv_text(frame: pd.DataFrame, *, delimiter: str, decimal: str) -> str:
    """A field with a line break of any kind is quoted. Before Python 3.13 csv does so only for the
    characters that end its lines: they are written as CRLF, one at a time, and cut to LF."""
    text = io.StringIO(newline="")
    rows = SimpleNamespace(write=lambda row: text.write(row.removesuffix("\r\n") + "\n"))
    frame.to_csv(
        rows,  # type: ignore[call-overload]
        index=False,
        sep=delimiter,
        decimal=decimal,
        lineterminator="\r\n",
    )
    return text.getvalue()
