"""Torch twin of `heckesel.math.marginal_likelihood`, for a batch of Gaussian processes."""

import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch

from heckesel.math.marginal_likelihood import RIDGE

# Doubles in one array of datasets x n x n: 1 GiB; about six such arrays exist at a time.
DOUBLES_AT_ONCE = 2**27


@dataclass(frozen=True)
class PaddedDatasets:
    """b datasets with p columns each, padded with rows to the size n of the largest.

    x : (b, n, p); y : (b, n), 0 in padding rows; real : (b, n), 0 in padding rows, 1 elsewhere
    """

    x: torch.Tensor
    y: torch.Tensor
    real: torch.Tensor


def pad_datasets(datasets: Sequence[tuple[np.ndarray, np.ndarray]], device: str) -> PaddedDatasets:
    """Pairs x (n_k, p), y (n_k,) as one padded batch on the device."""
    n, p = max(len(y) for _, y in datasets), datasets[0][0].shape[1]
    x, (y, real) = np.zeros((len(datasets), n, p)), np.zeros((2, len(datasets), n))
    for k, (one_x, one_y) in enumerate(datasets):
        rows = slice(len(one_y))
        x[k, rows], y[k, rows], real[k, rows] = one_x, one_y, 1.0
    return PaddedDatasets(*(torch.as_tensor(part, device=device) for part in (x, y, real)))


def likelihoods(
    datasets: PaddedDatasets, which: Sequence[int], theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values (b,) and gradients (b, p + 2) of the datasets `which`, each at its row of theta."""
    at_once = max(1, DOUBLES_AT_ONCE // datasets.x.shape[1] ** 2)
    at = torch.as_tensor(theta, device=datasets.x.device)
    parts = []
    for start in range(0, len(which), at_once):
        rows = list(which[start : start + at_once])
        block = PaddedDatasets(datasets.x[rows], datasets.y[rows], datasets.real[rows])
        parts.append(batched_likelihood(at[start : start + at_once], block))
    values, gradients = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
    return values, gradients


def batched_likelihood(theta: torch.Tensor, datasets: PaddedDatasets):
    """`dense_likelihood` of b datasets at theta (b, p + 2).

    A padding row has variance 1, covariance 0 with other rows, and outcome 0, so it adds 0 to the
    log-determinant, to the quadratic form and to every product with the kernel.
    """
    x, y, real = datasets.x, datasets.y, datasets.real
    z = x / theta[:, None, 1:-1].exp()
    k = _kernel(theta, z) * (real[:, :, None] * real[:, None, :])
    noise, n = theta[:, -1].exp(), real.sum(1)
    covariance = k.clone()
    covariance.diagonal(dim1=1, dim2=2).add_((noise + RIDGE)[:, None] * real + (1 - real))
    factor, failed = torch.linalg.cholesky_ex(covariance)
    bad = failed > 0
    # the partial result of a failed factorisation depends on the routine and may be singular
    factor[bad] = torch.eye(factor.shape[1], dtype=factor.dtype, device=factor.device)
    a = torch.cholesky_solve(y[..., None], factor)  # (b, n, 1)
    fit = (y * a[..., 0]).sum(1)
    log_det = 2 * factor.diagonal(dim1=1, dim2=2).log().sum(1)
    value = -0.5 * (fit + log_det + n * np.log(2 * np.pi))

    inverse = torch.cholesky_inverse(factor)
    a_less_trace = (a**2).sum((1, 2)) - (inverse.diagonal(dim1=1, dim2=2) * real).sum(1)
    ones_and_z = torch.cat([torch.ones_like(a), z], dim=2)
    product = a * (k @ (a * ones_and_z)) - inverse.mul_(k) @ ones_and_z  # (b, n, 1 + p)
    lengths = (z**2 * product[..., :1] - z * product[..., 1:]).sum(1)
    constant = 0.5 * (fit - n - (noise + RIDGE) * a_less_trace)
    gradient = torch.cat([constant[:, None], lengths, (0.5 * noise * a_less_trace)[:, None]], 1)
    return value.masked_fill(bad, -torch.inf), gradient.masked_fill(bad[:, None], 0.0)


def _kernel(theta, z):
    """(b, n, n), computed in place."""
    squares = (z * z).sum(-1)
    k = (z @ z.mT).mul_(-2.0)
    k.add_(squares[:, :, None]).add_(squares[:, None, :]).clamp_(min=0.0)
    return k.mul_(-0.5).add_(theta[:, 0, None, None]).exp_()


def climb_side_by_side(
    climb: Callable,
    starts: Sequence[np.ndarray],
    datasets: Sequence[tuple[np.ndarray, np.ndarray]],
    device: str,
) -> list:
    """climb(likelihood, start) of every dataset, with the likelihoods computed together.

    Each climb runs in a thread and waits until all threads that are still running have asked for a
    likelihood. It takes the same steps as if it ran alone.
    """
    padded = pad_datasets(datasets, device)
    questions: queue.Queue = queue.Queue()
    answers: list[queue.Queue] = [queue.Queue() for _ in starts]

    def run(k):
        def likelihood(theta):
            questions.put((k, theta.copy()))
            answer = answers[k].get()
            if isinstance(answer, Exception):
                raise answer
            return answer

        try:
            return climb(likelihood, starts[k])
        finally:
            questions.put((k, None))

    with ThreadPoolExecutor(len(starts)) as pool:
        climbs = [pool.submit(run, k) for k in range(len(starts))]
        climbing = len(starts)
        while climbing:
            asked = sorted((questions.get() for _ in range(climbing)), key=lambda pair: pair[0])
            asked = [(k, theta) for k, theta in asked if theta is not None]
            climbing = len(asked)
            for k, answer in _answer(padded, asked):
                answers[k].put(answer)
    return [result.result() for result in climbs]


def _answer(padded, asked):
    """Pairs (k, (value, gradient)); an error goes to every climb, so that none waits forever."""
    if not asked:
        return []
    which, thetas = zip(*asked, strict=True)
    try:
        found = zip(*likelihoods(padded, which, np.stack(thetas)), strict=True)
    except Exception as error:
        found = [error] * len(which)
    return zip(which, found, strict=True)
