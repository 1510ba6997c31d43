"""A client of a follower when the leader changes: its settings, queues and requests, and what cannot go on."""

import pytest
from pamqp import commands

from gateway_amqp.resuming import relayed_connection, unconfirmed
from gateway_amqp.resuming.relayed_connection import HEARTBEAT, RelayedConnection
from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.protocols.amqp.frames import asked, publish, start_ok, wire
from tests.protocols.amqp.resuming.relayed_dialogue import RelayedDialogue

CLOSED_BY_STOP = "broker forced connection closure with reason 'shutdown'"


@pytest.fixture
def dialogue() -> RelayedDialogue:
    return RelayedDialogue()


def test_nothing_is_seen_of_a_change_by_a_client_that_waits_for_nothing(dialogue: RelayedDialogue) -> None:
    assert dialogue.change() == []
    assert dialogue.request(commands.Queue.Declare(0, "orders", passive=True)) == [
        "Queue.DeclareOk(queue='orders', message_count=0, consumer_count=0)"
    ]


def test_an_exclusive_queue_keeps_its_name_its_binding_and_its_consumer() -> None:
    dialogue = RelayedDialogue(3)
    line = dialogue.request(commands.Queue.Declare(0, "", exclusive=True))[0]
    name = line.split("'")[1]
    assert name.startswith("amq.gen-")
    dialogue.request(commands.Queue.Bind(0, "", "amq.topic", "a.#"), commands.Basic.Consume(0, "", "tag", no_ack=True))
    assert dialogue.change() == []
    assert dialogue.request(publish("amq.topic", "a.b", b"1"), publish("", name, b"2"))[-2:] == [
        "Basic.Deliver(consumer_tag='tag', delivery_tag=1, redelivered=False, exchange='amq.topic', routing_key='a.b')"
        " b'1'",
        f"Basic.Deliver(consumer_tag='tag', delivery_tag=2, redelivered=False, exchange='', routing_key='{name}') b'2'",
    ]
    # an empty name is still the last declared queue
    assert dialogue.request(commands.Queue.Delete(0, "")) == [
        "Basic.Cancel(consumer_tag='tag', nowait=True)",
        "Queue.DeleteOk(message_count=0)",
    ]
    assert dialogue.change(2) == [], "a deleted queue was declared again"
    assert name not in dialogue.gateways[2].broker.vhost("/").queue_by_name


def test_prefetch_limits_are_those_of_each_consumer(dialogue: RelayedDialogue) -> None:
    dialogue.request(
        commands.Basic.Qos(0, 1),
        commands.Basic.Consume(0, "orders", "one"),
        commands.Basic.Qos(0, 3),
    )
    assert dialogue.change() == []
    dialogue.request(*[publish("", "orders", b"%d" % number) for number in range(5)])
    consumers = dialogue.leader.machine.channels.open_by_number[1].consuming
    assert consumers.unsettled == 1
    assert consumers.prefetch == (3, 0)


def test_requests_without_answers_are_repeated_in_their_order_among_publishes(dialogue: RelayedDialogue) -> None:
    dialogue.request(commands.Confirm.Select())
    dialogue.relay.receive_from_client(
        wire(
            publish("", "orders", b"1"),
            commands.Queue.Declare(0, "new", durable=True),
            publish("", "new", b"2"),
            commands.Queue.Bind(0, "new", "amq.fanout", "", nowait=True),
            publish("amq.fanout", "", b"3"),
            commands.Basic.Get(0, "orders", no_ack=True),
        )
    )
    dialogue.relay.waiting.take_for_leader()  # it is lost
    lines = dialogue.change()
    assert "Queue.DeclareOk(queue='new', message_count=0, consumer_count=0)" in lines
    assert lines[-2].startswith("Basic.GetOk(delivery_tag=1") or lines[-1].startswith("Basic.GetOk(delivery_tag=1")
    assert any(line.startswith("Basic.Ack(delivery_tag=3, multiple=True") for line in lines), lines
    assert dialogue.bodies("new") == [b"2", b"3"]


def test_a_message_in_pieces_is_sent_again_from_its_beginning(dialogue: RelayedDialogue) -> None:
    dialogue.request(commands.Confirm.Select())
    whole = wire(publish("", "orders", b"0123456789", pieces=4))
    dialogue.relay.receive_from_client(whole[:-20])
    dialogue._pass()
    assert dialogue.change() == []
    dialogue.relay.receive_from_client(whole[-20:])
    dialogue._pass()
    assert dialogue.receive() == ["Basic.Ack(delivery_tag=1, multiple=False)"]
    assert dialogue.bodies() == [b"0123456789"]


def test_an_open_transaction_closes_its_channel_and_no_other(dialogue: RelayedDialogue) -> None:
    dialogue.request(commands.Channel.Open(), channel=2)
    dialogue.request(commands.Tx.Select(), publish("", "orders", b"1"))
    reason = "the leader of the cluster changed during a transaction, which may be committed or not"
    assert dialogue.change() == [f"Channel.Close 406 PRECONDITION_FAILED - {reason} (0,0)"]
    assert dialogue.request(publish("", "orders", b"2"), commands.Channel.CloseOk()) == []
    assert dialogue.request(commands.Channel.Open()) == ["Channel.OpenOk(channel_id='')"]
    assert dialogue.request(commands.Basic.Qos(0, 1), channel=2) == ["Basic.QosOk() ch=2"]
    assert dialogue.bodies() == []


def test_a_transaction_that_was_committed_goes_on(dialogue: RelayedDialogue) -> None:
    dialogue.request(commands.Tx.Select(), publish("", "orders", b"1"), commands.Tx.Commit())
    assert dialogue.change() == []
    assert dialogue.request(publish("", "orders", b"2"), commands.Tx.Commit()) == ["Tx.CommitOk()"]
    assert dialogue.bodies() == [b"2"]


def test_a_commit_without_answer_closes_the_channel(dialogue: RelayedDialogue) -> None:
    dialogue.request(commands.Tx.Select())
    dialogue.relay.receive_from_client(wire(publish("", "orders", b"1"), commands.Tx.Commit()))
    dialogue.relay.waiting.take_for_leader()
    assert dialogue.change()[0].startswith("Channel.Close 406 ")


def test_a_message_that_is_too_large_to_be_kept_closes_its_channel(
    dialogue: RelayedDialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway_amqp.resuming.relayed_channel.MOST_OF_A_MESSAGE", 1000)
    dialogue.request(commands.Confirm.Select())
    dialogue.relay.receive_from_client(wire(publish("", "orders", b"x" * 2000)))
    dialogue.relay.waiting.take_for_leader()
    assert dialogue.change() == [
        "Channel.Close 311 CONTENT_TOO_LARGE - the leader of the cluster changed,"
        " and a message was too large to be kept (0,0)"
    ]
    assert unconfirmed.MOST_OF_A_MESSAGE > relayed_connection.MOST_KEPT


def test_a_client_with_many_unconfirmed_messages_is_not_read(
    dialogue: RelayedDialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relayed_connection, "MOST_KEPT", 1000)
    dialogue.request(commands.Confirm.Select())
    dialogue.send(publish("", "orders", b"x" * 2000))
    assert dialogue.relay.is_full
    dialogue.receive()
    assert not dialogue.relay.is_full
    dialogue.relay.receive_from_client(wire(publish("", "orders", b"x" * 2000)))
    dialogue.request(commands.Channel.Close(200, "", 0, 0))
    assert not dialogue.relay.is_full


def test_a_consumer_whose_queue_is_gone_is_cancelled(dialogue: RelayedDialogue) -> None:
    dialogue.gateways[0].broker.vhost("/").declare_queue("of-others", is_durable=False)
    dialogue.request(commands.Basic.Consume(0, "of-others", "t"), commands.Basic.Consume(0, "orders", "u"))
    assert dialogue.change() == ["Basic.Cancel(consumer_tag='t', nowait=True)"]
    assert dialogue.request(publish("", "orders", b"1"))[0].startswith("Basic.Deliver(consumer_tag='u'")


def test_a_client_without_the_capability_is_not_told_of_a_cancelled_consumer() -> None:
    dialogue = RelayedDialogue(capabilities={})
    dialogue.gateways[0].broker.vhost("/").declare_queue("of-others", is_durable=False)
    dialogue.request(commands.Basic.Consume(0, "of-others", "t"))
    assert dialogue.change() == []


def test_a_consumer_of_a_stream_goes_on_behind_its_last_message() -> None:
    dialogue = RelayedDialogue()
    declare = commands.Queue.Declare(0, "log", durable=True, arguments={"x-queue-type": "stream"})
    dialogue.request(declare)
    texts = [b"%d" % number for number in range(4)]
    dialogue.request(*[publish("", "log", text) for text in texts])
    dialogue.request(commands.Basic.Qos(0, 100))
    first = {"x-stream-offset": "first"}
    found = dialogue.request(commands.Basic.Consume(0, "log", "t", arguments=first))
    assert len(found) == 5
    peer = dialogue.gateways[1].connect()
    peer.send(declare, *[publish("", "log", text) for text in [*texts, b"4", b"5"]])
    peer.receive()
    lines = dialogue.change()
    assert [line.split()[-1] for line in lines] == ["b'4'", "b'5'"], lines
    assert "delivery_tag=5," in lines[0]


def test_a_refused_login_is_passed_on(dialogue: RelayedDialogue) -> None:
    dialogue.gateways[1].broker.directory.remove_user("guest")
    lines = dialogue.change()
    assert lines[0].startswith("Connection.Close 403 ACCESS_REFUSED"), lines


def test_a_login_that_is_refused_in_silence_is_not_tried_for_ever() -> None:
    dialogue = RelayedDialogue(capabilities={})
    dialogue.gateways[1].broker.directory.remove_user("guest")
    assert dialogue.lose()
    dialogue.find()
    assert dialogue.leader.has_ended
    assert dialogue.lose()
    dialogue.find()
    assert not dialogue.lose()
    assert dialogue.receive() == [
        "Connection.Close 320 CONNECTION_FORCED - the next leader of the cluster refused the login (0,0)"
    ]


def test_a_new_secret_is_used_and_its_request_repeated(dialogue: RelayedDialogue) -> None:
    dialogue.gateways[1].add_user("guest", "new", "/")
    dialogue.relay.receive_from_client(wire(commands.Connection.UpdateSecret("new", "it expires")))
    dialogue.relay.waiting.take_for_leader()
    assert dialogue.change() == ["Connection.UpdateSecretOk()"]


def test_the_end_of_a_leader_in_order_is_no_end_for_the_client(dialogue: RelayedDialogue) -> None:
    dialogue.gateways[0].broker.connections.force_close(CLOSED_BY_STOP)
    assert dialogue.receive() == []
    assert dialogue.relay.has_leader_ended
    assert dialogue.leader.has_ended, "the leader waits for close-ok"
    assert dialogue.change() == []


def test_what_a_leader_refuses_because_it_stops_is_published_again(dialogue: RelayedDialogue) -> None:
    dialogue.request(commands.Confirm.Select())
    dialogue.relay.receive_from_client(wire(publish("", "orders", b"1")))
    dialogue.relay.waiting.take_for_leader()
    nack = wire(commands.Basic.Nack(1, False, False))
    stop = wire(commands.Connection.Close(320, f"CONNECTION_FORCED - {CLOSED_BY_STOP}", 0, 0))
    dialogue.relay.receive_from_leader(nack + stop)
    assert dialogue.change() == ["Basic.Ack(delivery_tag=1, multiple=False)"]
    assert dialogue.bodies() == [b"1"]


def test_a_refusal_is_passed_on(dialogue: RelayedDialogue) -> None:
    dialogue.request(commands.Confirm.Select())
    dialogue.relay.receive_from_client(wire(publish("", "orders", b"1")))
    dialogue.relay.waiting.take_for_leader()
    dialogue.relay.receive_from_leader(wire(commands.Basic.Nack(1, False, False)))
    assert dialogue.receive() == ["Basic.Nack(delivery_tag=1, multiple=False, requeue=False)"]


def test_a_connection_that_an_operator_closes_is_closed(dialogue: RelayedDialogue) -> None:
    dialogue.gateways[0].broker.connections.force_close("because")
    assert dialogue.receive() == ["Connection.Close 320 CONNECTION_FORCED - because (0,0)"]
    assert not dialogue.lose()


def test_closes_without_an_answer_are_answered(dialogue: RelayedDialogue) -> None:
    dialogue.request(commands.Channel.Open(), channel=2)
    dialogue.relay.receive_from_client(wire(commands.Channel.Close(200, "", 0, 0), channel=2))
    dialogue.relay.waiting.take_for_leader()
    assert dialogue.change() == ["Channel.CloseOk() ch=2"]
    dialogue.relay.receive_from_client(wire(commands.Connection.Close(200, "", 0, 0)))
    dialogue.relay.waiting.take_for_leader()
    assert not dialogue.lose()
    assert dialogue.receive() == ["Connection.CloseOk()"]


def test_a_channel_that_the_former_leader_closed_stays_closed(dialogue: RelayedDialogue) -> None:
    line = dialogue.request(commands.Queue.Declare(0, "unknown", passive=True))[0]
    assert line.startswith("Channel.Close 404")
    assert dialogue.change() == []
    assert dialogue.request(publish("", "orders", b"1"), commands.Channel.CloseOk(), commands.Channel.Open()) == [
        "Channel.OpenOk(channel_id='')"
    ]
    assert dialogue.bodies() == []


def test_a_client_that_was_blocked_is_unblocked(dialogue: RelayedDialogue) -> None:
    dialogue.request(publish("", "orders", b"1"))
    dialogue.leader.block("low on memory") if hasattr(dialogue.leader, "block") else dialogue.leader.machine.block(
        "low"
    )
    assert dialogue.receive()[0].startswith("Connection.Blocked(")
    assert dialogue.change() == ["Connection.Unblocked()"]


def test_a_client_that_is_held_hears_heartbeats(dialogue: RelayedDialogue) -> None:
    assert dialogue.relay.heartbeat_s == 60
    assert dialogue.lose()
    dialogue.relay.beat()
    assert dialogue.relay.waiting.take_for_client() == HEARTBEAT
    dialogue.relay.receive_from_client(HEARTBEAT)
    dialogue.find()
    assert dialogue.receive() == []


def test_a_client_of_another_protocol_is_passed_on_as_it_comes() -> None:
    relay = RelayedConnection()
    relay.receive_from_client(b"AMQP\x00\x01\x00\x00 and more")
    assert relay.waiting.take_for_leader() == b"AMQP\x00\x01\x00\x00 and more"
    relay.receive_from_leader(b"AMQP")
    assert relay.waiting.take_for_client() == b"AMQP"
    assert not relay.leader_lost()


def test_a_loss_within_a_large_delivery_ends_the_connection(
    dialogue: RelayedDialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relayed_connection, "MOST_HELD_BACK", 1000)
    dialogue.request(publish("", "orders", b"x" * 300_000, pieces=100_000))
    dialogue.relay.receive_from_client(wire(commands.Basic.Get(0, "orders")))
    dialogue.leader._receive(dialogue.relay.waiting.take_for_leader())
    dialogue.leader.gateway.settle()
    dialogue.relay.receive_from_leader(dialogue.leader.sent[:200_000])
    assert len(dialogue.relay.waiting.take_for_client()) > 100_000
    assert not dialogue.lose()
    assert dialogue.relay.is_over


def test_transient_exchanges_and_bindings_come_again() -> None:
    dialogue = RelayedDialogue(3)
    dialogue.request(
        commands.Exchange.Declare(0, "passing", "topic"),
        commands.Exchange.Bind(0, "passing", "amq.topic", "a.#"),
        commands.Queue.Bind(0, "orders", "passing", "a.b"),
        commands.Queue.Bind(0, "orders", "passing", "a.c"),
        commands.Queue.Unbind(0, "orders", "passing", "a.c"),
    )
    assert dialogue.change() == []
    dialogue.request(publish("amq.topic", "a.b", b"1"), publish("amq.topic", "a.c", b"2"))
    assert dialogue.bodies() == [b"1"]
    dialogue.request(commands.Exchange.Delete(0, "passing"))
    assert dialogue.change(2) == []
    assert "passing" not in dialogue.gateways[2].broker.vhost("/").exchange_by_name


def test_a_frame_larger_than_the_limit_before_the_login_is_passed_on_as_it_comes() -> None:
    relay = RelayedConnection()
    large = PROTOCOL_HEADER + b"\x01\0\0" + (100_000).to_bytes(4, "big") + b"\0\x0a\0\x0b"
    relay.receive_from_client(large)
    assert relay.waiting.take_for_leader() == large, "the leader refuses it"


def test_a_client_that_sends_much_before_its_login_was_answered_is_not_read() -> None:
    relay = RelayedConnection()
    login = start_ok("\0guest\0guest"), commands.Connection.TuneOk(2047, 131_072, 0)
    relay.receive_from_client(PROTOCOL_HEADER + wire(*login))
    relay.receive_from_client(wire(asked(commands.Connection.Open, virtual_host="/"), commands.Channel.Open()))
    assert not relay.is_full
    relay.receive_from_client(b"\x03\0\1" + (100_000).to_bytes(4, "big") + b"x" * 5000)
    assert relay.is_full
    relay.receive_from_leader(wire(commands.Connection.Tune(2047, 131_072, 0)))
    assert not relay.is_full
