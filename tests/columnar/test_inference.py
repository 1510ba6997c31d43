"""Schemas that are inferred from samples in JSON."""

import json
from typing import Any

import pytest

from gateway.columnar.bodies.inference import MOST_NAMES, Inference
from gateway.columnar.bodies.languages import open_schema
from gateway.columnar.encoding.typed_messages import typed_columns
from tests.columnar.typed_schemas import json_file

DOCUMENT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def inferred(*samples: Any) -> dict[str, Any]:
    inference = Inference()
    for sample in samples:
        inference.add(json.dumps(sample).encode())
    assert not inference.refused
    schema = inference.schema()
    bodies = open_schema(json_file(schema))
    typed_columns(bodies.kind)
    for sample in samples:
        bodies.decode(json.dumps(sample).encode())  # the samples match their schema
    return {name: value for name, value in schema.items() if name not in DOCUMENT}


def properties(*samples: Any) -> Any:
    return inferred(*samples)["properties"]


@pytest.mark.parametrize(
    ("values", "schema"),
    [
        ([1, 2], {"type": "integer"}),
        ([1, 2.5], {"type": "number"}),
        ([2**63, 1], {"type": "number"}),
        ([1, None], {"type": ["integer", "null"]}),
        ([1.5, None, 2], {"type": ["null", "number"]}),
        ([True, 1], {"type": ["boolean", "integer"]}),
        (["a", 1, None], {"type": ["integer", "null", "string"]}),
        (["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+01:00"], {"type": "string", "format": "date-time"}),
        (["2026-01-31T12:00:00"], {"type": "string"}),
        (["2026-01-31", "2026-02-01"], {"type": "string", "format": "date"}),
        (["2026-01-31", "soon"], {"type": "string"}),
        ([[1], [], [2.5]], {"type": "array", "items": {"type": "number"}}),
        ([{"a": 1}, {"b": 2}], {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}),
        ([{"a": 1}, None], {"type": ["null", "object"], "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
    ],
)  # fmt: skip
def test_the_type_of_a_field_is_that_of_all_samples(values: list[Any], schema: Any) -> None:
    assert properties(*({"v": value} for value in values)) == {"v": schema}


def test_a_field_whose_type_no_sample_tells_is_left_out() -> None:
    samples = [{"a": 1, "b": None, "c": [], "d": [None]}, {"a": 2}]
    assert inferred(*samples) == {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def test_names_that_are_data_are_a_map() -> None:
    schema = properties({"by_device": {f"device-{number}": number / 2 for number in range(MOST_NAMES + 1)}})
    assert schema == {"by_device": {"type": "object", "additionalProperties": {"type": "number"}}}


def test_samples_that_are_not_json_are_counted_and_change_nothing() -> None:
    inference = Inference()
    for body in (b'{"a": 1}', b"junk", b'{"a": NaN}', b"[" * 100_000, b'{"a":' * 60 + b"1" + b"}" * 60):
        inference.add(body)
    assert inference.samples == 1
    assert sum(inference.refused.values()) == 4
    assert inference.schema() == {
        **DOCUMENT, "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
    }  # fmt: skip


def test_without_samples_nothing_is_described() -> None:
    assert inferred() == {}


def test_a_real_document_with_all_kinds_of_values() -> None:
    """The records of a weather station: numbers that are integers at times, nulls, and times without an offset."""
    names = ("origin", "temp", "wind_dir", "wind_gust", "precip", "time_hour")
    newark = ("EWR", 39.02, 270, None, 0, "2013-01-01T06:00:00Z")
    kennedy = ("JFK", 39, None, 25.3, 0.01, "2013-01-01T07:00:00Z")
    stations = [dict(zip(names, values, strict=True)) for values in (newark, kennedy)]
    assert properties(*stations) == {
        "origin": {"type": "string"}, "temp": {"type": "number"}, "wind_dir": {"type": ["integer", "null"]},
        "wind_gust": {"type": ["null", "number"]}, "precip": {"type": "number"},
        "time_hour": {"type": "string", "format": "date-time"},
    }  # fmt: skip
