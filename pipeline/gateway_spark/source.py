"""``format("gateway")``: streams of a broker as Spark tables and streams, and rows of Spark as messages."""

from collections.abc import MutableMapping

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from gateway_spark.batch_reader import BatchReader, FilteringReader
from gateway_spark.options import source_options
from gateway_spark.schema import MESSAGE_SCHEMA
from gateway_spark.sink import MicroBatchWriter, TableWriter
from gateway_spark.stream_reader import StreamReader

#: Columns that an option can omit. Spark does not tell a source which columns a query uses.
HEADER_COLUMNS = frozenset({"headers", "headers_json", "x_death"})
BODY_COLUMNS = frozenset({"body"})


class GatewaySource(DataSource):
    """The entry point of the package. Spark creates one from the options wherever it plans."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """The name for ``format``."""
        return "gateway"

    def schema(self) -> StructType:
        """Return all columns except those that options omit."""
        without = HEADER_COLUMNS if self._leaves_out("includeHeaders") else frozenset()
        without |= BODY_COLUMNS if self._leaves_out("includeBody") else frozenset()
        return StructType([field for field in MESSAGE_SCHEMA.fields if field.name not in without])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the batch reader. :raises OptionError: if an option is invalid."""
        options = source_options(self.options, is_stream=False)
        return (FilteringReader if options.pushes_filters else BatchReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the stream reader. :raises OptionError: if an option is invalid."""
        return StreamReader(source_options(self.options, is_stream=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        """Return the batch writer. :raises OptionError: if an option or a column is invalid."""
        return TableWriter(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> MicroBatchWriter:  # noqa: N802 - Spark's name
        """Return the stream writer. :raises OptionError: if an option or a column is invalid."""
        return MicroBatchWriter(self.options, schema, overwrite)

    def _leaves_out(self, option: str) -> bool:
        return str(self.options.get(option, "true")).lower() == "false"
