"""interceptor-client-id: the header ``x-opt-mqtt-client-id`` of messages that an MQTT client publishes.

As RabbitMQ's ``message_interceptors.incoming.set_client_id_annotation``. A header of this name that a publisher set is
always replaced for MQTT, so that no client can pretend to be another.
"""

from collections.abc import Sequence
from typing import Final

from gateway.api import Interceptor, Origin, hookimpl
from gateway_interceptors.stamps import Stamp

HEADER: Final = "x-opt-mqtt-client-id"


def _client_id(origin: Origin) -> str | None:
    return origin.client_id or None


@hookimpl
def gateway_interceptors() -> Sequence[Interceptor]:
    """Offer the interceptor."""
    return [Stamp(HEADER, _client_id, overwrite=True)]
