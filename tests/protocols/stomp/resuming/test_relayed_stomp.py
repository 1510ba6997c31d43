"""Frames between a STOMP client, the node and one leader after the other."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_stomp.resuming.frame_stream import MOST_HELD_BACK
from gateway_stomp.resuming.relayed_connection import MOST_KEPT, RelayedStompConnection, StompStage
from tests.protocols.stomp.dialogue import Client, Gateway, frame

CONNECT = frame(
    "CONNECT", {"accept-version": "1.0,1.1,1.2", "host": "/", "login": "guest", "passcode": "guest"}, version="1.0"
)
STOPS = frame("ERROR", {"message": "connection_forced"}, b"broker forced connection closure with reason 'shutdown'")


def connected(session: str = "session-1", version: str = "1.2", beat: str = "0,0") -> bytes:
    return frame("CONNECTED", {"version": version, "session": session, "heart-beat": beat}, version="1.0")


def message(subscription: str, number: int, session: str = "session-1", **more: str) -> bytes:
    id = f"T_{subscription}@@{session}@@{number}"
    return frame("MESSAGE", {"subscription": subscription, "message-id": id, "ack": id} | more, b"hi")


class Talk:
    """A client with an open connection. Each method returns what the other side gets."""

    def __init__(self, version: str = "1.2", beat: str = "0,0") -> None:
        self.session = RelayedStompConnection()
        self._leaders = 1
        self._version = version
        assert self.client(CONNECT) == CONNECT
        welcome = connected(version=version, beat=beat)
        assert self.leader(welcome) == welcome
        assert self.session.stage is StompStage.OPEN

    def client(self, *frames: bytes) -> bytes:
        self.session.receive_from_client(b"".join(frames))
        return self.session.waiting.take_for_leader()

    def leader(self, *frames: bytes) -> bytes:
        self.session.receive_from_leader(b"".join(frames))
        return self.session.waiting.take_for_client()

    def resume(self) -> bytes:
        """Return what the next leader gets after its CONNECTED."""
        assert self.session.leader_lost()
        self.session.leader_found()
        assert self.session.waiting.take_for_leader() == CONNECT
        self._leaders += 1
        assert self.leader(connected(f"session-{self._leaders}", self._version)) == b""
        return self.session.waiting.take_for_leader()

    def is_ended(self) -> bool:
        """Lose the leader; return whether the client is told of the end."""
        assert not self.session.leader_lost()
        told = self.session.waiting.take_for_client()
        assert self.session.is_over
        return told.startswith(b"ERROR\nmessage:connection_forced\n")


def test_a_message_without_its_receipt_is_sent_again() -> None:
    talk = Talk()
    sends = [frame("SEND", {"destination": "/queue/q", "receipt": name}, b"x") for name in "abc"]
    talk.client(*sends, frame("SEND", {"destination": "/queue/q"}, b"without"))
    talk.leader(frame("RECEIPT", {"receipt-id": "b"}))
    assert talk.resume() == sends[0] + sends[2]
    talk.leader(frame("RECEIPT", {"receipt-id": "a"}), frame("RECEIPT", {"receipt-id": "c"}))
    assert talk.resume() == b""


def test_subscriptions_are_made_again_without_the_receipts_that_came() -> None:
    talk = Talk()
    one = {"id": "1", "destination": "/queue/a", "ack": "client", "receipt": "r1"}
    two = {"id": "2", "destination": "/topic/b", "receipt": "r2"}
    three = {"id": "3", "destination": "/topic/c"}
    talk.client(*(frame("SUBSCRIBE", each) for each in (one, two, three)))
    talk.leader(frame("RECEIPT", {"receipt-id": "r1"}))
    talk.client(frame("UNSUBSCRIBE", {"id": "3"}))
    del one["receipt"]
    assert talk.resume() == frame("SUBSCRIBE", one) + frame("SUBSCRIBE", two)


def test_a_stream_is_read_from_where_the_client_is() -> None:
    talk = Talk()
    subscribe = {"id": "1", "destination": "/queue/s", "x-stream-offset": "first", "ack": "client"}
    talk.client(frame("SUBSCRIBE", subscribe))
    talk.leader(message("1", 1, **{"x-stream-offset": "41"}))
    expected = {"x-stream-offset": "offset=42", "id": "1", "destination": "/queue/s", "ack": "client"}
    assert talk.resume() == frame("SUBSCRIBE", expected)


@pytest.mark.parametrize(("version", "header"), [("1.2", "id"), ("1.1", "message-id")])
@pytest.mark.parametrize("verb", ["ACK", "NACK"])
def test_an_acknowledgement_for_a_former_leader_is_dropped(version: str, header: str, verb: str) -> None:
    talk = Talk(version)
    talk.resume()
    old = frame(verb, {header: "T_1@@session-1@@7", "subscription": "1"}, version=version)
    new = frame(verb, {header: "T_1@@session-2@@7", "subscription": "1"}, version=version)
    assert talk.client(old, new) == new


@pytest.mark.parametrize("more", [{"receipt": "r"}, {"transaction": "t"}])
def test_an_acknowledgement_whose_receipt_would_be_wrong_ends_the_connection(more: dict[str, str]) -> None:
    talk = Talk()
    talk.resume()
    assert talk.client(frame("ACK", {"id": "T_1@@session-1@@7"} | more)) == b""
    assert b"the acknowledged message is delivered again" in talk.session.waiting.take_for_client()
    assert talk.session.is_over


def test_an_open_transaction_is_begun_again() -> None:
    talk = Talk()
    begin = frame("BEGIN", {"transaction": "t"})
    send = {"destination": "/queue/q", "transaction": "t"}
    talk.client(begin, frame("SEND", send | {"receipt": "r"}, b"1"), frame("SEND", send, b"2"))
    talk.leader(frame("RECEIPT", {"receipt-id": "r"}))
    assert talk.resume() == begin + frame("SEND", send, b"1") + frame("SEND", send, b"2")
    talk.client(frame("COMMIT", {"transaction": "t"}))
    assert talk.resume() == b""


UNREPEATABLE = {
    "a commit whose receipt has not come": [frame("COMMIT", {"transaction": "t", "receipt": "r"})],
    "an acknowledgement whose receipt has not come": [frame("ACK", {"id": "T_1@@session-1@@7", "receipt": "r"})],
    "an unsubscribe whose receipt has not come": [frame("UNSUBSCRIBE", {"id": "1", "receipt": "r"})],
    "an acknowledgement in a transaction": [
        frame("BEGIN", {"transaction": "t"}),
        frame("ACK", {"id": "T_1@@session-1@@7", "transaction": "t"}),
    ],
    "a temporary queue": [frame("SEND", {"destination": "/queue/q", "reply-to": "/temp-queue/r"})],
    "a large transaction": [
        frame("BEGIN", {"transaction": "t"}),
        *[frame("SEND", {"destination": "/queue/q", "transaction": "t"}, bytes(MOST_KEPT // 4))] * 5,
    ],
    "a part of a large frame": [frame("SEND", {"destination": "/queue/q"}, bytes(MOST_HELD_BACK))[:1000]],
}


@pytest.mark.parametrize("frames", UNREPEATABLE.values(), ids=UNREPEATABLE)
def test_what_cannot_be_repeated_ends_the_connection(frames: list[bytes]) -> None:
    talk = Talk()
    assert talk.client(*frames) == b"".join(frames)
    assert talk.is_ended()


def test_a_large_transaction_is_not_kept_in_memory() -> None:
    talk = Talk()
    send = frame("SEND", {"destination": "/queue/q", "transaction": "t"}, bytes(MOST_KEPT // 4))
    talk.client(frame("BEGIN", {"transaction": "t"}), *[send] * 20)
    assert talk.session._requests.transactions_size == 0
    talk.client(frame("COMMIT", {"transaction": "t"}))
    assert talk.session.leader_lost()


def test_a_large_frame_passes_in_pieces() -> None:
    talk = Talk()
    large = frame("SEND", {"destination": "/queue/q"}, bytes(MOST_HELD_BACK))
    after = frame("SEND", {"destination": "/queue/r", "receipt": "r"}, b"x")
    assert talk.client(large[:1000]) + talk.client(large[1000:-5]) + talk.client(large[-5:] + after) == large + after
    assert talk.resume() == after


def test_heart_beats_pass_and_are_sent_to_a_client_that_is_held() -> None:
    talk = Talk(beat="5000,10000")
    assert talk.session.heartbeat_s == 5
    assert talk.client(b"\n") == b"\n"
    assert talk.leader(b"\n\n") == b"\n\n"
    talk.session.beat()
    assert talk.session.waiting.take_for_client() == b""
    assert talk.session.leader_lost()
    talk.session.beat()
    assert talk.session.waiting.take_for_client() == b"\n"


def test_a_leader_that_ends_in_order_is_left() -> None:
    talk = Talk()
    assert talk.leader(STOPS) == b""
    assert talk.session.has_leader_ended
    assert talk.resume() == b""


def test_any_other_error_ends_the_connection() -> None:
    talk = Talk()
    error = frame("ERROR", {"message": "connection_forced"}, b"closed by an operator")
    assert talk.leader(error) == error
    assert not talk.session.leader_lost()
    assert not talk.session.is_over


def test_a_client_that_has_said_goodbye_is_not_held() -> None:
    talk = Talk()
    talk.client(frame("DISCONNECT", {"receipt": "r"}))
    assert not talk.session.leader_lost()


def test_what_is_no_stomp_is_passed_on() -> None:
    session = RelayedStompConnection()
    session.receive_from_client(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\0")
    session.receive_from_leader(b"no")
    assert session.waiting.take_for_leader() == b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\0"
    assert session.waiting.take_for_client() == b"no"


def test_a_client_with_too_much_on_its_way_is_not_read() -> None:
    talk = Talk()
    for number in range(9):
        assert not talk.session.is_full
        talk.client(frame("SEND", {"destination": "/queue/q", "receipt": str(number)}, bytes(MOST_KEPT // 9)))
    assert talk.session.is_full
    talk.leader(frame("RECEIPT", {"receipt-id": "1"}), frame("RECEIPT", {"receipt-id": "2"}))
    assert not talk.session.is_full


@given(
    bodies=st.lists(st.binary(max_size=200), max_size=6),
    cuts=st.lists(st.integers(1, 150), min_size=1, max_size=20),
    ending=st.sampled_from([b"\n", b"\r\n"]),
)
def test_frames_pass_unchanged_for_any_cut_of_their_bytes(bodies: list[bytes], cuts: list[int], ending: bytes) -> None:
    talk = Talk()
    frames = [
        frame("SEND", {"destination": "/queue/q", "receipt": str(number)}, body).replace(b"\n\n", ending * 2, 1)
        for number, body in enumerate(bodies)
    ]
    data = b"\n".join(frames)
    sent, received, at, number = b"", b"", 0, 0
    while at < len(data):
        piece = data[at : at + cuts[number % len(cuts)]]
        sent += talk.client(piece)
        received += talk.leader(piece)
        at, number = at + len(piece), number + 1
    assert sent == received == data
    assert talk.resume() == b"".join(frames)


# ---- With real brokers in memory ------------------------------------------------------------------------------------


class LeaderEnd(Client):
    """The connection of a node to one broker."""

    def __init__(self, gateway: Gateway, session: RelayedStompConnection) -> None:
        super().__init__(gateway)
        self.output = b""
        self._session = session

    def take(self, data: bytes) -> None:
        self._session.receive_from_leader(data)
        self.output += self._session.waiting.take_for_client()
        if answer := self._session.waiting.take_for_leader():
            self.send(answer)


def test_a_consumer_goes_on_with_the_next_broker_and_its_acknowledgements_count_there_alone() -> None:
    gateway, session = Gateway(), RelayedStompConnection()
    first = LeaderEnd(gateway, session)
    subscribe = frame("SUBSCRIBE", {"id": "1", "destination": "/queue/q", "ack": "client-individual"})
    for data in (CONNECT, subscribe):
        session.receive_from_client(data)
        first.send(session.waiting.take_for_leader())
        gateway.settle()
    sender = gateway.client()
    for body in (b"one", b"two"):
        sender.request(frame("SEND", {"destination": "/queue/q", "persistent": "true", "receipt": "r"}, body))
    gateway.settle()
    assert first.output.count(b"MESSAGE\n") == 2
    old = [line.removeprefix(b"ack:").decode() for line in first.output.split(b"\n") if line.startswith(b"ack:")]
    later = gateway.crashed()
    later.settings = replace(later.settings, token=lambda: "later")  # tokens are random elsewhere
    assert session.leader_lost()
    session.leader_found()
    second = LeaderEnd(later, session)
    second.send(session.waiting.take_for_leader())
    later.settle()
    assert second.output.count(b"MESSAGE\n") == 2
    assert b"CONNECTED" not in second.output
    for id in old:
        session.receive_from_client(frame("ACK", {"id": id.replace("\\c", ":")}))
    assert session.waiting.take_for_leader() == b""
    new = [line.removeprefix(b"ack:").decode() for line in second.output.split(b"\n") if line.startswith(b"ack:")]
    for id in new:
        session.receive_from_client(frame("ACK", {"id": id.replace("\\c", ":")}))
    second.send(session.waiting.take_for_leader())
    later.settle()
    assert b"ERROR" not in second.output
    second.lose()
    assert later.ready("q") == 0


def test_a_client_that_is_held_awaits_an_answer_after_a_request_alone() -> None:
    talk = Talk()
    talk.client(frame("SEND", {"destination": "/queue/q", "receipt": "1"}, b"hi"))
    assert talk.session.leader_lost()
    talk.session.tell_held()
    assert talk.leader() == b""
    for sent in (b"\n", frame("SEND", {"destination": "/queue/q", "receipt": "2"}, b"hi")):
        talk.client(sent)
        assert not talk.session.awaits_answer


@pytest.mark.parametrize(
    "sent",
    [frame("UNSUBSCRIBE", {"id": "1", "receipt": "3"}), b"BEGIN\nreceipt:\\x\n\n\0"],
    ids=["request", "malformed"],
)
def test_a_request_that_is_sent_while_the_client_is_held_awaits_an_answer(sent: bytes) -> None:
    talk = Talk()
    assert talk.session.leader_lost()
    talk.client(b"\n\n")
    assert not talk.session.waiting.early, "heartbeats are kept"
    talk.client(sent)
    assert talk.session.awaits_answer
    talk.session.leader_found()
    talk.leader(connected("session-2"))
    assert not talk.session.awaits_answer
    assert talk.session.waiting.take_for_leader().endswith(sent)


def test_a_subscription_whose_receipt_has_not_come_awaits_an_answer() -> None:
    talk = Talk()
    talk.client(frame("SUBSCRIBE", {"id": "1", "destination": "/queue/q", "receipt": "1"}))
    assert talk.session.leader_lost()
    assert talk.session.awaits_answer
