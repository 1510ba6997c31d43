"""The broker's columns are exactly those that the source declares to Spark."""

from pyspark.sql.pandas.types import to_arrow_schema

from gateway.columnar.encoding.schema import MESSAGES, TRACE
from gateway_spark.schema import MESSAGE_SCHEMA, TRACE_SCHEMA


def test_messages_have_exactly_the_schema_of_the_source() -> None:
    expected = to_arrow_schema(MESSAGE_SCHEMA, timezone="UTC")
    assert MESSAGES.equals(expected, check_metadata=True), f"{MESSAGES}\n\n{expected}"


def test_names_inside_maps_and_lists_are_those_of_spark() -> None:
    """Equality of schemas ignores these names, but Spark does not always."""
    expected = to_arrow_schema(MESSAGE_SCHEMA, timezone="UTC")
    assert str(MESSAGES) == str(expected)


def test_the_trace_table_has_the_columns_of_the_reader() -> None:
    assert str(to_arrow_schema(TRACE_SCHEMA, timezone="UTC")) == str(TRACE)
