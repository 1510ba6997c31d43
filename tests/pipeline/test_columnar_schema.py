"""What the broker writes is, column by column, what Spark makes of the schema that the source declares."""

from pyspark.sql.pandas.types import to_arrow_schema

from gateway.columnar.encoding.schema import MESSAGES, TRACE
from gateway_spark.schema import MESSAGE_SCHEMA, TRACE_SCHEMA


def test_messages_have_the_very_schema_that_spark_expects() -> None:
    expected = to_arrow_schema(MESSAGE_SCHEMA, timezone="UTC")
    assert MESSAGES.equals(expected, check_metadata=True), f"{MESSAGES}\n\n{expected}"


def test_names_inside_maps_and_lists_are_those_of_spark() -> None:
    """Equality of schemas passes over them; Spark does not always."""
    expected = to_arrow_schema(MESSAGE_SCHEMA, timezone="UTC")
    assert str(MESSAGES) == str(expected)


def test_the_trace_table_has_the_columns_that_its_reader_declares() -> None:
    assert str(to_arrow_schema(TRACE_SCHEMA, timezone="UTC")) == str(TRACE)
