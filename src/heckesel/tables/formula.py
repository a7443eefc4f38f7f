"""From formulas and a frame to the columns of both equations, and again at prediction."""

import re
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from formulaic import Formula, ModelSpec, SimpleFormula
from formulaic.errors import DataMismatchWarning, FormulaicError
from formulaic.parser.types import Factor, Term

from heckesel.data import CONSTANT, term_names
from heckesel.errors import DataError, did_you_mean
from heckesel.tables import values as kinds
from heckesel.tables.frames import as_pandas, numbers_of


@dataclass(frozen=True)
class Equation:
    """One side of the model: a formula's right-hand side, remembered with its categories."""

    spec: ModelSpec
    variables: tuple[str, ...]
    numbers: frozenset[str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.spec.column_names)

    @property
    def plain(self) -> bool:
        """Every column is the intercept or a number of the data, unchanged."""
        return all(name == "Intercept" or name in self.numbers for name in self.names)

    def columns_beyond(self, variables: tuple[str, ...]) -> tuple[str, ...]:
        """Columns made from at least one variable that is not among these."""
        names, beyond = self.names, set(self.variables) - set(variables)
        return tuple(
            names[at]
            for term, positions in self.spec.term_indices.items()
            for at in positions
            if beyond & {str(variable) for variable in self.spec.term_variables[term]}
        )

    def matrix(self, frame: pd.DataFrame) -> np.ndarray:
        """(m, p); a level that did not occur in the fit raises an error."""
        check_variables(self.variables, frame)
        for name in self.variables:
            if kinds.is_number(frame[name]) != (name in self.numbers):
                was, now = (
                    ("number", "category") if name in self.numbers else ("category", "number")
                )
                raise DataError(f"column {name!r} was a {was} in the fit and is a {now} now")
            missing = np.flatnonzero(frame[name].isna())
            if len(missing):
                raise DataError(
                    f"column {name!r} is missing in {len(missing)} rows (first: row {missing[0]}); "
                    "fill or drop them"
                )
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataMismatchWarning)
            try:
                matrix = self.spec.get_model_matrix(frame, na_action="ignore", output="numpy")
            except DataMismatchWarning as unseen:
                raise DataError(
                    f"the data has a category that did not occur in the fit: {unseen}"
                ) from None
            except FormulaicError as error:
                reason = str(error).strip().splitlines()[-1]
                raise DataError(f"the data does not fit the formula: {reason}") from None
        return np.asarray(matrix, dtype=float)


@dataclass(frozen=True)
class FormulaDesign:
    """Both equations and the frame they were learned from; None where rows were read from files.

    scale : that of log sigma(x), if it is not constant
    """

    outcome: Equation
    select: Equation
    frame: pd.DataFrame | None
    scale: Equation | None = None

    def given(self, data, x, w) -> pd.DataFrame:
        if x is not None or w is not None:
            raise DataError("this fit was made from formulas; pass a frame, not x and w")
        return (
            self._held("predict() without data", "pass the rows: fit.predict(frame)")
            if data is None
            else as_pandas(data)
        )

    def _held(self, what: str, way_out: str) -> pd.DataFrame:
        if self.frame is None:
            raise DataError(
                f"{what} needs rows, and this fit read its rows from files and kept none; {way_out}"
            )
        return self.frame

    def outcome_matrix(self, frame) -> np.ndarray:
        return self.outcome.matrix(frame)

    def selection_matrix(self, frame) -> np.ndarray:
        return self.select.matrix(frame)

    def scale_matrix(self, frame) -> np.ndarray | None:
        """(m, k) columns of log sigma(x), without the constant; None where sigma is constant."""
        return None if self.scale is None else self.scale.matrix(frame)[:, 1:]

    def table(self, target: str) -> tuple[pd.DataFrame, list[str]]:
        """The frame of the fit, and the variables that the target depends on."""
        used = set(self.select.variables) if target != "population" else set()
        if target != "selection":
            used |= {*self.outcome.variables, *(self.scale.variables if self.scale else ())}
        held = self._held("average() or margins()", "fit a frame with a sample of the rows")
        return held, sorted(used)

    def matrices(self, frame: pd.DataFrame, target: str) -> tuple:
        """x, w and the columns of log sigma(x) of the rows of such a frame; None if not needed."""
        w = self.select.matrix(frame) if target != "population" else None
        if target == "selection":
            return None, w, None
        return self.outcome.matrix(frame), w, self.scale_matrix(frame)


def split_formula(text: str, role: str) -> tuple[str | None, str]:
    """Left and right side of a formula; the left may be empty."""
    if not isinstance(text, str):
        raise DataError(f"{role} must be a formula such as 'y ~ a + b', not {type(text).__name__}")
    left, tilde, right = text.partition("~")
    if not tilde or not right.strip():
        raise DataError(f"the {role} formula {text!r} needs a right-hand side: 'y ~ a + b'")
    left = re.sub(r"^`([^`]+)`$", r"\1", left.strip())  # `lambda` is the column lambda
    return left or None, right.strip()


def build_equation(right: str, frame: pd.DataFrame, needed: np.ndarray, role: str):
    """The `Equation` and its (n, p) matrix, NaN on rows that lack a value.

    needed : (n,) bool, the rows that must be complete. Others may be incomplete; they are not used
        to learn categories and scales, and stay NaN.
    """
    formula = _parsed(right, role)
    variables = _variables(formula)
    check_variables(variables, frame)
    for name in variables:
        _check_kind(frame[name], name)
    complete = (
        frame[list(variables)].notna().all(axis=1).to_numpy()
        if variables
        else np.ones(len(frame), bool)
    )
    lacking = needed & ~complete
    if lacking.any():
        holes = [v for v in variables if frame.loc[lacking, v].isna().any()]
        raise DataError(
            f"{int(lacking.sum())} rows (first: row {np.flatnonzero(lacking)[0]}) lack a value in "
            f"{', '.join(map(repr, holes))}, which the {role} equation needs; fill or drop them"
        )
    materialised = _evaluate(formula, frame[complete], right, role)
    spec = materialised.model_spec
    # transformations such as bs() and scale() name their variables only once evaluated
    variables = tuple(sorted({str(v) for v in spec.required_variables} & set(frame.columns)))
    matrix = np.full((len(frame), len(spec.column_names)), np.nan)
    matrix[complete] = np.asarray(materialised, dtype=float)
    numbers = frozenset(name for name in variables if kinds.is_number(frame[name]))
    return Equation(spec, variables, numbers), matrix


def scale_formula(text) -> str:
    """The right-hand side of a formula of log sigma(x), which has no other."""
    left, right = split_formula(text, "scale")
    if left is not None:
        raise DataError(f"the scale formula {text!r} needs no left-hand side: write '~ a + b'")
    return right


def scale_columns(text, frame: pd.DataFrame, needed: np.ndarray):
    """The `Equation` of log sigma(x) and its (n, k) matrix without the constant."""
    right = scale_formula(text)
    equation, matrix = build_equation(right, frame, needed, "scale")
    check_scale_equation(equation, text)
    return equation, matrix[:, 1:]


def check_scale_equation(equation: Equation, text: str) -> None:
    """Refuse a formula without an intercept or without a column."""
    if equation.names[:1] != ("Intercept",):
        raise DataError(
            f"the scale formula {text!r} removes the intercept, which is log_sigma; omit '0' and "
            "'-1'"
        )
    if len(equation.names) == 1:
        raise DataError(f"the scale formula {text!r} names no column; omit scale=")


def required_columns(right: str, role: str) -> tuple[str, ...]:
    """Variables a formula names."""
    return _variables(_parsed(right, role))


def categories_of(spec: ModelSpec) -> dict[str, tuple]:
    """Levels of every categorical factor of a formula."""
    return {
        str(factor): tuple(state["categories"])
        for factor, (_, state) in spec.encoder_state.items()
        if "categories" in state
    }


def with_categories(
    equation: Equation, right: str, frame: pd.DataFrame, found: list[dict], role: str
) -> Equation:
    """The equation with the levels of all rows; found : those of each batch."""
    state = {}
    for factor, (kind, learned) in equation.spec.encoder_state.items():
        lists = [levels[factor] for levels in found if factor in levels]
        if "categories" in learned and lists:
            learned = {"categories": list(kinds.merged_levels(lists))}
        state[factor] = (kind, learned)
    spec = ModelSpec(formula=_parsed(right, role), encoder_state=state)
    return replace(equation, spec=_evaluate(spec, frame, right, role).model_spec)


def evaluate_column(text: str, frame: pd.DataFrame, role: str) -> np.ndarray:
    """A left-hand side such as `wage` or `np.log(wage)`, missing values kept."""
    if text in frame.columns:
        return number_column(frame, text)
    formula = _parsed(f"0 + {text}", role)
    check_variables(_variables(formula), frame)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(_evaluate(formula, frame, text, role), dtype=float)
    if values.shape[1] != 1:
        raise DataError(f"the {role} {text!r} must be one numeric column")
    there = frame[list(_variables(formula))].notna().all(axis=1).to_numpy()
    lost = np.flatnonzero(there & np.isnan(values[:, 0]))
    if len(lost):
        raise DataError(
            f"the {role} {text!r} is not a number in {len(lost)} rows without missing values "
            f"(first: row {lost[0]}); set these to missing if they were not observed"
        )
    return values[:, 0]


def number_column(frame: pd.DataFrame, name: str) -> np.ndarray:
    """A column as float64, missing values NaN."""
    check_variables([name], frame)
    return numbers_of(frame[name], name)


def check_variables(variables, frame) -> None:
    for name in variables:
        if name not in frame.columns:
            hint = did_you_mean(name, frame.columns)
            raise DataError(f"there is no column {name!r} in the data{hint}")
        if pd.api.types.is_complex_dtype(frame[name]):
            numbers_of(frame[name], name)  # raises; formulas would drop the imaginary part


def check_not_explained_by_itself(y: str, variables) -> None:
    if y in variables:
        raise DataError(f"the outcome {y!r} is also on the right-hand side; remove it there")


def _parsed(right: str, role: str) -> Formula:
    try:
        if re.search(r"`[01]`", right):
            raise ValueError(
                "a column named 0 or 1 cannot be distinguished from the constant; rename it"
            )
        formula = Formula(right)
        if not isinstance(formula, SimpleFormula):
            raise ValueError("it has more than one part")
        return _apart_from_constant(formula)
    except (FormulaicError, SyntaxError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "syntax error"
        raise DataError(f"the {role} formula {right!r} cannot be read: {reason}") from None


def _apart_from_constant(formula: SimpleFormula) -> SimpleFormula:
    """A column called Intercept as I(Intercept): formulaic gives the constant that name."""
    named = Factor(*term_names([CONSTANT]), eval_method="python")
    return SimpleFormula(
        [Term([named if str(f) == CONSTANT else f for f in term.factors]) for term in formula]
    )


def outcome_variables(text: str) -> tuple[str, ...]:
    """The columns in a left-hand side."""
    return _variables(_parsed(f"0 + {text}", "outcome"))


def _variables(formula: Formula) -> tuple[str, ...]:
    """Data columns the formula uses; functions such as log are formulaic's own."""
    return tuple(sorted(str(v) for v in formula.required_variables))


def _evaluate(formula, frame, text, role):
    try:
        return formula.get_model_matrix(frame, na_action="ignore")
    except Exception as error:  # a formula runs the user's own code, which may raise anything
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise DataError(f"the {role} formula {text!r} cannot be evaluated: {reason}") from None


def _check_kind(column: pd.Series, name: str) -> None:
    """Refuse strings that are mostly numbers, dates and objects."""
    kind = kinds.kind_of(column)
    if kind == kinds.NEITHER:
        numbers_of(column, name)  # raises, and shows the first of them
    if kind == kinds.NUMERALS and column.notna().any():
        numbers = pd.to_numeric(column, errors="coerce")
        odd = column[numbers.isna() & column.notna()]
        shown = f"such as {odd.iloc[0]!r}" if len(odd) else "stored as text"
        raise DataError(
            f"column {name!r} should hold numbers but has values {shown}; convert it, or write "
            f"C({name}) if its values are categories and make the column categorical"
        )
