"""An ONNX graph while it is written: values have names, and each operator returns its own."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from heckesel.errors import imported

# The oldest in which `Equal` compares text; the file format is the one that came with it.
OPSET, FILE_FORMAT = 19, 9


def onnx_package():
    return imported("onnx", "exporting needs onnx, which is not installed", "onnx")


@dataclass(frozen=True)
class Part:
    """mean, variance : values (m,) or, with a weight (j,), (j, m); df : of a t"""

    mean: str
    variance: str
    distribution: str
    df: float | None = None
    weight: np.ndarray | None = None


@dataclass
class Graph:
    """Nodes, constants and inputs so far; numbers are float32, but for columns of x before they
    are centred: far from zero float32 would lose the digits in which rows differ."""

    part: ClassVar = Part  # the prediction of y; this module does not import fits
    inputs: list = field(default_factory=list)
    nodes: list = field(default_factory=list)
    constants: list = field(default_factory=list)

    def columns(self, name: str, width: int = 1, *, kind: str = "FLOAT") -> str:
        """An input (m, width) of numbers or, with kind "STRING", of text."""
        onnx = onnx_package()
        of_kind = getattr(onnx.TensorProto, kind)
        self.inputs.append(onnx.helper.make_tensor_value_info(name, of_kind, ["m", width]))
        return name

    def call(self, operator: str, *values, named: str | None = None, **attributes) -> str:
        """The value of `operator`; arguments that are not names of values are constants."""
        names = [each if isinstance(each, str) else self._constant(each) for each in values]
        named = named or f"heckesel/{len(self.nodes)}/{operator}"
        self.nodes.append(onnx_package().helper.make_node(operator, names, [named], **attributes))
        return named

    def as_number(self, value: str) -> str:
        """A value in single precision; 0 or 1 for a boolean."""
        return self.call("Cast", value, to=onnx_package().TensorProto.FLOAT)

    def double(self, value) -> str:
        """A value, or a constant, in double precision."""
        if not isinstance(value, str):
            return self._constant(value, np.float64)
        return self.call("Cast", value, to=onnx_package().TensorProto.DOUBLE)

    def centred(self, x: str, centre, scale=1.0) -> str:
        """(x - centre)/scale for x in double, in single precision."""
        apart = self.call("Sub", x, self.double(centre))
        return self.as_number(self.call("Div", apart, self.double(scale)))

    def normal_cdf(self, value: str) -> str:
        """Phi, to the rounding of float32 around one: operators include erf but not erfc."""
        erf = self.call("Erf", self.call("Mul", value, np.float64(np.sqrt(0.5))))
        return self.call("Mul", self.call("Add", erf, np.float32(1)), np.float32(0.5))

    def square(self, value: str) -> str:
        return self.call("Mul", value, value)

    def mean_over_members(self, value: str) -> str:
        """(m,) of (k, m)."""
        return self.call("ReduceMean", value, np.array([0]), keepdims=0)

    def several(self, part: Part) -> Part:
        """`part` with a weight: one that has none is the only one of its kind."""
        if part.weight is not None:
            return part
        first = np.array([0])
        mean, variance = (self.call("Unsqueeze", at, first) for at in (part.mean, part.variance))
        return replace(part, mean=mean, variance=variance, weight=np.ones(1))

    def model(self, outputs: tuple[str, ...], about: dict[str, str], *, shape: tuple = ("m",)):
        """The whole as an ONNX model; outputs are numbers of this shape, `about` its metadata."""
        onnx = onnx_package()
        kind = onnx.TensorProto.FLOAT
        found = [onnx.helper.make_tensor_value_info(name, kind, shape) for name in outputs]
        graph = onnx.helper.make_graph(self.nodes, "heckesel", self.inputs, found, self.constants)
        opset = [onnx.helper.make_opsetid("", OPSET)]
        model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=FILE_FORMAT)
        model.producer_name = "heckesel"
        onnx.helper.set_model_props(model, about)
        onnx.checker.check_model(model, full_check=True)
        return model

    def _constant(self, value, number=np.float32) -> str:
        value = np.asarray(value)
        if value.dtype.kind == "f":
            value = value.astype(number)
        name = f"heckesel/constant {len(self.constants)}"
        self.constants.append(onnx_package().numpy_helper.from_array(value, name))
        return name
