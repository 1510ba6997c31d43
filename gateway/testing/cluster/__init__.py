"""The contracts of the ports between nodes, as checks for engines."""

from gateway.testing.cluster.bus import BUS_CHECKS, check_bus
from gateway.testing.cluster.log_followings import LOG_FOLLOWING_CHECKS, check_log_followings
from gateway.testing.cluster.metadata import METADATA_CHECKS, check_metadata
from gateway.testing.cluster.place import ClusterPlace, MemoryClusterPlace
from gateway.testing.cluster.queue_logs import QUEUE_LOG_CHECKS, check_queue_logs

__all__ = [
    "BUS_CHECKS",
    "LOG_FOLLOWING_CHECKS",
    "METADATA_CHECKS",
    "QUEUE_LOG_CHECKS",
    "ClusterPlace",
    "MemoryClusterPlace",
    "check_bus",
    "check_log_followings",
    "check_metadata",
    "check_queue_logs",
]
