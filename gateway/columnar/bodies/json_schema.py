"""Bodies in JSON that a JSON Schema describes.

``jsonschema-rs`` is compiled, and matches regular expressions in linear time.
"""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
from jsonschema_rs import RegexOptions, ValidationError, validator_for

from gateway.body_formats import DEEPEST_JSON, fetch_no_schema, is_deep_json, json_place
from gateway.columnar.bodies.body_schema import BodyRefused
from gateway.columnar.bodies.json_columns import JsonColumns
from gateway.kernel.errors import ConfigurationError


class JsonBodies:
    """The bodies of one JSON Schema, of draft 2020-12 or of the draft that ``$schema`` names."""

    def __init__(self, text: bytes) -> None:
        """:raises ConfigurationError: if the schema is not valid."""
        try:
            schema = json.loads(text)
            self._validator = validator_for(schema, pattern_options=RegexOptions(), retriever=fetch_no_schema)
            columns = JsonColumns(schema)
            self._kind, self._convert = columns.part(schema)
        except ValidationError as error:
            raise ConfigurationError(f"not valid at {json_place(error.instance_path)}: {error.message}") from None
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"not a JSON Schema: {error}") from None
        self._decoder = json.JSONDecoder(
            parse_constant=_refuse_constant, parse_float=Decimal if columns.has_decimals else None
        )

    @property
    def kind(self) -> pa.DataType:
        """The type of bodies."""
        return self._kind

    def decode(self, body: bytes) -> Any:
        """Return the value of a body. :raises BodyRefused: if it is not JSON, or does not match the schema."""
        try:
            value = self._decoder.decode(body.decode())
        except (ValueError, RecursionError) as error:
            raise BodyRefused(f"not JSON: {error}") from None
        if is_deep_json(body, value):
            raise BodyRefused(f"nested deeper than {DEEPEST_JSON} levels")
        try:
            if not self._validator.is_valid(value):
                fault = next(self._validator.iter_errors(value))
                raise BodyRefused(f"{json_place(fault.instance_path)}: {fault.message}")
            return value if self._convert is None else self._convert(value)
        except (ValueError, ArithmeticError, TypeError) as error:  # half a surrogate pair, a time that is none
            raise BodyRefused(str(error)) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")
