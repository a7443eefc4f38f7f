"""Render formulas as MathML, which browsers display without JavaScript."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert


def _write(display: str):
    def visit(self, node) -> None:
        formula = convert(node.astext(), display=display)
        self.body.append(
            formula if display == "inline" else f'<div class="formula">{formula}</div>'
        )
        raise nodes.SkipNode

    return visit, None


def setup(app):
    app.add_html_math_renderer("mathml", _write("inline"), _write("block"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
