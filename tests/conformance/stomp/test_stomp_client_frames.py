"""SEND and its results: receipts, errors, transactions, the end of a connection."""

import pytest

from tests.conformance.stomp.frames import (
    abort,
    begin,
    commit,
    connect,
    disconnect,
    frame,
    send,
    subscribe,
    unsubscribe,
)
from tests.conformance.stomp.tables import CLOSED, Row, error, rows, states
from tests.protocols.stomp.dialogue import Gateway

HEARD = "MESSAGE s /queue/q 'hi'"
CANNOT_BE_SENT = "SEND: a SEND that cannot be processed: ERROR, then close"
NOT_OUT_OF_ORDER = "Client Frames: an unknown frame may be answered by ERROR, then close"
BEGIN_NAMED = "BEGIN: transaction is required"
COMMIT_NAMED = "COMMIT: transaction is required, and one in progress"
ABORT_NAMED = "ABORT: transaction is required, and one in progress"
NAMED_APART = "BEGIN: different transactions have different identifiers"
FAREWELL = "DISCONNECT: its RECEIPT confirms all earlier frames"
AFTERWARDS = "DISCONNECT: no frame follows it"

SENDING: list[Row] = [
    *rows("SEND: destination is required", "none", frame("SEND", "receipt:r", body=b"hi"),
          *error("Missing destination", "r")),
    *rows("SEND: destination is required", "an empty one", send("", "receipt:r"), *error("Invalid destination", "r")),
    *rows("SEND: the user's headers are passed through in MESSAGE", "two of them",
          subscribe("/queue/q") + send("/queue/q", "colour:blue", "x-size:7"), f"{HEARD} colour=blue x-size=7"),
    *rows("SEND: the user's headers are passed through in MESSAGE", "properties of AMQP",
          subscribe("/queue/q") + send("/queue/q", "correlation-id:c", "type:t", "priority:3", "persistent:true"),
          f"{HEARD} correlation-id=c type=t priority=3 persistent=true"),
    *rows(CANNOT_BE_SENT, "no such exchange", send("/exchange/nowhere/k", "receipt:r"), *error("not_found", "r")),
    *rows(CANNOT_BE_SENT, "an unknown kind", send("/nonsense/q", "receipt:r"), *error("Unknown destination", "r")),
    *rows(CANNOT_BE_SENT, "a temporary queue", send("/temp-queue/q", "receipt:r"), *error("Invalid destination", "r")),
    *rows(CANNOT_BE_SENT, "a header reserved for the server", send("/queue/q", "message-id:1", "receipt:r"),
          *error("Invalid header", "r")),
    *rows(CANNOT_BE_SENT, "an invalid priority", send("/queue/q", "priority:high", "receipt:r"),
          *error("precondition_failed", "r")),
    *rows(CANNOT_BE_SENT, "frames after the error are ignored", send("/nonsense/q") + send("/queue/q", "receipt:r"),
          *error("Unknown destination")),
    *rows(NOT_OUT_OF_ORDER, "a word", frame("PUBLISH", "receipt:r"), *error("Bad command", "r")),
    *rows(NOT_OUT_OF_ORDER, "a frame of servers", frame("MESSAGE", "receipt:r"), *error("Bad command", "r")),
    *rows(BEGIN_NAMED, "none", frame("BEGIN", "receipt:r"), *error("Missing transaction", "r")),
    *rows(COMMIT_NAMED, "none", frame("COMMIT", "receipt:r"), *error("Missing transaction", "r")),
    *rows(COMMIT_NAMED, "one that was not begun", commit("t", "receipt:r"), *error("Bad transaction", "r")),
    *rows(COMMIT_NAMED, "one that was committed", begin("t") + commit("t") + commit("t", "receipt:r"),
          *error("Bad transaction", "r")),
    *rows(ABORT_NAMED, "none", frame("ABORT", "receipt:r"), *error("Missing transaction", "r")),
    *rows(ABORT_NAMED, "one that was not begun", abort("t", "receipt:r"), *error("Bad transaction", "r")),
    *rows(NAMED_APART, "one that is in progress", begin("t") + begin("t", "receipt:r"), *error("Bad transaction", "r")),
    *rows(NAMED_APART, "one that ended", begin("t") + abort("t") + begin("t", "receipt:r"), "RECEIPT r"),
    *rows("SEND: transaction makes it transactional", "one that was not begun",
          send("/queue/q", "transaction:t", "receipt:r"), *error("Bad transaction", "r")),
    *rows(FAREWELL, "with a receipt", disconnect("receipt:r"), "RECEIPT r", CLOSED),
    *rows(FAREWELL, "without", disconnect(), CLOSED),
    *rows(FAREWELL, "behind others that ask for one",
          send("/queue/q", "receipt:a", "persistent:true") + disconnect("receipt:b"), "RECEIPT a", "RECEIPT b", CLOSED),
    *rows(AFTERWARDS, "one does", disconnect("receipt:r") + send("/queue/q", "receipt:s"), "RECEIPT r", CLOSED),
    *rows("RECEIPT: receipt-id is the receipt, and there is no body", "any text",
          send("/queue/q", "receipt:message 12345"), "RECEIPT message 12345"),
    *rows("RECEIPT: it is sent when the frame was processed", "for a queue that does not exist yet",
          send("/amq/queue/nowhere", "receipt:r"), "RECEIPT r"),
    *rows("RECEIPT: all frames before it were received", "in order",
          send("/queue/q", "receipt:1") + send("/queue/q") + send("/queue/q", "receipt:2"), "RECEIPT 1", "RECEIPT 2"),
    *rows("ERROR: the connection is closed after it", "nothing is sent afterwards",
          frame("NONSENSE") + subscribe("/queue/q") + send("/queue/q"), *error("Bad command")),
    *rows("ERROR: receipt-id identifies the frame at fault", "after a valid frame",
          send("/queue/q", "receipt:1") + frame("NONSENSE", "receipt:2"), *error("Bad command", "2"), versions="1.1"),
    *rows("ERROR: receipt-id identifies the frame at fault", "no receipt was asked for",
          frame("NONSENSE"), *error("Bad command"), versions="1.2"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), SENDING)
def test_a_send_is_answered(gateway: Gateway, version: str, sent: bytes, received: list[str]) -> None:
    assert gateway.client(version).request(sent) == received


@states(CANNOT_BE_SENT)
def test_a_send_without_write_permission_is_refused(gateway: Gateway, version: str) -> None:
    gateway.add_user("reader", "secret", may=("", "", ".*"))
    client = gateway.new_client(version)
    client.request(connect(version, login="reader", passcode="secret"))
    assert client.request(send("/topic/t", "receipt:r")) == list(error("access_refused", "r"))


@states(AFTERWARDS)
def test_frames_after_disconnect_are_ignored(gateway: Gateway, version: str) -> None:
    gateway.client(version).request(send("/queue/q"), disconnect(), send("/queue/q"))
    assert gateway.ready("q") == 1


@states("RECEIPT: it is sent when the frame was processed")
def test_a_receipt_waits_until_the_message_is_durable(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    client.machine.receive(send("/queue/q", "persistent:true", "receipt:r"))
    assert client.receive_now() == []
    assert client.request() == ["RECEIPT r"]


@states("RECEIPT: it is sent when the frame was processed")
def test_a_subscription_s_receipt_comes_before_its_messages_or_with_them(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    assert set(client.request(send("/queue/q"), subscribe("/queue/q", "receipt:r"))) == {HEARD, "RECEIPT r"}


@states("ERROR: message is short, the body has the details")
def test_an_error_has_a_short_message_and_a_detailed_body(gateway: Gateway, version: str) -> None:
    failure, _ = gateway.client(version).request_frames(frame("UNSUBSCRIBE", "id:nothing"))
    assert failure.headers["message"] == "No subscription found"
    assert b"'nothing'\" not found" in failure.body


# ---------------------------------------------------------------- transactions


@states("SEND: transaction makes it transactional")
def test_messages_in_a_transaction_wait_for_the_commit(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    assert client.request(subscribe("/queue/q"), begin("t"), send("/queue/q", "transaction:t")) == []
    assert client.request(commit("t", "receipt:r")) == [HEARD, "RECEIPT r"]


@states("ABORT: it rolls back")
def test_an_abort_drops_messages(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    client.request(begin("t"), send("/queue/q", "transaction:t"), abort("t"))
    assert client.request(subscribe("/queue/q", "receipt:r")) == ["RECEIPT r"]


@states("ABORT: it rolls back")
def test_an_abort_drops_acknowledgements(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    client.request(send("/queue/q"), subscribe("/queue/q", "ack:client"), begin("t"))
    client.ack(0, "transaction:t")
    client.request(abort("t"))
    client.lose()
    assert gateway.ready("q") == 1


@states("BEGIN: sends and acknowledgements are atomic")
def test_a_commit_is_stored_completely_or_not_at_all(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    client.request(send("/queue/in", "persistent:true"), subscribe("/queue/in", "ack:client"), begin("t"))
    client.ack(0, "transaction:t")
    client.request(*(send("/queue/out", "transaction:t", "persistent:true") for _ in range(3)))
    client.machine.receive(commit("t", "receipt:r"))
    assert client.receive_now() == []
    before = gateway.crashed()
    assert (len(before.vhost.queue("in")), len(before.vhost.queue("out"))) == (1, 0)
    assert client.request() == ["RECEIPT r"]
    after = gateway.crashed()
    assert (len(after.vhost.queue("in")), len(after.vhost.queue("out"))) == (0, 3)


@states("BEGIN: sends and acknowledgements are atomic")
def test_a_refused_commit_performs_nothing(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    gateway.vhost.declare_exchange("doomed", "fanout")
    client.request(begin("t"), send("/queue/q", "transaction:t"), send("/exchange/doomed/k", "transaction:t"))
    gateway.vhost.delete_exchange("doomed")
    assert client.request(commit("t", "receipt:r")) == list(error("not_found", "r"))
    assert gateway.ready("q") == 0


@states("BEGIN: an uncommitted transaction is aborted at the end")
@pytest.mark.parametrize("end", ["DISCONNECT", "a lost connection"])
def test_an_uncommitted_transaction_is_dropped(gateway: Gateway, version: str, end: str) -> None:
    client = gateway.client(version)
    client.request(
        send("/queue/in"), subscribe("/queue/in", "ack:client"), begin("t"), send("/queue/out", "transaction:t")
    )
    client.ack(0, "transaction:t")
    if end == "DISCONNECT":
        client.request(disconnect())
    client.lose()
    assert (gateway.ready("in"), gateway.ready("out")) == (1, 0)


@states("ACK: transaction makes it part of the transaction")
def test_an_acknowledgement_in_a_transaction_takes_effect_at_the_commit(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    client.request(send("/queue/q"), subscribe("/queue/q", "ack:client"), begin("t"))
    assert client.ack(0, "transaction:t", "receipt:a") == ["RECEIPT a"]
    assert client.request(commit("t"), unsubscribe()) == []
    client.lose()
    assert gateway.ready("q") == 0
