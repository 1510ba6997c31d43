"""Makes ``format("gateway")`` available: Spark searches every package whose name begins with ``pyspark_``."""

from gateway_spark.source import GatewaySource


class DefaultSource(GatewaySource):
    """The source and sink under the name that Spark searches for."""
