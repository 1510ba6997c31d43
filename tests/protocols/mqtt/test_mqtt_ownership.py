"""A session belongs to its user: other users cannot resume, delete or take it over."""

import pytest

from gateway.kernel.journal.changes import Put
from gateway.kernel.journal.records.access import PermissionRecord
from gateway.kernel.journal.records.sessions import SessionRecord
from gateway_memory import MemoryStore
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import Will

ANNA = {"username": "anna", "password": b"anna"}
EVE = {"username": "eve", "password": b"eve"}
REFUSED = ["CONNACK CLIENT_IDENTIFIER_NOT_VALID", "closed"]


@pytest.fixture
def gateway() -> Gateway:
    """Return a broker with a message for anna's offline client ``lamp``. Eve has no permissions."""
    gateway = Gateway()
    users(gateway)
    lamp = gateway.client("lamp", expiry=600, **ANNA)
    lamp.subscribe("lamp/#", 1)
    lamp.lose()
    gateway.client("w").publish("lamp/on", b"secret", qos=1, id=1)
    return gateway


def users(gateway: Gateway) -> None:
    gateway.add_user("anna", "anna")
    gateway.add_user("eve", "eve", ("^$", "^$", "^$"))


def resumed(gateway: Gateway) -> list[str]:
    return gateway.new_client().connect("lamp", is_clean=False, expiry=600, **ANNA)


@pytest.mark.parametrize("is_clean", [False, True])
def test_another_user_can_neither_resume_nor_delete_a_session(gateway: Gateway, is_clean: bool) -> None:
    assert gateway.new_client().connect("lamp", is_clean=is_clean, expiry=600, **EVE) == REFUSED
    assert resumed(gateway) == ["CONNACK present", "PUBLISH q1 #1 lamp/on 'secret'"]


@pytest.mark.parametrize("is_clean", [False, True])
def test_another_user_cannot_take_over_a_session(gateway: Gateway, is_clean: bool) -> None:
    lamp = gateway.client("lamp", is_clean=False, expiry=600, will=Will("lamp/gone", b"x"), **ANNA)
    assert gateway.new_client().connect("lamp", is_clean=is_clean, **EVE) == REFUSED
    assert lamp.receive() == []
    assert lamp.request(lamp.write.pingreq()) == ["PINGRESP"]


def test_clients_of_3_1_1_get_the_return_code_identifier_rejected(gateway: Gateway) -> None:
    assert gateway.new_client(4).connect("lamp", is_clean=False, **EVE) == ["CONNACK 2", "closed"]


def test_a_session_keeps_its_user_after_a_crash(gateway: Gateway) -> None:
    again = gateway.crashed()
    users(again)
    assert again.new_client().connect("lamp", is_clean=True, **EVE) == REFUSED
    assert resumed(again)[0] == "CONNACK present"


def test_another_user_cannot_cancel_a_delayed_will() -> None:
    gateway = Gateway()
    users(gateway)
    reader = gateway.client("r")
    reader.subscribe("gone", 0)
    will = Will("gone", b"bye", properties=bytes((0x18, 0, 0, 0, 5)))
    gateway.client("lamp", expiry=600, will=will, **ANNA).lose()
    assert gateway.new_client().connect("lamp", **EVE) == REFUSED
    gateway.advance(6)
    assert reader.receive() == ["PUBLISH gone 'bye'"]


def of_an_earlier_version() -> Gateway:
    """Return a broker whose store holds a session without a user."""
    first = Gateway()
    first.broker.journal.record(Put(SessionRecord("/", "lamp", 600, 0)))
    first.settle()
    gateway = first.crashed()
    users(gateway)
    return gateway


def test_a_session_of_an_earlier_version_is_adopted_by_the_first_user_with_configure_permission_on_its_queues() -> None:
    gateway = of_an_earlier_version()
    assert gateway.new_client().connect("lamp", is_clean=False, **EVE) == REFUSED
    assert resumed(gateway) == ["CONNACK present"]
    gateway.broker.directory.put_permission(PermissionRecord("/", "eve", ".*", ".*", ".*"))
    assert gateway.new_client().connect("lamp", is_clean=False, **EVE) == REFUSED


def test_an_adopted_session_stays_adopted_after_a_crash() -> None:
    gateway = of_an_earlier_version()
    resumed(gateway)
    again = gateway.crashed()
    users(again)
    again.broker.directory.put_permission(PermissionRecord("/", "eve", ".*", ".*", ".*"))
    assert again.new_client().connect("lamp", is_clean=False, **EVE) == REFUSED


def test_a_record_of_layout_1_has_no_user() -> None:
    old = {"vhost": "/", "client_id": "lamp", "expiry_s": 600, "ended_at_ms": 5}
    assert SessionRecord.from_fields(old, 1) == SessionRecord("/", "lamp", 600, 5, "")


def lost_rights(gateway: Gateway) -> Client:
    """Return a client whose user loses all permissions after CONNECT with a will."""
    client = gateway.client("c", will=Will("t", b"bye", retain=True), **ANNA)
    gateway.broker.directory.remove_permission("/", "anna")
    return client


def test_a_will_is_dropped_if_its_user_has_lost_all_permissions() -> None:
    gateway = Gateway(store=MemoryStore())
    users(gateway)
    reader = gateway.client("r")
    reader.subscribe("#", 1)
    lost_rights(gateway).lose()
    assert reader.receive() == []
    assert gateway.vhost.sessions.get("c") is None
    assert gateway.vhost.sessions.connected == 1


def test_events_of_sessions_name_the_user_of_the_login(gateway: Gateway) -> None:
    seen: list[tuple[str, str]] = []
    gateway.broker.events.subscribe(lambda event: seen.append((event.name, event.user)), "session")
    gateway.client("lamp", is_clean=False, expiry=600, **ANNA).disconnect()
    gateway.client("new", **ANNA)
    assert seen == [("session.resumed", "anna"), ("session.created", "anna")]


def test_a_login_beyond_the_limit_of_sessions_names_its_user(gateway: Gateway) -> None:
    gateway.vhost.sessions.max_per_user = 1
    refused = gateway.new_client()
    assert refused.connect("second", **ANNA)[0].startswith("CONNACK QUOTA_EXCEEDED")
    assert refused.machine.user_name == "anna"


def test_a_queue_of_the_client_s_name_ends_with_its_session(gateway: Gateway) -> None:
    """Such a queue may have come with definitions."""
    gateway.vhost.declare_queue("mqtt-subscription-xqos1")
    gateway.client("x").disconnect()
    assert "mqtt-subscription-xqos1" not in gateway.vhost.queue_by_name
