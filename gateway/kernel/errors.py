"""What can go wrong, by whose fault: one tree that every adapter translates in one table."""


class GatewayError(Exception):
    """Anything the gateway itself raises on purpose."""


class ConfigurationError(GatewayError):
    """A setting, a definitions file or a plugin is wrong; the broker does not start."""


class StorageError(GatewayError):
    """The store cannot go on, or holds something this version cannot read."""


class UnreadableRecord(StorageError):
    """A record of the store does not hold what it should; it is set aside, and everything else goes on."""


class ProtocolViolation(GatewayError):
    """The peer broke the rules of its protocol; its connection ends."""


class Refused(GatewayError):
    """The request was understood and declined; the connection may live on."""


class AccessRefused(Refused):
    """The principal lacks the permission, or the name is reserved."""


class NotFound(Refused):
    """No such exchange, queue, consumer or virtual host."""


class ResourceLocked(Refused):
    """An exclusive queue of another connection."""


class PreconditionFailed(Refused):
    """The entity exists with other settings, or an argument is out of range."""


class NotAllowed(Refused):
    """Forbidden whoever asks: an unknown virtual host, a reused consumer tag, a limit reached."""


class CommandInvalid(Refused):
    """The request cannot be carried out as it stands: an unknown exchange type, say."""


class NotImplementedHere(Refused):
    """A part of the protocol that this broker, like RabbitMQ, leaves out."""


class InternalError(Refused):
    """The broker's own fault; the request could not be finished."""
