"""`model.export_onnx(path)`: the population prediction as a file that other programs run."""

import json
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heckesel import __version__
from heckesel.atomic_files import check_output, write_atomically
from heckesel.errors import DataError
from heckesel.onnx.column_inputs import number_names, text_names, write_columns
from heckesel.onnx.graph import Graph, Part
from heckesel.predictive.scales import LOG


def export_model(model, path) -> None:
    """`model`, fitted, as the ONNX file `path`, which is replaced in one step."""
    check_is_fitted(model)
    check_output(path)
    if model.transform_ is not None and model.transform_.name != LOG:
        given = model.transform_.name or "made of functions"
        raise DataError(
            f"target_transform is {given}, which cannot be exported to ONNX; use 'log', or "
            "transform y before the fit"
        )
    _refuse_plan(model)
    graph = Graph()
    x = write_columns(graph, model.columns_)
    if not hasattr(model.fitted_, "graph"):
        raise DataError(f"a fit of kind {type(model.fitted_).__name__} cannot be exported")
    part = model.fitted_.graph(graph, x)
    if model.transform_ is not None:
        part = _exponential(graph, part)
    part = _mixed(graph, part)
    graph.call("Identity", part.mean, named="mean")
    graph.call("Sqrt", part.variance, named="std")
    about = _about(model) | {"distribution": part.distribution}
    about |= {} if part.df is None else {"df": repr(part.df)}
    content = graph.model(("mean", "std"), about)
    write_atomically(path, content.SerializeToString())


def export_classifier(model, path) -> None:
    """The probabilities of both classes, as `export_model` has mean and std."""
    check_is_fitted(model)
    check_output(path)
    _refuse_plan(model)
    graph = Graph()
    both = model.fitted_.probability_graph(graph, write_columns(graph, model.columns_))
    graph.call("Transpose", graph.call("Concat", *both, axis=0), perm=[1, 0], named="probabilities")
    classes = json.dumps(model.classes_.tolist(), ensure_ascii=False)
    about = _about(model) | {"classes": classes}
    content = graph.model(("probabilities",), about, shape=("m", 2))
    write_atomically(path, content.SerializeToString())


def _refuse_plan(model) -> None:
    if model.columns_.plan is not None:
        raise DataError(
            "a model fitted with on_problem='fix' prepares its columns, which an ONNX file cannot "
            "do; prepare the table and fit it with on_problem='error'"
        )


def _about(model) -> dict[str, str]:
    """Metadata of the file, as strings."""
    return {
        "model": type(model).__name__,
        "heckesel": __version__,
        "outcome": model.outcome_name_,
        "columns": json.dumps(number_names(model.columns_), ensure_ascii=False),
        "text_columns": json.dumps(text_names(model.columns_), ensure_ascii=False),
        "verdict": model.identification_.verdict,
    }


def _exponential(graph: Graph, part: Part) -> Part:
    r"""The moments of :math:`e^z` for a normal z: :math:`M = e^{\mu + \sigma^2/2}` and
    :math:`M^2(e^{\sigma^2} - 1) = 2 M^2 e^{\sigma^2/2} \sinh(\sigma^2/2)`, which never cancels."""
    name = {"normal": "log-normal", "mixture of normals": "mixture of log-normals"}
    if part.distribution not in name:
        raise DataError(
            "the mean of exp(y) can be exported only for normal errors; fit errors='normal', or "
            "omit target_transform"
        )
    half = graph.call("Mul", part.variance, np.float32(0.5))
    mean = graph.call("Exp", graph.call("Add", part.mean, half))
    excess = graph.call("Mul", graph.call("Exp", half), graph.call("Sinh", half))
    variance = graph.call("Mul", graph.square(mean), graph.call("Mul", excess, np.float32(2)))
    return replace(part, mean=mean, variance=variance, distribution=name[part.distribution])


def _mixed(graph: Graph, part: Part) -> Part:
    """One mean and variance over the parts: the variance between them plus that within them."""
    if part.weight is None:
        return part
    weight = part.weight[None]  # (1, j)
    over = graph.call("MatMul", weight, part.mean)  # (1, m)
    apart = graph.square(graph.call("Sub", part.mean, over))
    variance = graph.call("MatMul", weight, graph.call("Add", part.variance, apart))
    first = np.array([0])
    mean, variance = graph.call("Squeeze", over, first), graph.call("Squeeze", variance, first)
    return replace(part, mean=mean, variance=variance, weight=None)
