"""Draw the pictures of the documentation, and write its tutorials as scripts.

python scripts/docs_pictures.py            all pages
python scripts/docs_pictures.py clinic     one of them

A picture `_static/NAME.png` shows the axes `ax` that the page's own code has made above it. Each
page of TUTORIALS is also written to `examples/` as a script with cells, which editors and Jupytext
open as a notebook. Run this after changing the code of a page, and commit the files.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
import warnings
from contextlib import chdir, redirect_stdout
from pathlib import Path

import matplotlib
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
TUTORIALS = ("loans", "clinic", "survey", "simulation")
PARTS = re.compile(r"```python\n(.*?)```|\(_static/(\w+)\.png\)", re.DOTALL)


def draw(page: Path) -> None:
    """Run the code of a page and save its pictures."""
    text, scope = page.read_text(encoding="utf-8"), {}
    if "(_static/" not in text:
        return
    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(io.StringIO()):
        for block, name in PARTS.findall(text):
            if block:
                exec(compile(block, page.name, "exec"), scope)
            else:
                scope["ax"].figure.savefig(drawn := io.BytesIO(), dpi=120)
                # A palette makes the file three times smaller, and nobody sees the difference.
                picture = Image.open(drawn).convert("RGB").quantize(128)
                picture.save(DOCS / "_static" / f"{name}.png", optimize=True)


def script(page: Path) -> str:
    """A page as a script: prose in Markdown cells, code in cells."""
    cells = [f'"""Run it: python examples/{page.stem}.py. Written from docs/{page.name}."""\n']
    for place, part in enumerate(re.split(r"```(\w*)\n(.*?)```\n", page.read_text(), flags=re.S)):
        kind = place % 3  # prose, language of a block, its content
        if kind == 0 and part.strip():
            prose = re.sub(r"!\[(.*?)\]\(.*?\)\n", "", part).strip()
            lines = [f"# {line}".rstrip() for line in prose.splitlines()]
            cells.append("# %% [markdown]\n" + "\n".join(lines) + "\n")
        elif kind == 1:
            language = part
        elif kind == 2 and language == "python":
            cells.append(f"# %%\n{part}")
    return "\n".join(cells)


def main(names: list[str]) -> None:
    matplotlib.use("Agg")
    warnings.simplefilter("ignore")  # a page may show a fit that warns
    for page in sorted(DOCS.glob("*.md")):
        if names and page.stem not in names:
            continue
        if page.stem != "survey" or "HECKESEL_DATA" in os.environ:
            draw(page)
        if page.stem in TUTORIALS:
            (EXAMPLES / f"{page.stem}.py").write_text(script(page), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
