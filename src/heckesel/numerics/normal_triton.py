"""log Phi and the inverse Mills ratio on a GPU, in one kernel instead of torch's thirty or so."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

BLOCK = 1024
SQRT_HALF = tl.constexpr(0.5**0.5)
SQRT_2_OVER_PI = tl.constexpr((2.0 / 3.141592653589793) ** 0.5)


@triton.jit
def _kernel(t, log_cdf, mills, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    value = tl.load(t + at, mask=inside, other=0.0)
    scaled = libdevice.erfcx(SQRT_HALF * tl.abs(value))
    half_square = 0.5 * value * value
    half_decay = 0.5 * libdevice.exp(-half_square)
    upper_tail = half_decay * scaled
    below = value < 0
    lower = libdevice.log(0.5 * scaled) - half_square
    tl.store(log_cdf + at, tl.where(below, lower, libdevice.log1p(-upper_tail)), mask=inside)
    ratio = tl.where(below, 1.0 / scaled, half_decay / (1.0 - upper_tail))
    tl.store(mills + at, SQRT_2_OVER_PI * ratio, mask=inside)


def log_ndtr_and_mills(t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As `normal_torch.log_ndtr_and_mills`, for a tensor on a GPU."""
    t = t.contiguous()
    log_cdf, mills = torch.empty_like(t), torch.empty_like(t)
    if t.numel():
        _kernel[(triton.cdiv(t.numel(), BLOCK),)](t, log_cdf, mills, t.numel(), BLOCK=BLOCK)
    return log_cdf, mills
