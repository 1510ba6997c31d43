"""interceptor-timestamp: the header ``timestamp_in_ms`` and the property ``timestamp``, the time of arrival.

As RabbitMQ's ``message_interceptors.incoming.set_header_timestamp``. Messages of MQTT have no property ``timestamp``.
"""

import time
from collections.abc import Sequence
from typing import Final

from gateway.api import Decision, Interceptor, Message, Origin, PluginSettings, hookimpl
from gateway_interceptors.stamps import StampSettings

HEADER: Final = "timestamp_in_ms"


class ArrivalStamp(Interceptor):
    """Sets the header and the property of each published message, each unless the publisher's own one is kept."""

    on_error = "pass"

    def __init__(self, *, overwrite: bool) -> None:
        self._overwrite = overwrite

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Return the message with the time of its arrival."""
        now_ms = time.time_ns() // 1_000_000
        properties = message.properties
        if self._overwrite or properties.timestamp is None:
            message = message.stamped(now_ms // 1000)
        if self._overwrite or HEADER not in properties.headers:
            message = message.edited({HEADER: now_ms})
        return message


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the setting ``overwrite``."""
    return StampSettings


@hookimpl
def gateway_interceptors(settings: StampSettings) -> Sequence[Interceptor]:
    """Offer the interceptor."""
    return [ArrivalStamp(overwrite=settings.overwrite)]
