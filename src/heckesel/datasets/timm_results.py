"""timm: top-1 accuracy of some 1500 pretrained image models on six ImageNet test sets.

Source: the folder `results` of huggingface/pytorch-image-models on GitHub, the validation results
of its models, one CSV file for each test set. The files do not ship.
Licence: Apache 2.0.

Nearly every model was evaluated on every test set, so the results that selective reporting would
omit are known.
"""

import io
from pathlib import Path

import pandas as pd

from heckesel.datasets.outside import read_outside
from heckesel.errors import DataError

TEST_SETS = {
    "imagenet": "results-imagenet.csv",
    "imagenet-real": "results-imagenet-real.csv",
    "imagenetv2": "results-imagenetv2-matched-frequency.csv",
    "sketch": "results-sketch.csv",
    "imagenet-a": "results-imagenet-a.csv",
    "imagenet-r": "results-imagenet-r.csv",
}
HASHES = (
    "30972bf7c7ab451bbd4480ec6116b13d0a84441c57bbc946896fd312264acfcd",
    "e94696aed665475e4d0235195733775c5e1b3f36d6f5f7de99f4386e7ed11630",
    "1d066d8897c40224b14f3cf1d02029c49ebdc56b761ba9a3841bd3bdd3bd0a8e",
    "f3176de38d4a26aa808b3d0cc1fee4261268d70b2be7c9d43e65cb03b3864f46",
    "89471dcea0cd98b56211e2b808cb6bbf7b3c8bb4fe691ba58fec1f198e3fcf91",
    "2dcc1f3dea098ffc1080ad04309b11477646f6f25837b041ce6075610f863209",
)
FILES = {f"timm/{name}": sha for name, sha in zip(TEST_SETS.values(), HASHES, strict=True)}
UNIT = ["model", "img_size"]
PUBLISHED = (
    "the files are published in the folder results of "
    "github.com/huggingface/pytorch-image-models and are CSV tables with the columns model, "
    "img_size and top1"
)


def load_timm_results(folder: str | Path | None = None) -> pd.DataFrame:
    """Top-1 accuracy in per cent: one row per model and image size, one column per test set.

    A model evaluated at two image sizes has two rows, and one architecture has many variants, so
    rows are far from independent. A score that is not in the file of a test set is NaN; in the
    recorded files 1555 of 1557 rows have all six.
    """
    scores = {test_set: _top1(name, folder) for test_set, name in TEST_SETS.items()}
    return pd.DataFrame(scores).sort_index()


def _top1(name: str, folder: str | Path | None) -> pd.Series:
    recorded = f"timm/{name}"
    path = None if folder is None else Path(folder) / name
    content = read_outside(recorded, FILES[recorded], path, published=PUBLISHED)
    table = pd.read_csv(io.BytesIO(content))
    missing = [column for column in (*UNIT, "top1") if column not in table.columns]
    if missing:
        raise DataError(f"{name} has no column {missing[0]!r}; {PUBLISHED}")
    repeated = table[table.duplicated(UNIT)]
    if len(repeated):
        model, size = repeated.iloc[0][UNIT]
        raise DataError(f"{name} lists {model} at image size {size} twice; keep one of its rows")
    return table.set_index(UNIT)["top1"]
