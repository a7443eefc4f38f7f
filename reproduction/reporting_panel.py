"""Reporting panels: one row per paper or model, one column per dataset, scores where reported.

The rules are those of the paper's vignette; `build_panel` states them.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

ACCURACY_LIKE = "accuracy|top 1|top-1|f1|map|psnr|ssim|bleu|rouge|miou|dice|auc|ap"
MOST_DATASETS, FEWEST_SCORES, FEWEST_ROWS = 8, 2, 40
MOST_TARGETS, FEWEST_REPORTED, LARGEST_SHARE = 5, 12, 0.95
DAYS_PER_YEAR = 365.25


@dataclass(frozen=True)
class Panel:
    """Who reported what.

    scores : (rows, datasets) standardised within a dataset, NaN where not reported
    dates : by row, the latest of its results; NaT where it has none
    first : by dataset, the first result on it anywhere in the source
    metrics : by dataset, the metric its scores are in
    unreported : chosen datasets on which no row of the panel reports
    unparsed : results of the task, in an accuracy-like metric, that are not numbers
    """

    scores: pd.DataFrame
    dates: pd.Series
    first: pd.Series
    metrics: dict[str, str]
    unreported: tuple[str, ...]
    unparsed: int

    @property
    def anchor(self) -> str:
        """The dataset most rows report on."""
        return str(self.scores.notna().sum().idxmax())

    @property
    def targets(self) -> list[str]:
        """Datasets reported by enough, but not all, of the rows that report the anchor."""
        beside = self.scores[self.scores[self.anchor].notna()].drop(columns=self.anchor)
        counts = beside.notna().sum().sort_values(ascending=False, kind="stable")
        usable = counts[:MOST_TARGETS].between(FEWEST_REPORTED, LARGEST_SHARE * len(beside))
        return list(usable.index[usable])


def build_panel(results: pd.DataFrame, task: str, unit: str) -> Panel | None:
    """The panel of a task, or None if fewer than FEWEST_ROWS rows report enough.

    Only results in accuracy-like metrics are used. The panel has the MOST_DATASETS datasets with
    most results, each with its most common metric, and the rows with at least FEWEST_SCORES cells.
    Of repeated cells the last one is used. Scores are standardised over these rows.

    results : task, dataset, metric, value, date and the column `unit`, which names a row;
        results without a name are not used
    """
    accuracy = results["metric"].str.lower().str.contains(ACCURACY_LIKE)
    asked = results[(results["task"] == task) & accuracy]
    usable = asked[asked["value"].notna() & (asked[unit] != "")]
    metrics = {
        dataset: _most_common(usable["metric"][usable["dataset"] == dataset])[0]
        for dataset in _most_common(usable["dataset"])[:MOST_DATASETS]
    }
    cells = usable[usable["metric"] == usable["dataset"].map(metrics)]
    cells = cells.drop_duplicates([unit, "dataset"], keep="last")
    table = cells.pivot(index=unit, columns="dataset", values="value").reindex(columns=[*metrics])
    table = table[table.notna().sum(axis=1) >= FEWEST_SCORES]
    if len(table) < FEWEST_ROWS:
        return None
    reported = table.notna().any()
    return Panel(
        scores=standardise(table.loc[:, reported]),
        dates=cells.groupby(unit)["date"].max().reindex(table.index),
        first=results.groupby("dataset")["date"].min().reindex(table.columns[reported]),
        metrics=metrics,
        unreported=tuple(table.columns[~reported]),
        unparsed=int(asked["value"].isna().sum()),
    )


def standardise(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean 0 and sd 1 (divisor n) over the scores of each column; if all are equal, they become
    0."""
    sd = scores.std(ddof=0)
    return (scores - scores.mean()) / sd.where(sd > 0, 1.0)


def ability(scores: pd.DataFrame) -> pd.DataFrame:
    """For every cell, the mean of the other scores that its row reports.

    The score of the cell itself is not included, so a reported cell averages one score less than an
    unreported one. NaN if there is no other score.
    """
    reported = scores.notna()
    others = scores.fillna(0.0).rsub(scores.sum(axis=1), axis=0)
    counts = reported.astype(int).rsub(reported.sum(axis=1), axis=0)
    return others / counts


def long_frame(**tables: pd.DataFrame) -> pd.DataFrame:
    """Tables (rows, datasets) as columns with one row per cell, and the dataset of each cell."""
    first = next(iter(tables.values()))
    datasets = np.tile(first.columns.to_numpy(dtype=object), len(first))
    columns = {name: table.to_numpy().ravel() for name, table in tables.items()}
    return pd.DataFrame(columns | {"dataset": datasets})


def panel_frame(panel: Panel) -> pd.DataFrame:
    """All cells, row by row: score (NaN where not reported), ability, dataset, age."""
    scores = panel.scores
    ages = pd.DataFrame({name: _age(panel, str(name)) for name in scores}, index=scores.index)
    return long_frame(score=scores, ability=ability(scores), age=ages)


def pair_frame(panel: Panel, target: str) -> pd.DataFrame:
    """Rows that report on the anchor: score on the target (NaN where not), anchor, age."""
    rows = panel.scores[panel.scores[panel.anchor].notna()]
    age = _age(panel, target).reindex(rows.index)
    frame = pd.DataFrame({"score": rows[target], "anchor": rows[panel.anchor], "age": age})
    return frame.reset_index(drop=True)


def _most_common(values: pd.Series) -> list[str]:
    """Distinct values by how often they occur; ties in order of first appearance."""
    counts = values.groupby(values, sort=False).size()
    return list(counts.sort_values(ascending=False, kind="stable").index)


def _age(panel: Panel, dataset: str) -> pd.Series:
    """Years from the first result on the dataset to the row's date."""
    return (panel.dates - panel.first[dataset]).dt.days / DAYS_PER_YEAR
