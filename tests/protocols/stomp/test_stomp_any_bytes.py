"""Arbitrary bytes: the machine answers or closes, affects no other client, and raises nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway_stomp.state import State
from tests.effort import examples
from tests.protocols.stomp.dialogue import Gateway, frame
from tests.protocols.stomp.frame_reader import CLOSED

OFTEN = ("CONNECT", "STOMP", "SEND", "SUBSCRIBE", "UNSUBSCRIBE", "ACK", "NACK", "BEGIN", "COMMIT", "ABORT")
VERBS = st.sampled_from((*OFTEN, *OFTEN, *OFTEN, "DISCONNECT", "NONSENSE"))

NAMES = (
    *("id", "destination", "ack", "transaction", "receipt", "message-id", "reply-to", "selector", "durable"),
    *("prefetch-count", "x-priority", "priority", "expiration", "login", "passcode", "accept-version", "requeue"),
    *("activemq.subscriptionName", "x-queue-name", "x-message-ttl", "heart-beat", "host", "persistent"),
)
VALUES = (
    *("0", "1", "t", "true", "false", "client", "auto", "client-individual", "guest", "1.1,1.2", "10,10", "/", "a = 1"),
    *("/queue/q", "/topic/t", "/topic/>", "/exchange/amq.topic/t", "/temp-queue/x", "/amq/queue/q", "/nowhere", ""),
    *("T_0@@session-token-1@@1", "T_0@@session-token-1@@2"),
)
HEADERS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=6)
FRAMES = st.builds(frame, VERBS, HEADERS, st.just(b"") | st.binary(max_size=20))
OPENING = frame("CONNECT", {"login": "guest", "passcode": "guest", "accept-version": "1.2"})


@settings(max_examples=examples(300), deadline=None)
@given(pieces=st.lists(FRAMES | st.binary(max_size=40), max_size=25), opens=st.booleans(), activemq=st.booleans())
def test_any_bytes_are_answered_or_close_the_connection(pieces: list[bytes], opens: bool, activemq: bool) -> None:
    gateway = Gateway(activemq=activemq)
    witness = gateway.client()
    witness.subscribe("/queue/witness")
    client = gateway.new_client()
    received = client.request_frames(OPENING) if opens else []
    for piece in pieces:
        received += client.request_frames(piece)
    if client.machine.state is State.CLOSED:
        assert received[-1] == CLOSED
        assert client.request_frames(OPENING) == []
    else:
        assert CLOSED not in received
    assert sum(each.verb == "ERROR" for each in received) <= 1
    client.lose()
    assert all(queue.owner is None for queue in gateway.vhost.queue_by_name.values())
    assert all(queue.unsettled == 0 for queue in gateway.vhost.queue_by_name.values())
    assert [message.body for message in witness.publish("/queue/witness", b"well")] == [b"well"]
