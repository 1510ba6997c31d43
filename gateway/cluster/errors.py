"""The errors of the ports between nodes."""

from gateway.kernel.errors import GatewayError


class ClusterError(GatewayError):
    """The base of the errors below."""


class Outdated(ClusterError):
    """A compare-and-set write found another revision than it expected; nothing was written."""


class Unanswered(ClusterError):
    """The engine did not answer in time. Whether the write was made is unknown, unless the text says so."""


class Deposed(ClusterError):
    """Another node has claimed the queue since."""


class LogGap(ClusterError):
    """A batch of a log is missing or damaged in the copy that was read."""


class LogDamaged(ClusterError):
    """A batch of a log is missing or damaged in every copy that was read."""


class ReadingOutdated(ClusterError):
    """Batches that a reading of a log lacks may have been removed, or it is another log: it must begin anew."""


class NodeUnreachable(ClusterError):
    """A node cannot be reached; it did not get the request."""


class TooLarge(ClusterError):
    """A value, record or frame exceeds the limit of the engine; nothing was sent."""


class ClusterMismatch(ClusterError):
    """The engine does not fulfil what a cluster needs, or belongs to another one; the node does not start."""
