"""Everything published, made from `results/*.json`: numbers, scoreboard, claims, the page of our
own experiments, the audit of published fits, figure data, and the table of the README.

`python -m reproduction.pages.published` writes what has changed and draws the figures; with
`--train` it first trains the example of figure 1 (a).
"""

import io
import json
import re
import sys
from contextlib import redirect_stdout
from itertools import takewhile
from pathlib import Path

from heckesel.io import write_atomically
from reproduction.audit.audit_page import audit_md, read_audit
from reproduction.pages.beyond_paper import ours_md
from reproduction.pages.beyond_paper.main_results import main_results
from reproduction.pages.claims import claims_md
from reproduction.pages.figure_data import FROM_RESULTS, train_example
from reproduction.pages.macros import numbers_tex
from reproduction.pages.rows import read_results
from reproduction.pages.scoreboard import scoreboard_md
from reproduction.pages.truth_page import truth_md

TRAINED = "figures/fig1a.json"
PAGES = {"scoreboard": scoreboard_md, "claims": claims_md, "ours": ours_md, "truth": truth_md}


def generated(folder_results: Path) -> dict[str, str]:
    """Path below `paper/` -> the content of that file."""
    results = read_results(folder_results)
    pages = {"numbers.tex": numbers_tex(results)}
    for name, page in PAGES.items():
        pages[f"{name}.md"] = page(results) + "\n"
    pages["audit.md"] = audit_md(read_audit(folder_results)) + "\n"
    for name, data in FROM_RESULTS.items():
        if getattr(results, name, True):  # figures of our own experiments have their names
            pages[f"figures/{name}.json"] = _json(data(results))
    return pages


def regenerate(folder_results: Path, folder_paper: Path, *, train: bool = False) -> list[Path]:
    """Write the files that differ and return their paths; the same results give the same bytes.

    The example of figure 1 (a) is trained if it is missing, or with `train`.
    """
    pages = generated(folder_results)
    if train or not (folder_paper / TRAINED).exists():
        pages[TRAINED] = _json(train_example())
    written = []
    for name, text in pages.items():
        path = folder_paper / name
        if _committed(path) != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text)
            written.append(path)
    return written


def stale(folder_results: Path, folder_paper: Path) -> list[str]:
    """One sentence for each committed file that is missing or differs from the results."""
    found, trained = [], _committed(folder_paper / TRAINED)
    for name, text in {**generated(folder_results), TRAINED: trained}.items():
        before = _committed(folder_paper / name)
        if before is None:
            found.append(f"{folder_paper / name} is missing")
        elif before != text:
            lines = zip(before.splitlines(), text.splitlines(), strict=False)
            line = 1 + len(list(takewhile(lambda pair: pair[0] == pair[1], lines)))
            says = f"is not what {folder_results} gives, from line {line}"
            found.append(f"{folder_paper / name} {says}")
    return found


def _committed(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _json(data: dict) -> str:
    """One entry per line; a list is on a single line."""
    return _indented(data, 0) + "\n"


def _indented(value, depth: int) -> str:
    if isinstance(value, dict):
        inner = ",\n".join(
            f"{' ' * (depth + 1)}{json.dumps(key)}: {_indented(entry, depth + 1)}"
            for key, entry in value.items()
        )
        return f"{{\n{inner}\n{' ' * depth}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        inner = ",\n".join(" " * (depth + 1) + json.dumps(entry) for entry in value)
        return f"[\n{inner}\n{' ' * depth}]"
    return json.dumps(value)


def with_results(page: str, folder_results: Path) -> str:
    """The README with its table of main results, and with what its code prints."""
    table = main_results(read_results(folder_results))
    lines, header = page.split("\n"), table.split("\n")[0].split("|")[1]
    first = next(at for at, line in enumerate(lines) if line.startswith(f"|{header}|"))
    rows = len(list(takewhile(lambda line: line.startswith("|"), lines[first:])))
    page = "\n".join([*lines[:first], *table.split("\n"), *lines[first + rows :]])
    with redirect_stdout(printed := io.StringIO()):
        exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], {})
    return re.sub(r"```text\n.*?```", f"```text\n{printed.getvalue()}```", page, flags=re.DOTALL)


def main() -> int:
    from reproduction.pages.paper_figures import draw_figures

    paper = Path("paper")
    written = regenerate(Path("results"), paper, train="--train" in sys.argv[1:])
    for path in (*written, *draw_figures(paper / "figures")):
        print(path)
    readme = Path("README.md")
    write_atomically(readme, with_results(readme.read_text(encoding="utf-8"), Path("results")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
