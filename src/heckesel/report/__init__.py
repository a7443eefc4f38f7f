"""Self-contained HTML reports: `write_report(model, X, y, path)`."""

from heckesel.report.page import write_report

__all__ = ["write_report"]
