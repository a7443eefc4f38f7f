"""Networks, k side by side. All of it needs torch, which the base installation does not have."""

from heckesel.errors import HeckeselError

try:
    import torch  # noqa: F401
except ImportError:
    raise HeckeselError(
        "networks need torch, which is not installed: pip install 'heckesel[deep]'"
    ) from None
