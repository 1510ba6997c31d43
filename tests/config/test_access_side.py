"""Settings of logins and limits take effect at the start and when they are reloaded."""

import pytest

from gateway.access import LoginThrottle, ThrottleRules
from gateway.config import Settings
from gateway.config.live import LIVE
from gateway.config.login import LoginSettings
from gateway.kernel.errors import PreconditionFailed
from gateway.node.access import apply_access_settings
from gateway.testing import FakeClock
from gateway.testing.broker import MemoryBroker

#: Settings that are fixed when the password hashing threads and the caches are created, until a restart.
AT_THE_START = {"hashing_threads", "max_waiting_hashes", "remember_passwords_s", "trust_loopback"}


def test_changed_limits_apply_to_entities_created_afterwards() -> None:
    broker, clock = MemoryBroker(), FakeClock()
    throttle = LoginThrottle(ThrottleRules(), clock.monotonic_s, clock.call_later)
    broker.vhost.declare_queue("a")
    broker.vhost.declare_queue("b")
    changed = {"limits": {"queues_per_vhost": 2, "connections_per_user": 7}, "login": {"max_delay_ms": 1500}}
    apply_access_settings(Settings.model_validate(changed), broker.kernel, throttle)
    assert set(broker.vhost.queue_by_name) == {"a", "b"}
    with pytest.raises(PreconditionFailed, match=r"\(2\) is reached"):
        broker.vhost.declare_queue("c")
    assert (broker.kernel.connections.limits.per_user, throttle.rules.max_delay_s) == (7, 1.5)
    other = broker.kernel.declare_vhost("other")
    assert other.queues.rules.max_queues == 2


def test_all_limits_and_nearly_all_settings_of_logins_are_live() -> None:
    assert {f"login.{name}" for name in set(LoginSettings.model_fields) - AT_THE_START} <= LIVE
    assert {f"limits.{name}" for name in type(Settings().limits).model_fields} <= LIVE
