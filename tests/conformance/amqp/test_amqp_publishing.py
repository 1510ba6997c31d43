"""Publishing: refused and returned messages, and the time of confirms."""

from datetime import UTC, datetime

import pytest
from pamqp import commands

from gateway.kernel.alarms import Resource
from gateway.kernel.messages.message import Properties
from gateway_amqp.properties import encode_properties
from tests.conformance.amqp.tables import (
    ALIVE,
    CLOSE_CHANNEL,
    PROBE,
    Row,
    ack,
    acked,
    bind,
    channel_close,
    connection_close,
    consume,
    declared,
    delivered,
    exchange,
    get,
    got,
    nack,
    nacked,
    passes,
    queue,
    returned,
    row,
    unbind,
)
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import ALL_CAPABILITIES, Sent, content_header, frame, publish, wire

CONFIRM = commands.Confirm.Select()
CONFIRMING = "Confirm.SelectOk()"
TX = commands.Tx.Select()
TRANSACTIONAL = "Tx.SelectOk()"
LARGEST_MS = 315_360_000_000


def refused(text: str) -> str:
    return channel_close(f"PRECONDITION_FAILED - {text}", 60, 40)


def expiration(text: str, reason: str) -> Row:
    return row(f"R52: expiration {text!r}", [publish("", "t", expiration=text)],
               refused(f"invalid expiration '{text}': {reason}"))  # fmt: skip


def unacceptable(header: str, value: object, type: str) -> Row:
    return row(f"R29: {header} of type {type}", [publish("", "t", headers={header: value})],
               refused(f'invalid message: {{unacceptable_type_in_header,"{header}",{type}}}'))  # fmt: skip


REFUSALS: list[Row] = [
    expiration("abc", "no_integer"),
    expiration("", "no_integer"),
    expiration("  5", "no_integer"),
    expiration("-1", "{value_negative,-1}"),
    expiration("1.5", '{leftover_string,".5"}'),
    expiration("5 ", '{leftover_string," "}'),
    expiration("99999999999999999999", "{value_too_large,99999999999999999999}"),
    expiration(f"{LARGEST_MS + 1}", f"{{value_too_large,{LARGEST_MS + 1}}}"),
    *(passes(f"R52: expiration {text}", publish("", "d", expiration=text))
      for text in ("+5", "0", f"{LARGEST_MS}", "4294967296")),
    row("R11 comes before R52", [publish("nosuchx", "t", expiration="abc")],
        channel_close("NOT_FOUND - no exchange 'nosuchx' in vhost '/'", 60, 40)),
    row("user-id of another", [publish("", "t", user_id="someone")],
        refused("user_id property set to 'someone' but authenticated user was 'guest'")),
    passes("user-id of oneself", publish("", "d", user_id="guest")),
    unacceptable("CC", "k", "longstr"),
    unacceptable("CC", 1, "signedint"),
    unacceptable("CC", None, "void"),
    unacceptable("BCC", "k", "longstr"),
    unacceptable("BCC", {}, "table"),
    passes("R29: CC with a value that is not text", publish("", "d", headers={"CC": [1]})),
    passes("R29: an empty CC", publish("", "d", headers={"CC": []})),
    row("R21: immediate", [publish("", "t", immediate=True)],
        connection_close("NOT_IMPLEMENTED - immediate=true", 60, 40)),
    row("R21: immediate and mandatory", [publish("", "t", immediate=True, mandatory=True)],
        connection_close("NOT_IMPLEMENTED - immediate=true", 60, 40)),
    row("R20: unroutable and mandatory", [publish("", "nowhere", mandatory=True)], returned("nowhere")),
    row("R20: unroutable through an exchange", [publish("xd", "nowhere", b"", mandatory=True)],
        returned("nowhere", b"", exchange="xd")),
    passes("R20: unroutable and not mandatory", publish("", "nowhere")),
    passes("R20: routed and mandatory", publish("", "d", mandatory=True)),
    row("R20: returned, then confirmed", [CONFIRM, publish("xd", "nowhere", mandatory=True)],
        CONFIRMING, returned("nowhere", exchange="xd"), acked(1)),
    row("R119: unroutable is confirmed", [CONFIRM, publish("", "nowhere")], CONFIRMING, acked(1)),
    passes("the ticket is ignored", wire(publish("", "d")).replace(b"\x00\x3c\x00\x28\0\0",
                                                                              b"\x00\x3c\x00\x28\x12\x34")),
    row("R117: tx on a confirming channel", [CONFIRM, TX],
        CONFIRMING, channel_close("PRECONDITION_FAILED - cannot switch from confirm to tx mode", 90, 10)),
    row("R117: confirms on a transactional channel", [TX, CONFIRM],
        TRANSACTIONAL, channel_close("PRECONDITION_FAILED - cannot switch from tx to confirm mode", 85, 10)),
    row("R117: commit without select", [commands.Tx.Commit()],
        channel_close("PRECONDITION_FAILED - channel is not transactional", 90, 20)),
    row("R117: rollback without select", [commands.Tx.Rollback()],
        channel_close("PRECONDITION_FAILED - channel is not transactional", 90, 30)),
    row("tx.select twice", [TX, TX], TRANSACTIONAL, TRANSACTIONAL),
    row("confirm.select twice", [CONFIRM, CONFIRM, publish("", "d")], CONFIRMING, CONFIRMING, acked(1)),
    row("confirm.select without an answer", [commands.Confirm.Select(nowait=True), publish("", "d")], acked(1)),
    row("an ack from a publisher is handled as a consumer's", [CONFIRM, ack(1)],
        CONFIRMING, channel_close("PRECONDITION_FAILED - unknown delivery tag 1", 60, 80)),
    row("R118: return before commit-ok", [TX, publish("", "nowhere", mandatory=True), commands.Tx.Commit()],
        TRANSACTIONAL, returned("nowhere"), "Tx.CommitOk()"),
    row("tx: publish to an exchange that is not there", [TX, publish("nosuchx", "k"), commands.Tx.Commit()],
        TRANSACTIONAL, channel_close("NOT_FOUND - no exchange 'nosuchx' in vhost '/'", 60, 40)),
    row("tx: ack of an unknown tag", [TX, ack(99), commands.Tx.Commit()],
        TRANSACTIONAL, channel_close("PRECONDITION_FAILED - unknown delivery tag 99", 60, 80)),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), REFUSALS)
def test_a_publish_is_answered(peer: Peer, sent: list[Sent], answers: list[str]) -> None:
    assert peer.send(*sent).receive() == answers


def test_a_user_with_the_impersonator_tag_may_set_another_user_id(gateway: Gateway) -> None:
    gateway.add_user("actor", "secret", "/", (".*", ".*", ".*"), "impersonator")
    peer = gateway.connect(user="actor", password="secret")
    assert peer.send(publish("", "t", user_id="hamlet"), PROBE).receive() == [ALIVE]


# ---------------------------------------------------------------- sizes


@pytest.fixture
def frugal_peer() -> Peer:
    """Return a peer of a broker that accepts messages of up to 1000 bytes."""
    return Gateway(max_message_size=1000).connect()


TOO_LARGE = refused("message size 1001 is larger than configured max size 1000")


def test_a_message_of_the_largest_size_is_accepted(frugal_peer: Peer) -> None:
    assert frugal_peer.send(publish("", "t", bytes(1000)), PROBE).receive() == [ALIVE]


@pytest.mark.parametrize("pieces", [None, 400], ids=["in one frame", "in three"])
@pytest.mark.parametrize("name", ["", "nosuchx"], ids=["to an exchange", "to none"])
def test_a_message_above_the_largest_size_is_refused(frugal_peer: Peer, name: str, pieces: int | None) -> None:
    assert frugal_peer.send(publish(name, "t", bytes(1001), pieces=pieces)).receive() == [TOO_LARGE]


def test_a_content_header_above_the_largest_size_is_refused_before_the_body(frugal_peer: Peer) -> None:
    announced = wire(publish("", "t", b""))[: -len(content_header(0))] + content_header(2**64 - 1)
    assert frugal_peer.send(announced).receive() == [
        refused(f"message size {2**64 - 1} is larger than configured max size 1000")
    ]
    body = frame(3, 1, bytes(500))
    reopened = [commands.Channel.CloseOk(), commands.Channel.Open(), PROBE]
    assert frugal_peer.send(body, body, *reopened).receive() == ["Channel.OpenOk(channel_id='')", ALIVE]


# ---------------------------------------------------------------- contents are unchanged

EVERY_PROPERTY = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": {"a": 1, "b": [1, "x", None, True], "c": {"d": 1.5}, "t": datetime(2024, 1, 1, tzinfo=UTC)},
    "delivery_mode": 2,
    "priority": 9,
    "correlation_id": "c1",
    "reply_to": "elsewhere",
    "expiration": "60000",
    "message_id": "m1",
    "timestamp": datetime(2024, 1, 1, tzinfo=UTC),
    "type": "t",
    "user_id": "guest",
    "app_id": "a",
    "cluster_id": "cl",
}


def test_properties_are_delivered_with_the_same_bytes(peer: Peer) -> None:
    raw = encode_properties(Properties(**EVERY_PROPERTY))  # type: ignore[arg-type]  # each of its own type
    peer.send(publish("", "t", raw=raw), get("t"))
    [received] = peer.receive_frames()
    assert received.properties == raw


FRAME_MAX = 4096
SIZES = [0, 1, FRAME_MAX - 9, FRAME_MAX - 8, FRAME_MAX - 7, 3 * (FRAME_MAX - 8), 100_000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("piece", [FRAME_MAX - 8, 1000], ids=["in full frames", "in small frames"])
def test_4_2_6_a_body_is_split_into_frames_of_the_negotiated_size(gateway: Gateway, size: int, piece: int) -> None:
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    peer = gateway.connect(frame_max=FRAME_MAX)
    peer.send(publish("", "t", body, pieces=piece), consume("t", no_ack=True))
    _, received = peer.receive_frames()
    assert received.body == body
    full, rest = divmod(size, FRAME_MAX - 8)
    assert received.body_sizes == (FRAME_MAX - 8,) * full + ((rest,) if rest else ())


def test_r29_cc_and_bcc_are_additional_keys_and_bcc_is_removed(peer: Peer) -> None:
    peer.send(queue("one"), queue("two"), queue("three")).receive()
    peer.send(publish("", "one", headers={"CC": ["two", "one"], "BCC": ["three"], "kept": 7}))
    peer.send(get("one"), get("one"), get("two"), get("three"))
    one, empty, two, three = peer.receive_frames()
    assert str(empty) == "Basic.GetEmpty(cluster_id='')"
    for received in (one, two, three):
        assert isinstance(received.method, commands.Basic.GetOk)
        assert received.method.routing_key == "one"
        assert received.headers == {"CC": ["two", "one"], "kept": 7}


def test_order_is_kept_from_one_publisher_to_one_consumer(peer: Peer) -> None:
    peer.send(consume("t", no_ack=True), *(publish("", "t", bytes([n])) for n in range(200)))
    assert [received.body for received in peer.receive_frames()[1:]] == [bytes([n]) for n in range(200)]


# ---------------------------------------------------------------- confirms


def test_r119_a_persistent_message_is_confirmed_when_it_is_durable_and_not_before(gateway: Gateway, peer: Peer) -> None:
    peer.send(CONFIRM).receive()
    peer.send(publish("", "d", delivery_mode=2))
    assert peer.receive_now() == []
    assert peer.receive_now() == []
    gateway.store.commit()
    assert peer.receive_now() == [acked(1)]


@pytest.mark.parametrize(("name", "mode"), [("t", 2), ("d", 1), ("t", 1)])
def test_r119_a_message_that_is_not_stored_is_confirmed_at_the_end_of_the_turn(
    peer: Peer, name: str, mode: int
) -> None:
    peer.send(CONFIRM).receive()
    peer.send(publish("", name, delivery_mode=mode))
    assert peer.receive_now() == [acked(1)]


def test_r121_all_messages_of_a_turn_are_confirmed_at_once(gateway: Gateway, peer: Peer) -> None:
    peer.send(CONFIRM, *(publish("", "d", delivery_mode=2) for _ in range(10)))
    assert peer.receive() == [CONFIRMING, acked(10, multiple=True)]
    peer.send(publish("", "d", delivery_mode=2))
    assert peer.receive() == [acked(11)]


def test_confirms_come_in_the_order_of_publishing(gateway: Gateway, peer: Peer) -> None:
    peer.send(CONFIRM).receive()
    peer.send(publish("", "d", delivery_mode=2))
    assert peer.receive_now() == []
    peer.send(publish("", "t"))
    assert peer.receive_now() == []
    gateway.store.commit()
    assert peer.receive_now() == [acked(2, multiple=True)]


def test_confirms_are_counted_by_channel(peer: Peer) -> None:
    peer.send(CONFIRM, publish("", "d"), publish("", "d")).receive()
    peer.send(commands.Channel.Open(), CONFIRM, publish("", "d"), channel=2)
    assert peer.receive()[-1] == acked(1) + " ch=2"


def test_messages_published_before_confirm_select_are_not_counted(peer: Peer) -> None:
    peer.send(publish("", "d"), CONFIRM, publish("", "d"))
    assert peer.receive() == [CONFIRMING, acked(1)]


def test_r120_waiting_messages_are_nacked_when_the_store_fails(gateway: Gateway, peer: Peer) -> None:
    peer.send(CONFIRM).receive()
    peer.send(*(publish("", "d", delivery_mode=2) for _ in range(3)))
    assert peer.receive_now() == []
    gateway.store.fail("the disk died")
    assert [line for line in peer.receive_now() if line.startswith("Basic")] == [nacked(1), nacked(2), nacked(3)]


def test_a_stalled_store_confirms_when_it_recovers(gateway: Gateway, peer: Peer) -> None:
    peer.send(CONFIRM).receive()
    gateway.store.stall("disk full")
    peer.send(publish("", "d", delivery_mode=2))
    assert peer.receive() == ["Connection.Blocked(reason='the store cannot write')"]
    gateway.store.resume()
    assert peer.receive() == ["Connection.Unblocked()", acked(1)]


def test_a_closed_channel_sends_no_confirms(peer: Peer) -> None:
    peer.send(CONFIRM).receive()
    peer.send(publish("", "d", delivery_mode=2), CLOSE_CHANNEL, commands.Channel.Open())
    assert peer.receive() == ["Channel.CloseOk()", "Channel.OpenOk(channel_id='')"]


def test_declare_ok_of_a_durable_queue_waits_for_the_disk(gateway: Gateway, peer: Peer) -> None:
    peer.send(queue("late", durable=True), queue("behind"))
    assert peer.receive_now() == []
    gateway.store.commit()
    assert peer.receive_now() == [declared("late"), declared("behind")]


# ---------------------------------------------------------------- transactions


def test_r115_publishes_are_held_until_commit(gateway: Gateway, peer: Peer) -> None:
    peer.send(TX, publish("", "t", b"1"), publish("", "t", b"2")).receive()
    watcher = gateway.connect()
    assert watcher.send(get("t")).receive() == ["Basic.GetEmpty(cluster_id='')"]
    assert peer.send(commands.Tx.Commit()).receive() == ["Tx.CommitOk()"]
    assert watcher.send(get("t"), get("t")).receive() == [got(1, "t", b"1", left=1), got(2, "t", b"2")]


def test_r115_rollback_drops_publishes_and_restores_unsettled_deliveries(peer: Peer) -> None:
    peer.send(publish("", "t", b"1"), publish("", "t", b"2"), TX, get("t"), get("t")).receive()
    peer.send(ack(1), nack(2), publish("", "t", b"3"), commands.Tx.Rollback(), get("t"))
    assert peer.receive() == ["Tx.RollbackOk()", "Basic.GetEmpty(cluster_id='')"]
    peer.send(ack(2, multiple=True), commands.Tx.Commit(), PROBE)
    assert peer.receive() == ["Tx.CommitOk()", ALIVE]


def test_r115_settlements_are_held_until_commit(peer: Peer) -> None:
    peer.send(publish("", "t", b"1"), TX, get("t"), nack(1)).receive()
    assert peer.send(get("t")).receive() == ["Basic.GetEmpty(cluster_id='')"]
    peer.send(commands.Tx.Commit(), get("t"))
    assert peer.receive() == ["Tx.CommitOk()", got(2, "t", b"1", redelivered=True)]


def test_r116_commit_ok_waits_for_the_disk(gateway: Gateway, peer: Peer) -> None:
    peer.send(TX).receive()
    peer.send(publish("", "d", delivery_mode=2), commands.Tx.Commit())
    assert peer.receive_now() == []
    gateway.store.commit()
    assert peer.receive_now() == ["Tx.CommitOk()"]


def test_r116_a_commit_is_one_step_of_the_store(gateway: Gateway, peer: Peer) -> None:
    peer.send(TX, *(publish("", "d", delivery_mode=2) for _ in range(3)), commands.Tx.Commit())
    before = len([change for change in gateway.store.recover() if type(change).__name__ == "Enqueued"])
    gateway.end_turn()
    gateway.store.commit()
    after = [change for change in gateway.store.recover() if type(change).__name__ == "Enqueued"]
    assert (before, len(after)) == (0, 3)


def test_a_channel_that_closes_in_a_transaction_rolls_it_back(gateway: Gateway, peer: Peer) -> None:
    peer.send(publish("", "t", b"1"), TX, get("t"), ack(1), publish("", "t", b"2"), CLOSE_CHANNEL).receive()
    watcher = gateway.connect()
    assert watcher.send(get("t"), get("t")).receive() == [
        got(1, "t", b"1", redelivered=True),
        "Basic.GetEmpty(cluster_id='')",
    ]


# ---------------------------------------------------------------- alarms

LOW = "Connection.Blocked(reason='low on memory')"


def test_a_publisher_is_notified_of_an_alarm_and_of_its_end(gateway: Gateway, peer: Peer) -> None:
    peer.send(publish("", "d")).receive()
    gateway.broker.alarms.set(Resource.MEMORY, True)
    assert peer.receive() == [LOW]
    gateway.broker.alarms.set(Resource.MEMORY, False)
    assert peer.receive() == ["Connection.Unblocked()"]


def test_a_client_is_notified_of_an_alarm_at_its_first_publish(gateway: Gateway, peer: Peer) -> None:
    gateway.broker.alarms.set(Resource.DISK, True)
    assert peer.send(PROBE).receive() == [ALIVE]
    assert peer.send(publish("", "d")).receive() == ["Connection.Blocked(reason='low on disk')"]


def test_two_alarms_are_one_block(gateway: Gateway, peer: Peer) -> None:
    peer.send(publish("", "d")).receive()
    alarms = gateway.broker.alarms
    alarms.set(Resource.MEMORY, True)
    alarms.set(Resource.DISK, True)
    alarms.set(Resource.MEMORY, False)
    assert peer.receive() == [LOW]
    alarms.set(Resource.DISK, False)
    assert peer.receive() == ["Connection.Unblocked()"]


def test_a_client_without_the_capability_is_not_notified(gateway: Gateway) -> None:
    capabilities = {name: True for name in ALL_CAPABILITIES if name != "connection.blocked"}
    peer = gateway.connect(capabilities=capabilities)
    peer.send(publish("", "d")).receive()
    gateway.broker.alarms.set(Resource.MEMORY, True)
    gateway.broker.alarms.set(Resource.MEMORY, False)
    assert peer.receive() == []


def test_consumers_are_served_during_an_alarm(gateway: Gateway, peer: Peer) -> None:
    peer.send(publish("", "t")).receive()
    gateway.broker.alarms.set(Resource.MEMORY, True)
    consumer = gateway.connect()
    assert consumer.send(consume("t")).receive()[1:] == [delivered("c", 1, "t")]


# ---------------------------------------------------------------- deleted exchanges


def test_a_publish_to_a_deleted_exchange_is_refused(gateway: Gateway, peer: Peer) -> None:
    peer.send(exchange("gone", "fanout"), publish("gone", "")).receive()
    gateway.vhost.delete_exchange("gone")
    assert peer.send(publish("gone", "")).receive() == [
        channel_close("NOT_FOUND - no exchange 'gone' in vhost '/'", 60, 40)
    ]


def test_r28_an_auto_delete_exchange_is_deleted_with_its_last_binding(peer: Peer) -> None:
    peer.send(exchange("adx", auto_delete=True), bind("t", "adx", "k"), unbind("t", "adx", "k")).receive()
    assert peer.send(exchange("adx", passive=True)).receive() == [
        channel_close("NOT_FOUND - no exchange 'adx' in vhost '/'", 40, 10)
    ]
