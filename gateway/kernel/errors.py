"""The errors that the gateway raises, as one tree; each adapter maps them to its protocol in one table."""


class GatewayError(Exception):
    """The base of all errors that the gateway raises intentionally."""


class ConfigurationError(GatewayError):
    """A setting, a definitions file or a plugin is wrong; the broker does not start."""


class StorageError(GatewayError):
    """The store cannot continue, or holds data that this version cannot read."""


class UnreadableRecord(StorageError):
    """A record of the store has invalid content; it is set aside, and recovery continues."""


class ProtocolViolation(GatewayError):
    """The peer violated its protocol; its connection is closed."""


class Refused(GatewayError):
    """The request was understood and refused; the connection may continue."""


class AccessRefused(Refused):
    """The user lacks the permission, or the name is reserved."""


class NotFound(Refused):
    """No such exchange, queue, consumer or virtual host."""


class ResourceLocked(Refused):
    """An exclusive queue of another connection."""


class PreconditionFailed(Refused):
    """The entity exists with other settings, or an argument is out of range."""


class NotAllowed(Refused):
    """Forbidden for every user: an unknown virtual host, a reused consumer tag, a limit that is reached."""


class CommandInvalid(Refused):
    """The request cannot be executed, for example because of an unknown exchange type."""


class NotImplementedHere(Refused):
    """A part of the protocol that this broker, like RabbitMQ, does not implement."""


class InternalError(Refused):
    """A fault in the broker; the request was not completed."""
