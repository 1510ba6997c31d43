"""Settings that a reload can change, and the differences between two sets of settings."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.config.settings import Settings

#: Settings that a reload applies; settings of connections affect only connections opened afterwards.
LIVE: Final = frozenset(
    {
        "memory_high_watermark",
        "disk_free_limit",
        "log.level",
        "log.format",
        "log.file",
        "log.lines_per_s",
        "tls.certificate",
        "tls.key",
        "tls.ca",
        "tls.verify",
        "tls.min_version",
        "amqp.heartbeat_s",
        "amqp.frame_max",
        "amqp.channel_max",
        "amqp.max_message_size",
        "amqp.login_timeout_s",
        "queues.consumer_timeout_ms",
        "login.password_hashing",
        "login.max_delay_ms",
        "login.free_attempts",
        "login.free_attempts_per_address",
        "login.free_attempts_per_user",
        "login.forget_failures_after_s",
        "login.max_waiting",
        "limits.connections_per_vhost",
        "limits.connections_per_user",
        "limits.channels_per_user",
        "limits.queues_per_vhost",
        "limits.bindings_per_vhost",
        "limits.consumers_per_vhost",
        "limits.queues_per_user",
        "limits.bindings_per_user",
        "limits.consumers_per_user",
        "limits.consumers_per_channel",
        "limits.exclusive_queues_per_connection",
        "limits.unauthenticated_connections",
        "mqtt.prefetch",
        "mqtt.max_packet_size_unauthenticated",
        "mqtt.max_packet_size",
        "mqtt.max_session_expiry_s",
        "mqtt.keep_alive_max_s",
        "mqtt.topic_alias_max",
        "mqtt.receive_maximum",
        "mqtt.login_timeout_s",
        "mqtt.disconnect_on_unauthorized",
        "mqtt.retained_max_messages",
        "mqtt.retained_max_bytes",
        "mqtt.max_sessions_per_user",
        "mqtt.max_topic_levels",
        "mqtt.max_subscriptions",
        "mqtt.max_filters",
        "mqtt.max_inflight",
        "mqtt.qos0_max_bytes",
        "mqtt.session_max_bytes",
        "mqtt.session_max_messages",
        "mqtt.qos0_max_messages",
        "stomp.max_frame_size_unauthenticated",
        "stomp.max_frame_size",
        "stomp.max_headers",
        "stomp.max_headers_size",
        "stomp.max_header_size",
        "stomp.max_body_size",
        "stomp.max_transactions",
        "stomp.max_transaction_actions",
        "stomp.max_transaction_size",
        "stomp.login_timeout_s",
    }
)


def differences(old: Settings, new: Settings) -> list[str]:
    """Return the keys of the settings that differ, in documentation order."""
    before, after = dict(_flat(old.model_dump())), dict(_flat(new.model_dump()))
    return [key for key in {**before, **after} if before.get(key) != after.get(key)]


def with_live_of(old: Settings, new: Settings) -> Settings:
    """Return the settings in effect after a reload: the old ones with the live settings of the new ones."""
    update: dict[str, Any] = {}
    for name in Settings.model_fields:
        keys = [key for key in LIVE if key == name or key.startswith(f"{name}.")]
        if keys == [name]:
            update[name] = getattr(new, name)
        elif keys:
            section = getattr(new, name)
            fields = {key.partition(".")[2]: getattr(section, key.partition(".")[2]) for key in keys}
            update[name] = getattr(old, name).model_copy(update=fields)
    return old.model_copy(update=update)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting with its dotted key."""
    for name, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
