"""Login rules and limits of a node from the settings, at the start and on reload; the counts of logins."""

from collections.abc import Mapping
from dataclasses import replace

from gateway.access import LoginThrottle, ThrottleRules
from gateway.access.hashing import WorkerPool
from gateway.config import Settings
from gateway.kernel.broker.broker import Broker
from gateway.kernel.settings.limits import ConnectionLimits
from gateway.kernel.settings.user_counters import UserRules
from gateway.kernel.vhosts.queue_rules import QueueRules


def throttle_rules(settings: Settings) -> ThrottleRules:
    """Return the rate limits for logins."""
    login = settings.login
    return ThrottleRules(
        free_attempts=login.free_attempts,
        free_attempts_per_address=login.free_attempts_per_address,
        free_attempts_per_user=login.free_attempts_per_user,
        max_delay_s=login.max_delay_ms / 1000,
        forget_after_s=login.forget_failures_after_s,
        max_waiting=login.max_waiting,
    )


def with_limits(rules: QueueRules, settings: Settings) -> QueueRules:
    """Return the queue rules with the limits of the settings."""
    limits = settings.limits
    return replace(
        rules,
        max_queues=limits.queues_per_vhost,
        max_exclusive_queues=limits.exclusive_queues_per_connection,
        max_bindings=limits.bindings_per_vhost,
        max_consumers=limits.consumers_per_vhost,
        max_consumers_per_channel=limits.consumers_per_channel,
    )


def apply_access_settings(settings: Settings, broker: Broker, throttle: LoginThrottle) -> None:
    """Apply the settings of logins and limits; existing connections and queues are not affected."""
    limits = settings.limits
    broker.connections.limits = ConnectionLimits(
        limits.connections_per_vhost,
        limits.connections_per_user,
        limits.channels_per_user,
        limits.unauthenticated_connections,
    )
    broker.user_tallies.apply(UserRules(limits.queues_per_user, limits.bindings_per_user, limits.consumers_per_user))
    throttle.rules = throttle_rules(settings)
    broker.queue_rules = with_limits(broker.queue_rules, settings)
    for vhost in broker.vhost_by_name.values():
        vhost.queues.rules = broker.queue_rules


def login_counts(throttle: LoginThrottle, hashing: WorkerPool) -> Mapping[str, int]:
    """Return how many logins wait or were delayed or refused, and the same of password hashes."""
    return {
        "delayed": throttle.delayed,
        "refused": throttle.refused,
        "waiting": throttle.waiting,
        "hashes_unfinished": hashing.unfinished,
        "hashes_refused": hashing.refused,
    }
