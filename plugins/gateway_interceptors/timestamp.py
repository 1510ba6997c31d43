"""interceptor-timestamp: the header ``timestamp_in_ms``, the time at which the broker received the message.

As RabbitMQ's ``message_interceptors.incoming.set_header_timestamp``, without the property ``timestamp``, which stays as
the publisher set it.
"""

import time
from collections.abc import Sequence
from typing import Final

from gateway.api import Interceptor, Origin, PluginSettings, hookimpl
from gateway_interceptors.stamps import Stamp, StampSettings

HEADER: Final = "timestamp_in_ms"


def _now_ms(origin: Origin) -> int:
    return time.time_ns() // 1_000_000


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the setting ``overwrite``."""
    return StampSettings


@hookimpl
def gateway_interceptors(settings: StampSettings) -> Sequence[Interceptor]:
    """Offer the interceptor."""
    return [Stamp(HEADER, _now_ms, overwrite=settings.overwrite)]
