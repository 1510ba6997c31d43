"""Reserved and predeclared names."""

from typing import Final

from gateway.kernel.errors import AccessRefused

RESERVED_PREFIX: Final = "amq."

#: The pseudo-queue from which a client consumes replies, and to which they are sent (RabbitMQ: direct reply-to).
REPLY_TO: Final = "amq.rabbitmq.reply-to"

#: The exchange on which the firehose publishes (R9).
TRACE_EXCHANGE: Final = "amq.rabbitmq.trace"

#: The exchanges of every virtual host: name, type, whether clients may not publish to it (R9).
PREDECLARED: Final = (
    ("amq.direct", "direct", False),
    ("amq.fanout", "fanout", False),
    ("amq.topic", "topic", False),
    ("amq.headers", "headers", False),
    ("amq.match", "headers", False),
    (TRACE_EXCHANGE, "topic", True),
)


def require_not_default(name: str) -> None:
    """Refuse an operation that is not permitted on the default exchange, whose name is empty (R18)."""
    if not name:
        raise AccessRefused("operation not permitted on the default exchange")


def require_free(kind: str, name: str) -> None:
    """Refuse a new entity with a reserved name. ``kind`` is ``queue`` or ``exchange``."""
    if name.startswith(RESERVED_PREFIX):
        raise AccessRefused(f"{kind} name '{name}' contains reserved prefix 'amq.*'")


def printable(name: str) -> str:
    """Return a declared name without line breaks, as RabbitMQ stores it."""
    return name.replace("\r", "").replace("\n", "")
