"""Packets between a client, the node and one leader after the other."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_mqtt.resuming import relayed_session
from gateway_mqtt.resuming.packet_stream import MOST_HELD_BACK
from gateway_mqtt.resuming.relayed_session import RelayedSession, SessionStage
from tests.protocols.mqtt.frame_reader import FrameReader
from tests.protocols.mqtt.packets import (
    WRITERS,
    Will,
    authentication,
    packet,
    request_problem_information,
    session_expiry,
    subscription_identifier,
    text,
    topic_alias,
    user_property,
)

#: CONNACK without and with a session.
NEW, PRESENT = {4: b"\x20\x02\0\0", 5: b"\x20\x03\0\0\0"}, {4: b"\x20\x02\1\0", 5: b"\x20\x03\1\0\0"}

LASTS = session_expiry(60)


class Talk:
    """A client with an open connection. Each method returns what the other side gets."""

    def __init__(self, version: int = 5, *, lasts: bool = True, answer: bytes | None = None, **options: bytes) -> None:
        self.version = version
        self.write = WRITERS[version]
        self.session = RelayedSession()
        properties = options.pop("properties", b"") + (LASTS if lasts else b"")
        connect = self.write.connect(
            options.pop("client_id", b"ann"), is_clean=version == 5 or not lasts, properties=properties, **options
        )
        assert self.client(connect) == connect
        self.welcome = answer or NEW[version]
        assert self.leader(self.welcome) == self.welcome
        assert self.session.stage is SessionStage.OPEN

    def client(self, *packets: bytes) -> bytes:
        self.session.receive_from_client(b"".join(packets))
        return self.session.waiting.take_for_leader()

    def leader(self, *packets: bytes) -> bytes:
        self.session.receive_from_leader(b"".join(packets))
        return self.session.waiting.take_for_client()

    def change_leader(self) -> bytes:
        """Return the CONNECT for the next leader."""
        assert self.session.leader_lost()
        self.session.leader_found()
        return self.session.waiting.take_for_leader()

    def resume(self, *, has_session: bool = True) -> bytes:
        """Return what the next leader gets after its CONNACK."""
        self.change_leader()
        assert self.leader((PRESENT if has_session else NEW)[self.version]) == b""
        return self.session.waiting.take_for_leader()

    def lines(self, data: bytes) -> list[str]:
        return [str(each) for each in FrameReader(self.version).feed(data)]


@pytest.mark.parametrize("version", [4, 5])
def test_a_publish_that_was_not_acknowledged_is_sent_again_with_dup(version: int) -> None:
    talk = Talk(version)
    talk.client(talk.write.publish("a", qos=1, id=1), talk.write.publish("b", qos=1, id=2))
    talk.leader(talk.write.puback(1))
    assert talk.resume() == talk.write.publish("b", qos=1, id=2, dup=True)
    assert talk.leader(talk.write.puback(2)) == talk.write.puback(2)
    assert talk.resume() == b""


@pytest.mark.parametrize("version", [4, 5])
def test_a_handshake_of_qos_2_goes_on_where_it_was(version: int) -> None:
    talk = Talk(version)
    write = talk.write
    talk.client(*(write.publish("a", qos=2, id=number) for number in (1, 2, 3)))
    talk.leader(write.pubrec(1), write.pubrec(2))
    talk.client(write.pubrel(2))
    assert talk.resume() == write.publish("a", qos=2, id=3, dup=True) + write.pubrel(2)
    assert talk.client(write.pubrel(1)) == write.pubrel(1)
    talk.leader(write.pubcomp(1), write.pubcomp(2), write.pubrec(3))
    assert talk.resume() == b""


def test_a_refused_publish_of_qos_2_is_not_sent_again() -> None:
    talk = Talk()
    talk.client(talk.write.publish("a", qos=2, id=1))
    talk.leader(talk.write.pubrec(1, 0x87))
    assert talk.resume() == b""


@pytest.mark.parametrize("version", [4, 5])
def test_an_acknowledgement_for_a_former_leader_does_not_reach_the_next(version: int) -> None:
    talk = Talk(version)
    write = talk.write
    talk.leader(write.publish("a", b"first", qos=1, id=1), write.publish("a", b"second", qos=2, id=2))
    talk.resume()
    other = write.publish("a", b"another", qos=1, id=1)
    assert talk.leader(other) == other
    assert talk.client(write.puback(1)) == b"", "it is for the first message"
    assert talk.client(write.pubrec(2)) == b""
    assert talk.client(write.puback(1)) == write.puback(1)
    assert talk.client(write.puback(1)) == write.puback(1), "a client that is wrong is the leader's matter"


def test_an_acknowledgement_that_the_former_leader_got_is_not_awaited() -> None:
    talk = Talk()
    talk.leader(talk.write.publish("a", qos=1, id=1))
    assert talk.client(talk.write.puback(1)) == talk.write.puback(1)
    talk.resume()
    talk.leader(talk.write.publish("a", qos=1, id=1, dup=True))
    assert talk.client(talk.write.puback(1)) == talk.write.puback(1)


def test_what_the_client_sends_meanwhile_follows() -> None:
    talk = Talk()
    assert talk.session.leader_lost()
    assert talk.client(talk.write.publish("a", b"early")) == b""
    talk.session.leader_found()
    assert talk.client(talk.write.publish("a", b"later")) == talk.write.connect(
        b"ann", is_clean=False, properties=LASTS
    )
    assert talk.leader(PRESENT[5]) == b""
    expected = talk.write.publish("a", b"early") + talk.write.publish("a", b"later")
    assert talk.session.waiting.take_for_leader() == expected


def test_a_partial_packet_of_a_lost_leader_does_not_reach_the_client() -> None:
    talk = Talk()
    publish = talk.write.publish("a", qos=1, id=1)
    assert talk.leader(publish, publish[:-1]) == publish
    talk.resume()
    assert talk.leader(publish) == publish


def test_a_partial_packet_of_the_client_is_completed_for_the_next_leader() -> None:
    talk = Talk()
    publish = talk.write.publish("a", b"0123456789", qos=1, id=1)
    assert talk.client(publish[:7]) == b""
    assert talk.resume() == b""
    assert talk.client(publish[7:]) == publish


# ---- The login ------------------------------------------------------------------------------------------------------


def test_the_next_leader_keeps_a_session_that_lasts() -> None:
    will = Will("w", b"gone", 1)
    talk = Talk(will=will, username=b"ann", password=b"secret")  # type: ignore[arg-type]
    expected = talk.write.connect(
        b"ann", is_clean=False, properties=LASTS, will=will, username=b"ann", password=b"secret"
    )
    assert talk.change_leader() == expected


@pytest.mark.parametrize("version", [4, 5])
def test_the_next_leader_begins_a_session_that_does_not_last_anew(version: int) -> None:
    talk = Talk(version, lasts=False)
    assert talk.change_leader() == talk.write.connect(b"ann", is_clean=True)


def test_a_client_identifier_that_the_leader_chose_is_kept() -> None:
    assigned = b"\x12" + text("auto-1") + user_property("a", "b")
    answer = packet(0x20, b"\0\0" + bytes((len(assigned),)) + assigned)
    talk = Talk(client_id=b"", answer=answer, username=b"ann")
    assert talk.change_leader() == talk.write.connect(b"auto-1", is_clean=False, properties=LASTS, username=b"ann")


def test_a_session_expiry_that_the_leader_chose_decides() -> None:
    answer = packet(0x20, b"\0\0" + bytes((len(session_expiry(0)),)) + session_expiry(0))
    assert Talk(answer=answer).change_leader() == Talk().write.connect(b"ann", is_clean=True, properties=LASTS)


def test_a_login_of_several_steps_is_passed_on_and_ends_with_the_leader() -> None:
    session, write = RelayedSession(), WRITERS[5]
    connect = write.connect(b"ann", properties=authentication("SCRAM", b"a"))
    session.receive_from_client(connect)
    session.receive_from_leader(b"\xf0\0")
    assert (session.waiting.take_for_leader(), session.waiting.take_for_client()) == (connect, b"\xf0\0")
    assert not session.leader_lost()
    assert not session.is_over


@pytest.mark.parametrize("answer", [b"\x20\x03\0\x87\0", b"\x20\x02\0\x05"], ids=["5.0", "3.1.1"])
def test_a_refusal_of_the_first_leader_passes(answer: bytes) -> None:
    session = RelayedSession()
    session.receive_from_client(WRITERS[5 if answer[1] == 3 else 4].connect(b"ann"))
    session.receive_from_leader(answer)
    assert session.waiting.take_for_client() == answer
    assert not session.leader_lost()


def test_a_refusal_of_the_next_leader_ends_the_connection_with_its_reason() -> None:
    talk = Talk()
    talk.change_leader()
    told = talk.leader(b"\x20\x03\0\x87\0")
    reason = "the next leader of the cluster refused the connection: NOT_AUTHORIZED"
    assert told == packet(0xE0, b"\x87" + bytes((len(reason) + 3,)) + b"\x1f" + text(reason))
    assert talk.session.is_over


def test_a_client_of_3_1_1_is_not_told_of_a_refusal() -> None:
    talk = Talk(4)
    talk.change_leader()
    assert talk.leader(b"\x20\x02\0\x05") == b""
    assert talk.session.is_over


def test_no_reason_is_told_to_a_client_that_wants_none() -> None:
    talk = Talk(properties=request_problem_information(0))
    assert talk.session.leader_lost()
    talk.session.give_up("no node leads")
    assert talk.session.waiting.take_for_client() == b"\xe0\x01\x8b"


# ---- Leaders without the session ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [4, 5])
def test_subscriptions_are_made_again_without_retained_messages(version: int) -> None:
    talk = Talk(version, lasts=False)
    write = talk.write
    identified = write.subscribe(("d/#", 1), id=8, properties=subscription_identifier(7))
    talk.client(write.subscribe(("a", 1), ("b", 2), ("no", 0), id=5), write.subscribe(("c", 0), id=6), identified)
    properties = b"\0" if version == 5 else b""
    for number, codes in ((5, b"\1\2\x80"), (6, b"\0"), (8, b"\1")):
        talk.leader(packet(0x90, bytes((0, number)) + properties + codes))
    talk.client(write.unsubscribe("c", id=9))
    talk.leader(packet(0xB0, b"\0\x09" + properties + (b"\0" if version == 5 else b"")))
    first = talk.resume(has_session=False)
    message = write.publish("a", b"a message in between")
    assert talk.leader(message) == message
    if version == 4:
        assert first == write.subscribe(("a", 0x21), ("b", 0x22), ("d/#", 0x21), id=1)
    else:
        assert first == write.subscribe(("a", 0x21), ("b", 0x22), id=1)
        assert talk.leader(packet(0x90, b"\0\1\0\1\2")) == b""
        second = write.subscribe(("d/#", 0x21), id=1, properties=subscription_identifier(7))
        assert talk.session.waiting.take_for_leader() == second
    assert talk.session.is_restoring
    assert talk.leader(packet(0x90, b"\0\1" + properties + b"\1")) == b""
    assert not talk.session.is_restoring


def test_a_request_without_an_answer_is_sent_again() -> None:
    talk = Talk(lasts=False)
    subscribe, unsubscribe = talk.write.subscribe(("a", 1), id=5), talk.write.unsubscribe("b", id=6)
    talk.client(subscribe, unsubscribe)
    assert talk.resume(has_session=False) == subscribe + unsubscribe
    answer = packet(0x90, b"\0\5\0\1")
    assert talk.leader(answer) == answer


def test_a_message_of_qos_2_that_a_leader_would_take_twice_ends_the_connection() -> None:
    talk = Talk(lasts=False)
    talk.client(talk.write.publish("a", qos=2, id=1))
    assert not talk.session.leader_lost()
    assert talk.session.is_over
    assert talk.lines(talk.session.waiting.take_for_client()) == ["DISCONNECT SERVER_SHUTTING_DOWN"]


def test_a_delivery_of_qos_2_that_no_leader_would_complete_ends_the_connection() -> None:
    talk = Talk(lasts=False)
    talk.leader(talk.write.publish("a", qos=2, id=1))
    assert not talk.session.leader_lost()
    assert talk.session.is_over


def test_completed_deliveries_of_qos_2_do_not() -> None:
    talk = Talk(lasts=False)
    talk.leader(talk.write.publish("a", qos=2, id=1), talk.write.pubrel(1))
    talk.client(talk.write.pubrec(1), talk.write.pubcomp(1))
    assert talk.session.leader_lost()


def test_the_node_completes_handshakes_of_qos_2_that_the_next_leader_does_not_know() -> None:
    talk = Talk(lasts=False)
    write = talk.write
    talk.client(write.publish("a", qos=2, id=1), write.publish("a", qos=2, id=2))
    talk.leader(write.pubrec(1), write.pubrec(2))
    talk.client(write.pubrel(1))
    talk.change_leader()
    assert talk.leader(NEW[5]) == write.pubcomp(1)
    assert talk.session.waiting.take_for_leader() == b""
    assert talk.client(write.pubrel(2)) == b""
    assert talk.session.waiting.take_for_client() == write.pubcomp(2)


def test_a_session_that_was_to_last_and_is_gone_ends_a_client_with_messages_of_qos_2() -> None:
    talk = Talk()
    talk.client(talk.write.publish("a", qos=2, id=1))
    talk.change_leader()
    assert talk.lines(talk.leader(NEW[5])) == ["DISCONNECT SERVER_SHUTTING_DOWN"]
    assert talk.session.is_over


# ---- Topic aliases --------------------------------------------------------------------------------------------------


def test_the_next_leader_is_told_the_topic_of_an_alias() -> None:
    talk = Talk()
    write = talk.write
    named = write.publish("a/b", qos=1, id=1, properties=topic_alias(3))
    short = write.publish("", qos=1, id=2, properties=topic_alias(3))
    assert talk.client(named, short) == named + short
    again = [write.publish("a/b", qos=1, id=number, properties=topic_alias(3), dup=True) for number in (1, 2)]
    assert talk.resume() == b"".join(again)
    third = write.publish("", properties=topic_alias(3))
    assert talk.client(third) == write.publish("a/b", properties=topic_alias(3))
    assert talk.client(third) == third


# ---- Ends -----------------------------------------------------------------------------------------------------------


def test_a_leader_that_ends_in_order_is_left() -> None:
    talk = Talk()
    publish = talk.write.publish("a")
    assert talk.leader(publish, b"\xe0\x01\x8b", publish) == publish
    assert talk.session.has_leader_ended
    talk.resume()
    assert not talk.session.has_leader_ended


@pytest.mark.parametrize("stops", [b"\xe0\x01\x8b", packet(0xE0, b"\x8b\x08\x1f" + text("ended"))])
def test_what_a_leader_refuses_because_it_stops_is_sent_again(stops: bytes) -> None:
    talk = Talk()
    write = talk.write
    talk.client(write.publish("a", qos=1, id=1), write.publish("a", qos=2, id=2))
    assert talk.leader(write.puback(1, 0x97), write.pubrec(2, 0x97), stops) == b""
    assert talk.session.has_leader_ended
    expected = write.publish("a", qos=1, id=1, dup=True) + write.publish("a", qos=2, id=2, dup=True)
    assert talk.resume() == expected


def test_any_other_disconnect_ends_the_connection() -> None:
    talk = Talk()
    assert talk.leader(b"\xe0\x01\x8e") == b"\xe0\x01\x8e"
    assert not talk.session.leader_lost()


def test_a_client_that_has_said_goodbye_is_not_held() -> None:
    talk = Talk()
    talk.client(talk.write.disconnect())
    assert not talk.session.leader_lost()


@pytest.mark.parametrize("data", [b"\x30\xff\xff\xff\xff\x7f", b"\x32\x03\0\x09a", b"\x82\x03\0\1\x05"])
def test_a_connection_that_is_not_understood_is_passed_on(data: bytes) -> None:
    talk = Talk()
    assert talk.client(data) == data
    assert talk.client(b"anything") == b"anything"
    assert talk.leader(b"an answer") == b"an answer"
    assert not talk.session.leader_lost()


def test_a_packet_that_is_not_whole_passes_too() -> None:
    talk = Talk()
    data = b"\x32\x03\0\x09a" + b"\x30\x10\0\x01a"
    assert talk.client(data) == data


def test_what_is_no_mqtt_is_passed_on() -> None:
    session = RelayedSession()
    session.receive_from_client(b"GET / HTTP/1.1\r\n\r\n")
    session.receive_from_leader(b"no")
    assert (session.waiting.take_for_leader(), session.waiting.take_for_client()) == (b"GET / HTTP/1.1\r\n\r\n", b"no")


# ---- Limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["client", "leader"])
def test_a_large_packet_passes_in_pieces_and_ends_the_connection_with_the_leader(side: str) -> None:
    talk = Talk()
    pass_on: Callable[[bytes], bytes] = getattr(talk, side)
    large = talk.write.publish("a", bytes(MOST_HELD_BACK), qos=1, id=1)
    assert pass_on(large[:1000]) == large[:1000]
    assert pass_on(large[1000:-5]) == large[1000:-5]
    rest = large[-5:] + talk.write.publish("b")
    assert pass_on(rest) == rest
    if side == "leader":
        assert talk.session.leader_lost()
        return
    assert not talk.session.leader_lost(), "it cannot be sent again"


def test_a_large_publish_that_is_acknowledged_ends_nothing() -> None:
    talk = Talk()
    talk.client(talk.write.publish("a", bytes(MOST_HELD_BACK), qos=1, id=1)[:1000])
    assert not talk.session.leader_lost()
    talk = Talk()
    talk.client(talk.write.publish("a", bytes(MOST_HELD_BACK), qos=1, id=1))
    talk.leader(talk.write.puback(1))
    assert talk.session.leader_lost()


def test_a_client_with_too_much_on_its_way_is_not_read() -> None:
    talk = Talk()
    for number in range(1, 10):
        assert not talk.session.is_full
        talk.client(talk.write.publish("a", bytes(relayed_session.MOST_KEPT // 9), qos=1, id=number))
    assert talk.session.is_full
    talk.leader(talk.write.puback(1))
    assert not talk.session.is_full


def test_a_client_that_is_held_gets_signs_of_life() -> None:
    talk = Talk()
    assert talk.session.heartbeat_s == 60
    talk.session.beat()
    assert talk.session.waiting.take_for_client() == b""
    assert talk.session.leader_lost()
    talk.session.beat()
    assert talk.session.waiting.take_for_client() == b"\xd0\0"


@given(
    sizes=st.lists(st.integers(0, 300), max_size=8),
    cuts=st.lists(st.integers(1, 200), min_size=1, max_size=20),
)
def test_packets_pass_unchanged_for_any_cut_of_their_bytes(sizes: list[int], cuts: list[int]) -> None:
    talk = Talk()
    packets = [talk.write.publish("a", bytes(size), qos=1, id=number) for number, size in enumerate(sizes, 1)]
    data = b"".join(packets)
    sent, received, at, number = b"", b"", 0, 0
    while at < len(data):
        piece = data[at : at + cuts[number % len(cuts)]]
        sent += talk.client(piece)
        received += talk.leader(piece)
        at, number = at + len(piece), number + 1
    assert sent == received == data
    assert talk.resume() == b"".join(bytes((each[0] | 8,)) + each[1:] for each in packets)


@pytest.mark.parametrize("version", [4, 5])
def test_a_client_that_is_held_awaits_an_answer_after_a_request_alone(version: int) -> None:
    talk = Talk(version)
    talk.client(talk.write.publish("a", qos=1, id=1))
    assert talk.session.leader_lost()
    talk.session.tell_held()
    assert talk.leader() == b""
    for sent in (talk.write.pingreq(), talk.write.publish("a", qos=1, id=2)):
        talk.client(sent)
        assert not talk.session.awaits_answer


@pytest.mark.parametrize("version", [4, 5])
def test_a_request_that_is_sent_while_the_client_is_held_awaits_an_answer(version: int) -> None:
    talk = Talk(version)
    assert talk.session.leader_lost()
    talk.client(talk.write.pingreq())
    assert not talk.session.waiting.early, "a PINGREQ is kept"
    subscribe = talk.write.subscribe(("a", 1), id=3)
    talk.client(subscribe)
    assert talk.session.awaits_answer
    talk.session.leader_found()
    talk.session.waiting.take_for_leader()
    talk.leader(PRESENT[version])
    assert talk.session.waiting.take_for_leader() == subscribe
    assert not talk.session.awaits_answer


def test_a_subscription_without_its_answer_awaits_it() -> None:
    talk = Talk()
    talk.client(talk.write.subscribe(("a", 1), id=3))
    assert talk.session.leader_lost()
    assert talk.session.awaits_answer


def test_bytes_that_are_no_packets_await_the_refusal_of_the_next_leader() -> None:
    talk = Talk()
    assert talk.session.leader_lost()
    talk.client(b"\x30\xff\xff\xff\xff\xff")
    assert talk.session.awaits_answer
