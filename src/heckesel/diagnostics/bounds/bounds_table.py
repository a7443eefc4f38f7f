"""`Bounds`: one row for each set of assumptions, from none to the full model."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from heckesel.errors import printable

WIDTH = 78
NAMES = {"imbens-manski": "Imbens-Manski", "stoye": "Stoye"}


@dataclass(frozen=True)
class BoundsRow:
    """The bounds under one set of assumptions.

    Attributes
    ----------
    name : str
        Name of the set of assumptions.
    assumes : str
        The assumptions, in words.
    target : str
        The bounded quantity, in words.
    lower, upper : float
        The bounds; equal if the assumptions determine the target.
    ci_low, ci_high : float
        Confidence interval of the target.
    """

    name: str
    assumes: str
    target: str
    lower: float
    upper: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True)
class Bounds:
    """Bounds under several sets of assumptions, the weakest first.

    It unpacks into the bounds without assumptions: ``low, high = hk.bounds(y, 0, 4)``.

    Attributes
    ----------
    rows : tuple of BoundsRow
        One row for each set of assumptions.
    level : float
        Confidence level.
    interval : str
        ``"imbens-manski"`` or ``"stoye"``.
    outcome : str
        Name of the outcome.

    Examples
    --------
    >>> import heckesel as hk
    >>> import numpy as np
    >>> found = hk.bounds([1.0, 2.0, np.nan, np.nan], 0.0, 4.0)
    >>> low, high = found
    >>> round(low, 2), round(high, 2)
    (0.75, 2.75)
    >>> list(found.to_frame().index)
    ['no assumption', 'missing at random']
    """

    rows: tuple[BoundsRow, ...]
    level: float
    interval: str
    outcome: str

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[float]:
        return iter((self.rows[0].lower, self.rows[0].upper))

    def __getitem__(self, at):
        return (self.rows[0].lower, self.rows[0].upper)[at]

    def to_frame(self):
        """Return the rows as a pandas DataFrame indexed by their names.

        Returns
        -------
        pandas.DataFrame
            The columns are ``assumes``, ``target``, ``lower``, ``upper``, ``ci_low`` and
            ``ci_high``.
        """
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.rows]).set_index("name")

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        kind = f"{100 * self.level:g} % interval"
        lines = [
            f"Bounds for {self.outcome!r}, {NAMES[self.interval]} confidence intervals",
            f"{'':{width}} {'lower':>10} {'upper':>10}   {kind:>23}",
        ]
        for row in self.rows:
            numbers = f"{row.lower:10.4g} {row.upper:10.4g}"
            lines.append(f"{row.name:{width}} {numbers}   {row.ci_low:11.4g} {row.ci_high:11.4g}")
            lines += textwrap.wrap(
                f"{row.target}: {row.assumes}", WIDTH, initial_indent="  ", subsequent_indent="  "
            )
        crossed = [row.name for row in self.rows if row.lower > row.upper]
        if crossed:
            lines += textwrap.wrap(
                f"The lower bound exceeds the upper bound for: {', '.join(crossed)}. The data "
                "contradict these assumptions, unless the difference is sampling error.",
                WIDTH,
            )
        return printable("\n".join(lines))

    __repr__ = __str__
