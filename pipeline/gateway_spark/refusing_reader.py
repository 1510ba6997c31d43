"""A stream reader that only raises: Spark hides an error of a source's constructor behind one of its own."""

from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader

from gateway_spark.errors import PipelineError
from gateway_spark.one_line import one_line
from gateway_spark.spark_versions import SupportsTriggerAvailableNow


class RefusingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raises an error of the options when Spark first asks for anything."""

    def __init__(self, error: PipelineError) -> None:
        self._error = error

    @one_line
    def _refuse(self, *_: object) -> Any:
        raise self._error

    initialOffset = getDefaultReadLimit = prepareForTriggerAvailableNow = reportLatestOffset = _refuse  # noqa: N815
    latestOffset = _refuse  # type: ignore[assignment]  # noqa: N815
    partitions = _refuse  # type: ignore[assignment]
    read = _refuse  # type: ignore[assignment]
    commit = _refuse  # type: ignore[assignment]
