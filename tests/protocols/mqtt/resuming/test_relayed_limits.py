"""The limit of the bytes of an MQTT client that a node keeps before its login."""

from gateway_mqtt.resuming.relayed_session import RelayedSession, SessionStage
from tests.protocols.mqtt.packets import WRITERS
from tests.protocols.mqtt.resuming.test_relayed_session import NEW

LIMIT = 4096

#: The beginnings of packets of 1 MiB.
CONNECT_OF_A_MEBIBYTE = b"\x10\x80\x80\x40" + b"\0\4MQTT\4"
PUBLISH_OF_A_MEBIBYTE = b"\x32\x80\x80\x40" + b"\0\1a\0\1"


def test_a_connect_larger_than_the_limit_is_passed_on_as_it_comes() -> None:
    session = RelayedSession(LIMIT)
    session.receive_from_client(CONNECT_OF_A_MEBIBYTE)
    assert session.stage is SessionStage.PASSING
    assert session.waiting.take_for_leader() == CONNECT_OF_A_MEBIBYTE, "the leader refuses it"


def test_a_client_that_sends_much_before_its_login_was_answered_is_not_read() -> None:
    write, session = WRITERS[4], RelayedSession(LIMIT)
    session.receive_from_client(write.connect(b"ann"))
    session.receive_from_client(PUBLISH_OF_A_MEBIBYTE + b"x" * 2000)
    assert not session.is_full
    session.receive_from_client(b"x" * 3000)
    assert session.is_full
    session.receive_from_leader(NEW[4])
    assert session.stage is SessionStage.OPEN
    assert not session.is_full


def test_requests_before_the_login_was_answered_count() -> None:
    write, session = WRITERS[4], RelayedSession(LIMIT)
    session.receive_from_client(write.connect(b"ann"))
    for number in range(1, 4):
        session.receive_from_client(write.publish(b"a", b"x" * 2000, qos=1, id=number))
    assert session.is_full
    session.receive_from_leader(NEW[4])
    assert not session.is_full
