"""One self-contained HTML page for a fit: `write_report(model, X, y, path)`."""

from heckesel.report.page import write_report

__all__ = ["write_report"]
