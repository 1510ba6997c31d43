"""``format("gateway")``: streams of a broker as Spark tables and streams, and rows of Spark as messages."""

import json
from collections.abc import Mapping, MutableMapping
from typing import Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructField, StructType

from gateway_spark.batch_reader import BatchReader, FilteringReader
from gateway_spark.errors import OptionError, PipelineError
from gateway_spark.one_line import one_line
from gateway_spark.options import SourceOptions, check_options, source_options
from gateway_spark.refusing_reader import RefusingReader
from gateway_spark.schema import BROKER_FIELD, MESSAGE_SCHEMA
from gateway_spark.sink import MicroBatchWriter, TableWriter
from gateway_spark.spark_versions import HAS_LIMITS, HAS_ROWS_OF_PLANS, require_supported

#: Columns that an option can omit.
HEADER_COLUMNS: Final = frozenset({"headers", "headers_json", "x_death"})
BODY_COLUMNS: Final = frozenset({"body"})

#: The metadata of a table's first column: its options. Spark passes a table's columns to a source, but not its options.
TABLE_OPTIONS: Final = "gateway.options"

#: What Spark adds when it creates a table: each option a second time, with this prefix, and the format as ``provider``.
PREFIX: Final = "option."
PROVIDER: Final = "provider"


class GatewaySource(DataSource):
    """The entry point of the package. Spark creates one from the options wherever it plans."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """The name for ``format``."""
        return "gateway"

    @one_line
    def schema(self) -> StructType:
        """Return all columns except those that options omit. :raises OptionError: if an option is invalid."""
        given = _of_new_table(self.options)
        check_options(self.options if given is None else given)
        without = HEADER_COLUMNS if _leaves_out(self.options, "includeHeaders") else frozenset()
        without |= BODY_COLUMNS if _leaves_out(self.options, "includeBody") else frozenset()
        columns = _columns(self.options if given is None else given)
        first, *others = (field for field in columns.fields if field.name not in without)
        if given is not None:
            if "password" in given:
                raise OptionError("a table shows its options: use 'passwordFile' or 'passwordEnv', not 'password'")
            first = StructField(first.name, first.dataType, metadata={TABLE_OPTIONS: json.dumps(dict(given))})
        return StructType([first, *others])

    @one_line
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the batch reader. :raises OptionError: if an option or a column is invalid."""
        given = self._given(schema)
        options = source_options(given, is_stream=False)
        require_supported(options, is_stream=False)
        _require_columns(schema, given)
        return (FilteringReader if options.pushes_filters else BatchReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the stream reader; if an option or a column is invalid, one whose every call raises that error.

        Spark hides an error that is raised here behind one of its own.
        """
        try:
            given = self._given(schema)
            options = source_options(given, is_stream=True)
            require_supported(options, is_stream=True)
            _require_columns(schema, given)
        except PipelineError as error:
            return RefusingReader(error)
        return _stream_reader(options, schema)

    @one_line
    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        """Return the batch writer. :raises OptionError: if an option or a column is invalid."""
        return TableWriter(self.options, schema, overwrite)

    @one_line
    def streamWriter(self, schema: StructType, overwrite: bool) -> MicroBatchWriter:  # noqa: N802 - Spark's name
        """Return the stream writer. :raises OptionError: if an option or a column is invalid."""
        return MicroBatchWriter(self.options, schema, overwrite)

    def _given(self, schema: StructType) -> Mapping[str, str]:
        """Return the options, with those of the table if the columns are a table's."""
        of_table = next((field.metadata[TABLE_OPTIONS] for field in schema if TABLE_OPTIONS in field.metadata), "{}")
        given: dict[str, str] = json.loads(of_table)
        given |= {name.lower(): value for name, value in self.options.items()}
        if not given:
            raise OptionError(
                "a table has the options of CREATE TABLE only if that lists no columns; or create a temporary view"
            )
        return given


def _stream_reader(options: SourceOptions, schema: StructType) -> DataSourceStreamReader:
    """Return the stream reader for this version of Spark."""
    if HAS_ROWS_OF_PLANS:
        from gateway_spark.small_batches import SmallBatchReader  # imports what other versions do not have

        return SmallBatchReader(options, schema)
    if HAS_LIMITS:
        from gateway_spark.stream_reader import StreamReader

        return StreamReader(options, schema)
    from gateway_spark.unlimited_reader import UnlimitedReader

    return UnlimitedReader(options, schema)


def _of_new_table(options: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the options of ``CREATE TABLE``; ``None`` if no table is being created."""
    if PROVIDER not in options:
        return None
    return {name.removeprefix(PREFIX): value for name, value in options.items() if name.startswith(PREFIX)}


def _require_columns(schema: StructType, options: Mapping[str, str]) -> None:
    """Check the columns of ``schema(...)``: any of the source's, in any order.

    :raises OptionError: for an unknown column, another type, or a column that an option omits.
    """
    there = _columns(options)
    for field in schema.fields:
        if field.name not in there.names:
            raise OptionError(f"there is no column '{field.name}'; the columns are {', '.join(there.names)}")
        kind = there[field.name].dataType
        if field.dataType != kind:
            raise OptionError(f"column '{field.name}' is {kind.simpleString()}, not {field.dataType.simpleString()}")
        for option, columns in (("includeHeaders", HEADER_COLUMNS), ("includeBody", BODY_COLUMNS)):
            if field.name in columns and _leaves_out(options, option):
                raise OptionError(f"option '{option}' = false omits column '{field.name}', which the schema names")


def _columns(options: Mapping[str, str]) -> StructType:
    """Return all columns, with that of the broker if there are several."""
    are_several = "brokers" in {name.lower() for name in options}
    return StructType([*MESSAGE_SCHEMA.fields, *([BROKER_FIELD] if are_several else [])])


def _leaves_out(options: Mapping[str, str], option: str) -> bool:
    by_lower = {name.lower(): value for name, value in options.items()}
    return str(by_lower.get(option.lower(), "true")).lower() == "false"
