"""A client of a follower while no node leads: how it is blocked, and whether it awaits an answer."""

from pamqp import commands

from gateway_amqp.methods import encode_method
from gateway_amqp.resuming.relayed_connection import HEARTBEAT
from tests.protocols.amqp.frames import publish, wire
from tests.protocols.amqp.resuming.relayed_dialogue import RelayedDialogue

_BLOCKED = "Connection.Blocked(reason='no node of the cluster leads')"


def told(dialogue: RelayedDialogue) -> list[str]:
    """Tell the client that it is held; return what it gets."""
    dialogue.relay.tell_held()
    dialogue._pass()
    return [str(each) for each in dialogue._lines]


def test_a_client_that_has_published_is_blocked_once_and_then_unblocked() -> None:
    dialogue = RelayedDialogue()
    dialogue.request(publish("", "orders", b"1"))
    assert dialogue.lose()
    assert told(dialogue) == [_BLOCKED]
    assert told(dialogue) == [_BLOCKED], "it was told twice"
    dialogue.receive()
    dialogue.find()
    assert dialogue.receive() == ["Connection.Unblocked()"]


def test_a_client_that_only_consumes_is_not_blocked() -> None:
    dialogue = RelayedDialogue()
    dialogue.request(commands.Basic.Consume(0, "orders", "tag"))
    assert dialogue.lose()
    assert told(dialogue) == []


def test_a_client_that_publishes_while_it_is_held_is_blocked() -> None:
    dialogue = RelayedDialogue()
    assert dialogue.lose()
    assert told(dialogue) == []
    dialogue.relay.receive_from_client(wire(publish("", "orders", b"1"), channel=1))
    assert told(dialogue) == [_BLOCKED]
    assert not dialogue.relay.awaits_answer
    dialogue.receive()
    dialogue.find()
    assert dialogue.receive() == ["Connection.Unblocked()"]
    assert dialogue.bodies() == [b"1"]


def test_a_client_without_the_capability_is_told_nothing() -> None:
    dialogue = RelayedDialogue(capabilities={})
    dialogue.request(publish("", "orders", b"1"))
    assert dialogue.lose()
    assert told(dialogue) == []


def test_what_the_lost_leader_has_blocked_stays_blocked_until_the_next_one_takes_publishes() -> None:
    dialogue = RelayedDialogue()
    dialogue.request(publish("", "orders", b"1"))
    dialogue.relay.receive_from_leader(encode_method(0, commands.Connection.Blocked("the store cannot write")))
    assert dialogue.receive() == ["Connection.Blocked(reason='the store cannot write')"]
    assert dialogue.lose()
    assert told(dialogue) == []
    dialogue.find()
    assert dialogue.receive() == ["Connection.Unblocked()"]


def test_a_request_that_is_sent_while_the_client_is_held_awaits_an_answer() -> None:
    dialogue = RelayedDialogue()
    assert dialogue.lose()
    assert not dialogue.relay.awaits_answer
    dialogue.relay.receive_from_client(HEARTBEAT * 2)
    assert not dialogue.relay.waiting.early, "heartbeats are kept"
    dialogue.relay.receive_from_client(wire(commands.Queue.Declare(0, "more", durable=True), channel=1))
    assert dialogue.relay.awaits_answer
    dialogue.find()
    assert dialogue.receive() == ["Queue.DeclareOk(queue='more', message_count=0, consumer_count=0)"]
    assert dialogue.lose()
    assert not dialogue.relay.awaits_answer, "the answer has come"


def test_a_request_that_the_lost_leader_did_not_answer_awaits_an_answer() -> None:
    dialogue = RelayedDialogue()
    dialogue.send(commands.Queue.Declare(0, "more", durable=True))
    assert dialogue.lose()
    assert dialogue.relay.awaits_answer


def test_the_rest_of_a_frame_is_kept_even_if_it_looks_like_a_heartbeat() -> None:
    dialogue = RelayedDialogue()
    sent = wire(publish("", "orders", HEARTBEAT * 2), channel=1)
    at = sent.index(HEARTBEAT)
    dialogue.relay.receive_from_client(sent[:at])
    assert dialogue.lose()
    dialogue.relay.receive_from_client(sent[at : at + len(HEARTBEAT)])
    dialogue.relay.receive_from_client(sent[at + len(HEARTBEAT) :])
    dialogue.find()
    dialogue.receive()
    assert dialogue.bodies() == [HEARTBEAT * 2]


def test_bytes_that_are_no_frames_await_the_refusal_of_the_next_leader() -> None:
    dialogue = RelayedDialogue()
    assert dialogue.lose()
    dialogue.relay.receive_from_client(b"\x09" * 20)
    assert not told(dialogue)
    dialogue.find()
    assert dialogue.receive()[-1].startswith("Connection.Close 501 FRAME_ERROR")
