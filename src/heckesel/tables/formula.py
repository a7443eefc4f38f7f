"""The columns of outcome and selection equation, from formulas and a frame or from arrays, and
again at prediction; and the options of such a fit."""

import ast
import re
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd
from formulaic import Formula, ModelSpec, SimpleFormula
from formulaic.errors import DataMismatchWarning, FormulaicError
from formulaic.parser.types import Factor, Term

from heckesel.data import (
    CONSTANT,
    SelectionData,
    numeric,
    selected_rows,
    selection_data,
    term_names,
)
from heckesel.errors import DataError, did_you_mean, is_one_of, warn_user
from heckesel.io import in_threads
from heckesel.tables import values as kinds
from heckesel.tables.fit_input import group_codes, known_values
from heckesel.tables.frames import as_pandas, check_same_order, numbers_of

# Long tables are copied by several threads: touching new memory takes longer than copying.
ROWS_PER_THREAD = 1 << 16
GLANCE_ROWS = 64  # that distinguish most columns
COVARIANCES = ("information", "opg", "robust", "cluster")
WEIGHT_KINDS = ("frequency", "probability", "analytic")
FEW_CLUSTERS = 20  # below, even t(G - 1) rejects a true hypothesis too often
# A standard error from n equal rows has itself a relative error of about 1/sqrt(2n): a tenth at 50.
FEW_ROWS = 50


@dataclass(frozen=True)
class Equation:
    """One side of the model: a formula's right-hand side, remembered with its categories.

    variables : the columns of the data that it uses
    numbers : those that are numbers, with their means
    levels : of each categorical factor; transforms : what functions such as scale() learned
    made : the columns as formulaic makes them; a loaded equation makes it again
    """

    right: str
    variables: tuple[str, ...]
    numbers: dict[str, float]
    levels: dict[str, tuple]
    transforms: dict
    made: ModelSpec | None = field(default=None, metadata={"saved": False}, compare=False)

    @cached_property
    def spec(self) -> ModelSpec:
        """What makes the columns."""
        if self.made is not None:
            return self.made
        formula = _parsed(self.right, "loaded")
        factors = {str(each): each for term in formula for each in term.factors}
        _check_safe(factors)
        frame = {name: [mean] for name, mean in self.numbers.items()}
        for name, values in self.levels.items():
            inside = _python_names(name) & set(self.variables)
            frame |= {each: [values[0]] for each in inside}
        kinds_of = {
            name: (Factor.Kind("categorical"), {"categories": list(self.levels[name])})
            for name in factors
            if name in self.levels
        }
        spec = ModelSpec(formula, encoder_state=kinds_of, transform_state=self.transforms)
        return _evaluate(spec, pd.DataFrame(frame), self.right, "loaded").model_spec

    def check_loaded(self) -> None:
        """Refuse a formula that would run other code than arithmetic and known functions."""
        self.names  # noqa: B018

    @property
    def categories(self) -> dict[str, tuple]:
        """Columns of numbers that the formula uses as categories, with their levels."""
        return {
            name: values
            for factor, values in self.levels.items()
            for name in _python_names(factor) & self.numbers.keys()
        }

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

    def to_saved(self) -> "FormulaDesign":
        """The same without the rows."""
        return self if self.frame is None else replace(self, frame=None)

    @property
    def categories(self) -> dict[str, tuple]:
        """Columns of numbers that a formula uses as categories, with their levels."""
        both = self.outcome.categories | self.select.categories
        return both | (self.scale.categories if self.scale else {})

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
                f"{what} needs rows, but this fit was loaded or read from files and has none; "
                f"{way_out}"
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
    means = {
        name: float(frame.loc[complete, name].mean())
        for name in variables
        if kinds.is_number(frame[name])
    }
    levels = categories_of(spec)
    return Equation(right, variables, means, levels, dict(spec.transform_state), spec), matrix


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
    made = _evaluate(spec, frame, right, role).model_spec
    return replace(equation, made=made, levels=categories_of(made))


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


# What a formula in a file may call: the functions of formulaic and of NumPy that compute a number.
SAFE_CALLS = {"C", "I", "Q", "bs", "cc", "center", "cr", "cs", "poly", "scale", "standardize"}
SAFE_CALLS |= {"exp", "exp2", "exp10", "log", "log2", "log10"}
SAFE_NAMES = {
    "np": [
        "abs",
        "exp",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "sqrt",
        "square",
        "where",
        "arcsinh",
        "clip",
        "maximum",
        "minimum",
        "sin",
        "cos",
        "tanh",
        "sign",
    ],
    "contr": ["treatment", "sum", "helmert", "diff", "poly", "SAS"],
}
LARGEST_POWER = 10  # 9 ** 9 ** 9 would not come to an end
SAFE_NODES = (
    *(ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.UnaryOp),
    *(ast.operator, ast.unaryop, ast.Compare, ast.cmpop, ast.keyword, ast.List, ast.Tuple),
)


def _check_safe(factors: dict[str, Factor]) -> None:
    """Refuse factors that call anything else, since formulas are evaluated as Python."""
    for text, factor in factors.items():
        if str(factor.eval_method) not in ("python", "EvalMethod.PYTHON"):
            continue
        for node in ast.walk(ast.parse(re.sub(r"`[^`]*`", "x", text), mode="eval")):
            if isinstance(node, ast.Attribute):
                home = node.value.id if isinstance(node.value, ast.Name) else ""
                safe = node.attr in SAFE_NAMES.get(home, ())
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                power = node.right.value if isinstance(node.right, ast.Constant) else None
                safe = isinstance(power, int | float) and abs(power) <= LARGEST_POWER
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                safe = node.func.id in SAFE_CALLS
            else:
                safe = isinstance(node, SAFE_NODES)
            if not safe:
                raise DataError(f"the formula has {text!r}, which a file cannot hold")


def _python_names(factor: str) -> set[str]:
    """The names in a factor such as C(city)."""
    return {factor, *re.findall(r"`([^`]+)`", factor), *re.findall(r"[^\W\d]\w*", factor)}


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


# Arrays


@dataclass(frozen=True)
class ArrayDesign:
    """x : (n, p) and w : (n, q) as the user gave them, without intercepts.

    scale_names : columns of x that log sigma(x) depends on
    x_starts_w : whether the first columns of w equal those of x
    """

    x: np.ndarray
    w: np.ndarray
    x_names: tuple[str, ...]
    w_names: tuple[str, ...]
    scale_names: tuple[str, ...] = ()
    x_starts_w: bool = False
    categories: ClassVar[dict[str, tuple]] = {}

    def to_saved(self) -> "ArrayDesign":
        """The names without the rows."""
        return replace(self, x=self.x[:0], w=self.w[:0]) if len(self.x) else self

    def given(self, data, x, w) -> tuple[np.ndarray, np.ndarray | None]:
        if data is not None:
            raise DataError("this fit was made from arrays; pass x=... (and w=...), not a frame")
        if x is None:
            if not len(self.x):
                raise DataError("the file of a saved model holds no rows; pass x=... (and w=...)")
            return self.x, self.w
        return (
            columns_of(x, "x", self.x_names)[0],
            None if w is None else columns_of(w, "w", self.w_names)[0],
        )

    def outcome_matrix(self, given) -> np.ndarray:
        return with_intercept(given[0])

    def selection_matrix(self, given) -> np.ndarray:
        if given[1] is None:
            raise DataError("this target needs the selection columns too; pass w=...")
        if len(given[0]) != len(given[1]):
            raise DataError(f"x has {len(given[0])} rows but w has {len(given[1])}")
        return with_intercept(given[1])

    def scale_matrix(self, given) -> np.ndarray | None:
        """(m, k) columns of log sigma(x); None where sigma is constant."""
        if not self.scale_names:
            return None
        return given[0][:, [self.x_names.index(name) for name in self.scale_names]]

    def table(self, target: str) -> tuple[pd.DataFrame, list[str]]:
        """The columns that the target depends on, and their names; a name in both equations is one
        column."""
        needed = {name: self.w[:, j] for j, name in enumerate(self.w_names)}
        if target == "population":
            needed = {}
        if target != "selection":
            needed |= {name: self.x[:, j] for j, name in enumerate(self.x_names)}
        names = [name for name in (*self.x_names, *self.w_names) if name in needed]
        return pd.DataFrame(needed), list(dict.fromkeys(names))

    def matrices(self, frame: pd.DataFrame, target: str) -> tuple:
        """x, w and the columns of log sigma(x) of the rows of such a frame; None if not needed."""
        x, w, scale = None, None, None
        if target != "selection":
            x = frame[list(self.x_names)].to_numpy()
            scale = self.scale_matrix((x, None))
        if target != "population":
            w = with_intercept(frame[list(self.w_names)].to_numpy())
        return None if x is None else with_intercept(x), w, scale


def array_design(x, w, scale=None) -> ArrayDesign:
    """Columns of w without a name take that of an equal column of x, so that the others are
    recognised as instruments. scale : names of columns of x."""
    x_values, x_names = columns_of(x, "x")
    w_values, w_names = columns_of(w, "w")
    if len(x_values) != len(w_values):
        raise DataError(f"x has {len(x_values)} rows but w has {len(w_values)}")
    if x_names is None and w_names is not None:
        x_names = _matched(x_values, w_values, w_names, "x")
    x_names = x_names or tuple(f"x{j}" for j in range(x_values.shape[1]))
    first = _starts_with(w_values, x_values)
    known = x_names if first else ()
    rest = w_values[:, len(known) :]
    w_names = w_names or (*known, *_matched(rest, x_values, x_names, "w", len(known)))
    scale_names = _scale_names(scale, x_names)
    return ArrayDesign(x_values, w_values, x_names, w_names, scale_names, first)


def _starts_with(values: np.ndarray, first: np.ndarray) -> bool:
    """Whether the first columns of `values` equal `first`."""
    columns = values[:, : first.shape[1]]
    if not np.array_equal(columns[:GLANCE_ROWS], first[:GLANCE_ROWS]):
        return False
    blocks = _blocks(len(values))
    return all(in_threads(lambda rows: np.array_equal(columns[rows], first[rows]), blocks))


def _blocks(count: int) -> list[slice]:
    starts = range(0, count, ROWS_PER_THREAD)
    return [slice(start, start + ROWS_PER_THREAD) for start in starts]


def _scale_names(scale, x_names) -> tuple[str, ...]:
    """Those that log sigma(x) depends on; a formula needs a frame."""
    if scale is None:
        return ()
    if isinstance(scale, str):
        raise DataError(
            "with arrays, scale= is a list of names of columns of x, such as ['x0'], not a formula"
        )
    names = tuple(map(str, scale))
    for name in names:
        if name not in x_names:
            raise DataError(f"scale= names {name!r}, but x has no such column")
    if not names:
        raise DataError("scale= names no column of x; omit it")
    return names


def _matched(values, others, names, prefix: str, first: int = 0) -> tuple[str, ...]:
    """Each column's name: that of an equal column of the others, or its number from `first` on."""
    return tuple(
        _equal_column(column, others, names) or f"{prefix}{j}"
        for j, column in enumerate(values.T, first)
    )


def _equal_column(column, others, names) -> str | None:
    for j, name in enumerate(names):
        here = others[:GLANCE_ROWS, j]
        if not ((column[:GLANCE_ROWS] == here) | np.isnan(here)).all():
            continue
        if np.array_equal(column, others[:, j]):
            return name
        there = ~np.isnan(others[:, j])
        if there.any() and np.array_equal(column[there], others[there, j]):
            return name
    return None


def columns_of(values, role: str, expected: tuple[str, ...] | None = None):
    """(n, p) float64 and the names, or None where the input has none."""
    names: tuple[str, ...] | None = None
    if not hasattr(values, "columns"):
        array = numeric(values, role)
        if array.ndim not in (1, 2):
            raise DataError(f"{role} must be a table of rows and columns, got shape {array.shape}")
        if array.ndim == 1:
            array, name = array[:, None], getattr(values, "name", None)
            names = None if name is None else (str(name),)
    else:
        frame = as_pandas(values, role)
        names = tuple(str(name) for name in frame.columns)
        if expected is not None:
            missing = [name for name in expected if name not in names]
            if missing:
                raise DataError(f"{role} lacks the column {missing[0]!r} of the fit")
            names = expected
        array = np.column_stack([number_column(frame, name) for name in names])
    if expected is not None and array.shape[1] != len(expected):
        raise DataError(f"{role} has {array.shape[1]} columns but the fit had {len(expected)}")
    return array, names


def with_intercept(values: np.ndarray) -> np.ndarray:
    matrix = np.empty((len(values), values.shape[1] + 1))

    def fill(rows: slice) -> None:
        matrix[rows, 0] = 1.0
        matrix[rows, 1:] = values[rows]

    blocks = _blocks(len(values))
    for _ in (in_threads if len(blocks) > 1 else map)(fill, blocks):
        pass
    return matrix


# Both equations


def columns_from_formulas(
    outcome, select, data, *, weights, selected, scale=None, unobserved=None
) -> tuple[SelectionData, FormulaDesign]:
    """The checked columns, and how to make them from another frame."""
    if data is None:
        raise DataError("formulas need data=, a frame or a dict of columns")
    if select is None:
        raise DataError("the selection formula is missing: select='~ a + b'")
    check_same_order(data, of="data", selected=selected, weights=weights)
    frame = as_pandas(data)
    left, right = split_outcome(outcome)
    indicator, select_right = split_formula(select, "selection")
    known = frame if unobserved is None else outcome_known(frame, left, unobserved)
    y = evaluate_column(left, known, "outcome")
    if indicator is not None and selected is not None:
        raise DataError(f"select= names the indicator {indicator!r}; omit selected=")
    if indicator is not None:
        selected = evaluate_column(indicator, frame, "selection indicator")
    needed = selected_rows(y, selected, left)
    outcome_equation, x = build_equation(right, frame, needed, "outcome")
    select_equation, w = build_equation(select_right, frame, np.ones(len(frame), bool), "selection")
    scale_equation, z = scale_columns(scale, frame, needed) if scale is not None else (None, None)
    used = {*outcome_equation.variables, *select_equation.variables}
    used |= set() if scale_equation is None else set(scale_equation.variables)
    check_not_explained_by_itself(left, used)
    checked = selection_data(
        x,
        w,
        y,
        selected=selected,
        weight=side_column(weights, frame),
        x_names=outcome_equation.names,
        w_names=select_equation.names,
        y_name=left,
        excluded=select_equation.columns_beyond(outcome_equation.variables),
    )
    if scale_equation is not None:
        checked = replace(checked, scale=z, scale_names=scale_equation.names[1:])
    # A copy, because the user may change the frame later.
    held = frame[sorted(used)].copy()
    return checked, FormulaDesign(outcome_equation, select_equation, held, scale_equation)


def outcome_known(frame: pd.DataFrame, left: str, unobserved) -> pd.DataFrame:
    """The frame in which the values `unobserved` of the outcome are missing, before a function such
    as log is applied to it."""
    names = [left] if left in frame.columns else required_columns(f"0 + {left}", "outcome")
    if len(names) != 1 or names[0] not in frame.columns:
        raise DataError(
            f"unobserved= needs one column as the outcome, but {left!r} has "
            f"{', '.join(names) or 'none'}; set its values to missing before the fit"
        )
    return frame.assign(**{names[0]: known_values(frame[names[0]], unobserved)})


def split_outcome(outcome) -> tuple[str, str]:
    """Both sides of the outcome formula, which needs a left one."""
    left, right = split_formula(outcome, "outcome")
    if left is None:
        raise DataError(f"the outcome formula {outcome!r} needs a left-hand side: 'y ~ a + b'")
    return left, right


def columns_from_arrays(
    y, x, w, *, selected, weights, scale=None, unobserved=None
) -> tuple[SelectionData, ArrayDesign]:
    """The checked columns with a constant first, and the design without constants."""
    if unobserved is not None:
        y = known_values(y if isinstance(y, pd.Series) else pd.Series(np.asarray(y)), unobserved)
    check_same_order(x, of="x", w=w, y=y, selected=selected, weights=weights)
    design = array_design(x, w, scale)
    w_matrix = with_intercept(design.w)
    size = design.x.shape[1] + 1
    checked = selection_data(
        w_matrix[:, :size] if design.x_starts_w else with_intercept(design.x),
        w_matrix,
        y,
        selected=selected,
        weight=weights,
        x_names=("Intercept", *term_names(design.x_names)),
        w_names=("Intercept", *term_names(design.w_names)),
        y_name=str(getattr(y, "name", None) or "y"),
    )
    if scale is not None:
        z = design.scale_matrix((design.x, None))
        checked = replace(checked, scale=z, scale_names=design.scale_names)
    return checked, design


def with_constants(data: SelectionData, scale=()) -> tuple[SelectionData, ArrayDesign]:
    """The same of data that were checked without constants; scale : names in x."""
    design = ArrayDesign(data.x, data.w, data.x_names, data.w_names, scale)
    checked = replace(
        data,
        x=with_intercept(data.x),
        w=with_intercept(data.w),
        x_names=("Intercept", *data.x_names),
        w_names=("Intercept", *data.w_names),
        scale=design.scale_matrix((data.x, None)),
        scale_names=scale,
    )
    return checked, design


# Options of a linear fit


def side_column(values, frame):
    """Weights or clusters: a column's name or the values themselves; two names are clusters in two
    ways."""
    if (
        isinstance(values, list | tuple)
        and len(values) == 2
        and all(isinstance(name, str) for name in values)
    ):
        return pd.DataFrame({name: side_column(name, frame) for name in values})
    if not isinstance(values, str):
        return values
    if values in frame.columns and frame[values].dtype.kind in "OUS":
        return frame[values].to_numpy()
    return number_column(frame, values)


def check_instruments(instruments, checked, design) -> None:
    """Refuse instruments that are in the outcome equation or not in the selection equation."""
    if instruments is None:
        return
    if not isinstance(instruments, str | list | tuple):
        raise DataError(f"instruments must be a name or a list of names, got {instruments!r}")
    for name in [instruments] if isinstance(instruments, str) else instruments:
        in_outcome, in_select = checked.x_names, checked.w_names
        if isinstance(design, FormulaDesign):
            in_outcome, in_select = design.outcome.variables, design.select.variables
        if name in in_outcome:
            raise DataError(
                f"the instrument {name!r} is also in the outcome equation, so it is not an "
                "exclusion restriction; remove it from that equation"
            )
        if name not in in_select:
            raise DataError(f"the instrument {name!r} is not in the selection equation; add it")


def covariance_kind(kind, clusters, weight, weight_kind, *, has_likelihood: bool):
    """The covariance to compute and the clusters as integer codes, after checking that they,
    the weights and the method go together."""
    if not is_one_of(weight_kind, WEIGHT_KINDS):
        raise DataError(
            f"weight_kind must be 'frequency', 'probability' or 'analytic', got {weight_kind!r}"
        )
    fractions = weight != np.round(weight)
    if weight_kind == "frequency" and fractions.any():
        raise DataError(
            f"frequency weights must be whole numbers, but one is {weight[fractions][0]:g}; "
            "use weight_kind='probability' or 'analytic'"
        )
    if kind is None:
        kind = "robust" if weight_kind == "probability" else "information"
        kind = "cluster" if clusters is not None else kind
    if not is_one_of(kind, COVARIANCES):
        raise DataError(f"covariance must be one of {', '.join(COVARIANCES)}, got {kind!r}")
    if kind == "opg" and not has_likelihood:
        raise DataError("covariance='opg' needs a likelihood; use covariance='robust'")
    if weight_kind == "probability" and kind in ("information", "opg"):
        raise DataError(f"covariance={kind!r} is not valid with probability weights; use 'robust'")
    if (kind == "cluster") != (clusters is not None):
        raise DataError("groups= and covariance='cluster' go together")
    codes = None if clusters is None else cluster_codes(clusters, len(weight))
    _warn_of_few(codes, weight, weight_kind)
    return kind, codes


def cluster_codes(clusters, n: int) -> np.ndarray:
    """(n,) integer codes, or (n, 2) of clusters in two ways."""
    if getattr(clusters, "ndim", 1) != 2:
        return group_codes(clusters, n)
    columns = list(np.asarray(clusters).T)
    if len(columns) != 2:
        raise DataError(f"groups= takes clusters in one or two ways, got {len(columns)} columns")
    return np.column_stack([group_codes(column, n) for column in columns])


def _warn_of_few(codes, weight, weight_kind: str) -> None:
    """Warn of few clusters, or of a few rows of large weight."""
    ways = () if codes is None else codes[weight > 0].T.reshape(codes.ndim, -1)
    clusters = min((len(np.unique(way)) for way in ways), default=FEW_CLUSTERS)
    if clusters < FEW_CLUSTERS:
        warn_user(
            f"{clusters} clusters are few for a cluster covariance: standard errors tend to be too "
            f"small; p-values and intervals use t with {clusters - 1} degrees of freedom"
        )
    if weight_kind != "probability" or codes is not None:
        return
    share = weight / weight.sum()
    effective, rows = 1 / (share @ share), np.count_nonzero(weight)
    if effective < min(FEW_ROWS, rows / 2):
        warn_user(
            f"a few large probability weights dominate: {rows} rows are equivalent to "
            f"{effective:.0f} of equal weight, and standard errors tend to be too small; trim the "
            "weights or check them for errors"
        )
