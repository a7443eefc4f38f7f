"""A `HeckmanClassifier` as plain fields and arrays, and back: estimates or networks."""

import numpy as np

from heckesel.errors import DataError
from heckesel.linear.results.inference import keep_result
from heckesel.linear.results.probit_prediction import LinearProbit
from heckesel.saving.model_file import Damage, imported
from heckesel.saving.saved_estimates import PROBIT, read_probit, write_fit
from heckesel.saving.saved_fields import Fields
from heckesel.saving.saved_linear import choice_of, restore_choice
from heckesel.tables.columns import Columns

NETWORKS = "heckesel.saving.network_layouts"
LABELS = (str, bool, int, float)


def state_of(model) -> dict:
    """The attributes that the fit set on `model`, other than those of all models."""
    classes = model.classes_.tolist()
    if not all(isinstance(label, LABELS) for label in classes):
        raise DataError(
            f"the classes are of type {type(classes[0]).__name__}, which cannot be saved; convert "
            "them to strings before the fit"
        )
    if model.outcome == "network":
        return {"classes": classes} | imported(NETWORKS).state_of(model)
    result = write_fit(model.result_, PROBIT)
    return {"classes": classes, "result": result, "choice": choice_of(model)}


def restore(model, state: Fields, columns: Columns) -> None:
    """Set the attributes of `model` that `state_of` returned."""
    model.classes_ = _classes_of(state)
    if model.outcome == "network":
        imported(NETWORKS).restore(model, state, columns, "BinaryMixture")
        state.take("rho_")  # optional in files of regressors
        return
    result = read_probit(state.inside("result"), columns, model.identification_)
    keep_result(model, result)
    model.fitted_ = LinearProbit(result)
    if state.has("choice"):
        restore_choice(model, state.inside("choice"))
    else:
        model.method = "ml"  # earlier versions had no other method


def _classes_of(state: Fields) -> np.ndarray:
    found = state.items("classes")
    good = len(found) == 2 and all(isinstance(label, LABELS) for label in found)
    if not good or type(found[0]) is not type(found[1]) or not found[0] < found[1]:
        raise Damage(f"has classes {found!r:.60}, which are not two sorted labels")
    return np.array(found)
