"""Makes ``format("gateway")`` known: Spark looks into every package whose name begins with ``pyspark_``."""

from gateway_spark.source import GatewaySource


class DefaultSource(GatewaySource):
    """The source and sink under the name that Spark looks for."""
