"""`model.export_onnx(path)`: the population prediction as a file that other programs run."""

from __future__ import annotations

import json
from importlib import import_module

from sklearn.utils.validation import check_is_fitted

from heckesel import __version__
from heckesel.atomic_files import check_output, write_atomically
from heckesel.errors import DataError
from heckesel.onnx.column_inputs import number_names, text_names, write_columns
from heckesel.onnx.graph import Graph
from heckesel.onnx.output_moments import Part, exponential, mixed


def export_model(model, path) -> None:
    """`model`, fitted, as the ONNX file `path`, which is replaced in one step."""
    check_is_fitted(model)
    check_output(path)
    if model.transform_ is not None and not model.transform_.is_log:
        raise DataError(
            "target_transform is made of functions, which an ONNX file cannot hold; take 'log', "
            "or transform y before the fit"
        )
    graph = Graph()
    x = write_columns(graph, model.columns_)
    # the networks need torch, a linear fit does not
    home = "linear_graph" if hasattr(model, "result_") else "network_graphs"
    part = import_module(f"heckesel.onnx.{home}").write_fit(graph, model.fitted_, x)
    if model.transform_ is not None:
        part = exponential(graph, part)
    part = mixed(graph, part)
    graph.call("Identity", part.mean, named="mean")
    graph.call("Sqrt", part.variance, named="std")
    content = graph.model(("mean", "std"), _about(model, part))
    write_atomically(path, content.SerializeToString())


def _about(model, part: Part) -> dict[str, str]:
    """What a reader of the file needs to know, as texts."""
    about = {
        "model": type(model).__name__,
        "heckesel": __version__,
        "outcome": model.outcome_name_,
        "columns": json.dumps(number_names(model.columns_), ensure_ascii=False),
        "text_columns": json.dumps(text_names(model.columns_), ensure_ascii=False),
        "distribution": part.distribution,
        "verdict": model.identification_.verdict,
    }
    return about if part.df is None else about | {"df": repr(part.df)}
