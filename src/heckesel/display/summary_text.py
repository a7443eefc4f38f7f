"""A summary: a string that a notebook shows as HTML."""

from heckesel.display.html_table import STYLE, escaped


class Summary(str):
    """Text of a summary. It is a string, so that it can be printed, written and compared."""

    _html: str

    def __new__(cls, text: str, html: str | None = None):
        """html : the same as HTML; by default the text as it is"""
        made = super().__new__(cls, text)
        pre = f'<div class="heckesel">{STYLE}<pre>{escaped(text)}</pre></div>'
        made._html = pre if html is None else html
        return made

    def __repr__(self) -> str:
        return str(self)

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self._html

    def _repr_html_(self) -> str:
        return self._html
