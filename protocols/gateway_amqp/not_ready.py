"""The answer to AMQP clients while the broker starts: ``connection.close`` with 320 as the reply to the header.

It replaces ``connection.start`` on purpose, although the specification does not provide for it. pika's
``connection_attempts`` gives up when a connection closes later in the handshake, which it takes for a wrong password,
and retries when it closes here. py-amqp, kombu and amqpstorm show code and text, and count it among the errors after
which they reconnect.
"""

from typing import Final

from pamqp import commands

from gateway_amqp.errors import reply_text
from gateway_amqp.methods import encode_method
from gateway_amqp.tuning import PROTOCOL_HEADER

CONNECTION_FORCED: Final = 320


def refusal(data: bytes, reason: str) -> bytes | None:
    """Return the answer to the first bytes of a client; ``None`` while its protocol header is incomplete."""
    if not data.startswith(b"AMQP"[: len(data)]):
        return PROTOCOL_HEADER  # 2.2.4, as when the broker runs
    if len(data) < len(PROTOCOL_HEADER):
        return None
    text = reply_text(CONNECTION_FORCED, reason)
    return encode_method(0, commands.Connection.Close(CONNECTION_FORCED, text, 0, 0))
