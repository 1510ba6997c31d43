"""Reports of a query's progress to the broker, which shows its lag. They are informational: errors fail no query."""

import warnings

from gateway_spark.brokers import Brokers
from gateway_spark.errors import PipelineError
from gateway_spark.offsets import Reached


class QueryProgress:
    """Reports each position of a consumer once."""

    def __init__(self, consumer: str) -> None:
        self._consumer = consumer
        self._reported: object = None

    def tell(self, reached: Reached, brokers: Brokers) -> None:
        """Report a position, unless it is empty or that of the last report."""
        positions = {key: entry._replace(since=None, origin=None, first=None) for key, entry in reached.items()}
        if not positions or positions == self._reported:
            return
        try:
            brokers.report(self._consumer, positions)
        except PipelineError as error:
            warnings.warn(f"gateway: progress is not shown: {error}", stacklevel=2)
        self._reported = positions
