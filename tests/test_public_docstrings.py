"""Public functions, classes and methods have the sections that numpydoc asks for."""

import inspect
import re
from importlib import import_module

import pytest

import heckesel
from tests.test_tree import ROOT

REFERENCE = (ROOT / "docs" / "reference.md").read_text()
NAMES = sorted(
    {f"heckesel.{name}" for name in heckesel.__all__}
    | {f"heckesel.plots.{name}" for name in heckesel.plots.__all__}
    | {f"heckesel.metrics.{name}" for name in import_module("heckesel.metrics").__all__}
    | set(re.findall(r"auto(?:class|function):: (\S+)", REFERENCE))
    | {
        "heckesel.classical.forms.FunctionalForm",
        "heckesel.classical.probit_results.HeckmanProbitFit",
        "heckesel.classical.covariance.Test",
        "heckesel.classical.results.Mode",
    }
)


def found(name: str):
    home, _, last = name.rpartition(".")
    return getattr(import_module(home), last)


def members_of(kind: type):
    """The methods and properties of a class that the library itself defines."""
    for name, value in inspect.getmembers(kind):
        if isinstance(value, property):
            value = value.fget
        value = getattr(value, "func", value)  # of a cached property
        own = inspect.isfunction(value) and value.__module__.startswith("heckesel")
        if own and not name.startswith("_"):
            yield name, value


def lacking(name: str, function) -> list[str]:
    """What the docstring of a function or a property lacks."""
    text, signature = inspect.getdoc(function) or "", inspect.signature(function)
    if not text:
        return [f"{name} has no docstring"]
    parameters = [each for each in signature.parameters if each not in ("self", "cls")]
    found = [
        f"{name} does not describe {each}"
        for each in parameters
        if not re.search(rf"^(.*, )?{each}(,| :|$)", text, re.MULTILINE)
    ]
    if parameters and "Parameters\n---" not in text:
        found.append(f"{name} has no section Parameters")
    returns = signature.return_annotation
    nothing = returns in (None, "None", inspect.Signature.empty)
    if parameters and not nothing and not re.search(r"(Returns|Yields)\n---", text):
        found.append(f"{name} has no section Returns")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_the_sections_of_numpydoc(name):
    value = found(name)
    if inspect.isclass(value):
        text = inspect.getdoc(value) or ""
        wrong = [] if text else [f"{name} has no docstring"]
        if not issubclass(value, Exception):
            if not re.search(r"(Attributes|Parameters)\n---", text):
                wrong.append(f"{name} has no section Attributes or Parameters")
            for member, function in members_of(value):
                wrong += lacking(f"{name}.{member}", function)
        assert not wrong
    elif inspect.isfunction(value):
        assert not lacking(name, value)
