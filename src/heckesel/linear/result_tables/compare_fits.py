"""`hk.compare_fits`: fits side by side."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from heckesel.display import latex_escaped, latex_number, markdown_escaped
from heckesel.errors import DataError, as_list
from heckesel.linear.result_tables import side_by_side
from heckesel.linear.result_tables.tidy import TIDY
from heckesel.linear.results.inference import NamedEstimates


@dataclass(frozen=True, repr=False)
class FitComparison:
    """Fits side by side, the result of `hk.compare_fits`.

    Attributes
    ----------
    names : tuple of str
        One name per fit.
    fits : tuple
        The fits.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
    >>> compared = hk.compare_fits([hk.heckman("y ~ x", "~ x + z", frame)], names=["ML"])
    >>> int(compared.glance().loc["ML", "nobs"])
    1000
    """

    names: tuple[str, ...]
    fits: tuple[NamedEstimates, ...]

    def to_text(self) -> str:
        """Text table: one block per equation, standard errors in parentheses.

        Returns
        -------
        str
        """
        return side_by_side.as_text(self.names, self._rows())

    def to_markdown(self) -> str:
        """The same table in Markdown.

        Returns
        -------
        str
        """
        return side_by_side.as_markdown(self.names, self._rows(name=markdown_escaped))

    def to_latex(self, stars: bool = False) -> str:
        """The same table in LaTeX, which needs the package booktabs.

        Parameters
        ----------
        stars : bool, default=False
            Whether to mark p-values below 0.05, 0.01 and 0.001 with one, two and three stars.
            They are the p-values of the summary.

        Returns
        -------
        str
        """
        text = {"name": latex_escaped, "number": latex_number}
        return side_by_side.as_latex(self.names, self._rows(**text, stars=stars), stars=stars)

    def to_html(self) -> str:
        """The same table in HTML, which notebooks show.

        Returns
        -------
        str
        """
        return side_by_side.as_html(self.names, self._rows())

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """The coefficients as numbers.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        DataFrame
            One row per (equation, term). The columns are (name, statistic): ``estimate``,
            ``std_error``, ``statistic``, ``p_value``, ``low`` and ``high`` of each fit.
        """
        frames = [fit.to_frame(level).rename(columns=TIDY) for fit in self.fits]
        labels = [
            (equation, term)
            for equation, terms in side_by_side.terms_of(frames).items()
            for term in terms
        ]
        together = pd.concat(frames, axis=1, keys=self.names, names=["fit", None], sort=False)
        return together.loc[labels]

    def glance(self) -> pd.DataFrame:
        """Table with one row that describes each fit.

        Returns
        -------
        DataFrame
            The columns of ``fit.glance()``.
        """
        return pd.concat([fit.glance() for fit in self.fits]).set_axis(list(self.names))

    def _rows(self, **options) -> side_by_side.Rows:
        frames = [fit.to_frame() for fit in self.fits]
        return side_by_side.rows_of(frames, self.fits, **options)

    __str__ = __repr__ = to_text
    _repr_html_ = to_html


def compare_fits(fits, names=None) -> FitComparison:
    """Put fits side by side, with one column per fit.

    Parameters
    ----------
    fits : list of fits
        Results of `heckesel.heckman` and `heckesel.probit`, and fitted `HeckmanRegressor` and
        `HeckmanClassifier` with a linear outcome.
    names : list of str, optional
        One name per fit. By default "(1)", "(2)" and so on.

    Returns
    -------
    FitComparison
        A printable table, which converts to Markdown, LaTeX, HTML and a frame.

    Raises
    ------
    DataError
        If a model has no coefficients, or there is not one distinct name per fit.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
    >>> fits = [hk.heckman("y ~ x", "~ x + z", frame, method=m) for m in ("ml", "two-step")]
    >>> compared = hk.compare_fits(fits, names=["ML", "two-step"])
    >>> print(compared.to_frame().loc[("outcome", "x"), ("ML", "estimate")].round(3))
    0.511
    """
    if not isinstance(fits, list | tuple) or not fits:
        raise DataError("compare_fits needs a list of fits, such as compare_fits([a, b])")
    results: tuple[Any, ...] = tuple(getattr(each, "result_", each) for each in fits)
    for each in results:
        if not isinstance(each, NamedEstimates):
            raise DataError(
                "compare_fits is for fitted linear models, and a "
                f"{type(each).__name__} has no table of coefficients"
            )
    if names is None:
        names = [f"({k})" for k in range(1, len(results) + 1)]
    names = tuple(map(str, as_list("names", names)))
    if len(names) != len(results):
        raise DataError(f"there are {len(results)} fits but {len(names)} names")
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise DataError(f"the name {repeated!r} appears twice; give each fit a different name")
    return FitComparison(names, results)
