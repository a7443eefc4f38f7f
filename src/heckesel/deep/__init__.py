"""Ensembles of networks, k trained at a time. They need torch, which the base installation does
not include."""

from heckesel.errors import HeckeselError, cannot_import

try:
    import torch  # noqa: F401
except Exception as error:  # a broken torch can raise anything: ImportError, OSError, RuntimeError
    raise HeckeselError(
        "networks need " + cannot_import("torch", error, "pip install 'heckesel[deep]'")
    ) from None
