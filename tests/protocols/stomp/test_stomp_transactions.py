"""BEGIN, COMMIT and ABORT: a transaction is performed in one step, or not at all."""

import pytest

from gateway_stomp import transactions
from tests.clocks import TickingClock
from tests.protocols.stomp.dialogue import Client, Gateway, frame, receipt
from tests.protocols.stomp.frame_reader import ReceivedFrame
from tests.protocols.stomp.test_stomp_connecting import refusal


def waiting(gateway: Gateway, name: str = "q") -> int:
    queue = gateway.vhost.queue_by_name.get(name)
    return 0 if queue is None else len(queue)


def begun(gateway: Gateway) -> Client:
    client = gateway.client()
    assert client.command("BEGIN", transaction="t") == []
    return client


def delivered(gateway: Gateway, client: Client, count: int) -> list[ReceivedFrame]:
    client.subscribe("/queue/in", ack="client-individual")
    for number in range(count):
        gateway.publish("", "in", b"%d" % number)
    return client.receive_frames()


def test_messages_wait_for_the_commit() -> None:
    gateway = Gateway()
    client = begun(gateway)
    for _ in range(3):
        client.publish("/queue/q", b"hi", {"transaction": "t"})
    assert waiting(gateway) == 0
    assert client.command("COMMIT", transaction="t") == []
    assert waiting(gateway) == 3


def test_an_abort_drops_held_messages() -> None:
    gateway = Gateway()
    client = begun(gateway)
    client.publish("/queue/q", b"hi", {"transaction": "t"})
    assert client.command("ABORT", transaction="t") == []
    assert refusal(client.command("COMMIT", transaction="t")) == "Bad transaction"
    assert waiting(gateway) == 0


def test_the_end_of_the_connection_drops_held_messages() -> None:
    gateway = Gateway()
    client = begun(gateway)
    client.publish("/queue/q", b"hi", {"transaction": "t"})
    client.command("DISCONNECT")
    assert waiting(gateway) == 0


@pytest.mark.parametrize("end", ["ABORT", "DISCONNECT"])
def test_the_messages_of_a_large_dropped_transaction_are_freed_in_slices(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(transactions, "_FREED_AT_ONCE", 2)
    gateway = Gateway(clock=TickingClock())
    client = begun(gateway)
    for _ in range(3):
        client.publish("/queue/q", b"hi", {"transaction": "t"})
    client.io.take(frame(end, {"transaction": "t"}))
    assert len(gateway.fake_clock.background) == 1
    gateway.advance(0)
    assert not len(gateway.fake_clock.background)
    assert waiting(gateway) == 0


def test_acknowledgements_wait_for_the_commit() -> None:
    gateway = Gateway()
    client = begun(gateway)
    (message,) = delivered(gateway, client, 1)
    client.settle("ACK", message, {"transaction": "t"})
    (info,) = client.channels()
    assert (info.acks_uncommitted, gateway.vhost.queue("in").unsettled) == (1, 1)
    client.command("COMMIT", transaction="t")
    assert gateway.vhost.queue("in").unsettled == 0


def test_an_abort_restores_held_acknowledgements() -> None:
    gateway = Gateway()
    client = begun(gateway)
    first, second = delivered(gateway, client, 2)
    client.settle("ACK", first, {"transaction": "t"})
    client.settle("NACK", second, {"transaction": "t", "requeue": "false"})
    client.command("ABORT", transaction="t")
    assert client.settle("ACK", first) == []
    client.lose()
    assert waiting(gateway, "in") == 1


def test_an_abort_restores_acknowledgements_of_an_ended_subscription() -> None:
    gateway = Gateway()
    client = begun(gateway)
    (message,) = delivered(gateway, client, 1)
    client.settle("ACK", message, {"transaction": "t"})
    client.command("UNSUBSCRIBE", id="0")
    client.command("ABORT", transaction="t")
    assert client.settle("ACK", message) == []


def test_an_abort_restores_acknowledgements_when_another_subscription_has_the_id() -> None:
    gateway = Gateway()
    client = begun(gateway)
    (message,) = delivered(gateway, client, 1)
    client.settle("ACK", message, {"transaction": "t"})
    client.command("UNSUBSCRIBE", id="0")
    client.subscribe("/queue/in", ack="client-individual")
    client.command("ABORT", transaction="t")
    assert client.settle("ACK", message) == []


def test_uncommitted_acknowledgements_are_requeued_at_the_end_of_the_connection() -> None:
    gateway = Gateway()
    client = begun(gateway)
    (message,) = delivered(gateway, client, 1)
    client.settle("ACK", message, {"transaction": "t"})
    client.lose()
    assert waiting(gateway, "in") == 1


def test_a_commit_is_one_step_of_the_store() -> None:
    gateway = Gateway()
    client = begun(gateway)
    client.subscribe("/queue/in", ack="client-individual")
    (message,) = client.publish("/queue/in", b"work", {"persistent": "true"})
    client.settle("ACK", message, {"transaction": "t"})
    for number in range(3):
        client.publish(f"/queue/out{number}", b"done", {"persistent": "true", "transaction": "t"})
    gateway.settle()
    before = gateway.broker.journal.lsn
    client.machine.receive(frame("COMMIT", {"transaction": "t", "receipt": "r"}))
    assert client.receive_now() == []
    assert gateway.broker.journal.lsn == before + 1
    assert client.receive_frames() == [receipt("r")]
    after = gateway.crashed()
    assert [waiting(after, f"out{number}") for number in range(3)] == [1, 1, 1]
    assert waiting(after, "in") == 0


def test_a_commit_without_an_answer_is_performed_completely_or_not_at_all() -> None:
    gateway = Gateway()
    client = begun(gateway)
    client.publish("/queue/a", b"", {"persistent": "true", "transaction": "t"})
    client.publish("/queue/b", b"", {"persistent": "true", "transaction": "t"})
    gateway.settle()
    client.machine.receive(frame("COMMIT", {"transaction": "t", "receipt": "r"}))
    assert client.receive_now() == []
    after = gateway.crashed()
    assert (waiting(after, "a"), waiting(after, "b")) == (0, 0)


def test_receipts_of_held_messages_are_sent_with_the_commit() -> None:
    client = begun(Gateway())
    assert client.publish("/queue/q", b"", {"transaction": "t", "receipt": "1"}) == []
    received = client.command("COMMIT", transaction="t", receipt="2")
    assert sorted(each["receipt-id"] for each in received) == ["1", "2"]


def test_a_commit_that_a_queue_refuses_has_no_receipt() -> None:
    client = Gateway().client()
    client.publish("/queue/q", b"1", {"x-max-length": "1", "x-overflow": "reject-publish"})
    client.command("BEGIN", transaction="t")
    client.publish("/queue/q", b"2", {"transaction": "t"})
    assert client.command("COMMIT", transaction="t", receipt="r") == []


def test_an_action_that_is_not_allowed_any_more_prevents_the_whole_commit() -> None:
    gateway = Gateway()
    gateway.add_user("ann", "secret")
    client = gateway.client(login="ann", passcode="secret")
    client.command("BEGIN", transaction="t")
    client.publish("/queue/a", b"", {"transaction": "t"})
    client.publish("/exchange/amq.topic/b", b"", {"transaction": "t"})
    gateway.add_user("ann", "secret", ("", "amq.default", ""))
    assert refusal(client.command("COMMIT", transaction="t", receipt="r")) == "access_refused"
    assert waiting(gateway, "a") == 0


@pytest.mark.parametrize("destination", ["/nowhere/x", "/exchange/none/k", "/temp-queue/x"])
def test_an_invalid_send_in_a_transaction_is_refused_at_once(destination: str) -> None:
    client = begun(Gateway())
    received = client.publish(destination, b"", {"transaction": "t", "receipt": "r"})
    assert refusal(received) in ("Unknown destination", "not_found", "Invalid destination")
    assert received[0]["receipt-id"] == "r"


def test_transactions_are_independent() -> None:
    gateway = Gateway()
    client = gateway.client()
    for name in ("a", "b"):
        client.command("BEGIN", transaction=name)
        client.publish(f"/queue/{name}", b"", {"transaction": name})
    client.command("COMMIT", transaction="b")
    client.command("ABORT", transaction="a")
    assert (waiting(gateway, "a"), waiting(gateway, "b")) == (0, 1)


def test_messages_outside_of_a_transaction_do_not_wait() -> None:
    gateway = Gateway()
    client = begun(gateway)
    client.publish("/queue/q")
    assert waiting(gateway) == 1


@pytest.mark.parametrize("verb", ["BEGIN", "COMMIT", "ABORT"])
def test_a_transaction_requires_a_name(verb: str) -> None:
    assert refusal(Gateway().client().command(verb)) == "Missing transaction"


@pytest.mark.parametrize("verb", ["COMMIT", "ABORT", "SEND", "ACK", "NACK"])
def test_a_transaction_must_be_begun_first(verb: str) -> None:
    received = Gateway().client().command(verb, {"destination": "/queue/q", "id": "1", "transaction": "t"})
    assert refusal(received) == "Bad transaction"


def test_a_transaction_cannot_be_begun_twice() -> None:
    assert refusal(begun(Gateway()).command("BEGIN", transaction="t")) == "Bad transaction"


def test_a_transaction_name_may_be_used_again() -> None:
    client = begun(Gateway())
    client.command("COMMIT", transaction="t")
    assert client.command("BEGIN", transaction="t") == []


@pytest.mark.parametrize(("settings", "limit"), [({}, 16), ({"max_transactions": 3}, 3)])
def test_the_number_of_transactions_is_limited(settings: dict[str, int], limit: int) -> None:
    client = Gateway(**settings).client()
    for number in range(limit):
        assert client.command("BEGIN", transaction=str(number)) == []
    (error, _) = client.command("BEGIN", transaction="more")
    assert error["message"] == "Transaction limit exceeded"
    assert error.body == b"Too many concurrent transactions (limit %d)" % limit


@pytest.mark.parametrize(("settings", "limit"), [({}, 1024), ({"max_transaction_actions": 3}, 3)])
def test_the_number_of_actions_in_a_transaction_is_limited(settings: dict[str, int], limit: int) -> None:
    client = begun(Gateway(**settings))
    send = frame("SEND", {"destination": "/queue/q", "transaction": "t"})
    assert client.request_frames(send * limit) == []
    (error, _) = client.request_frames(send)
    assert error["message"] == "Transaction too large"
    assert error.body == b"Too many actions in transaction (limit %d)" % limit


def test_the_memory_of_all_transactions_is_limited() -> None:
    client = begun(Gateway(max_transaction_size=40_000))
    client.command("BEGIN", transaction="u")
    assert client.request_frames(frame("SEND", {"destination": "/queue/q", "transaction": "t"}, b"x" * 20_000)) == []
    (error, _) = client.request_frames(frame("SEND", {"destination": "/queue/q", "transaction": "u"}, b"x" * 20_000))
    assert error["message"] == "Transaction too large"
    assert error.body == b"Too many bytes in open transactions (limit 40000)"


@pytest.mark.parametrize("verb", ["COMMIT", "ABORT"])
def test_a_finished_transaction_releases_its_memory(verb: str) -> None:
    client = begun(Gateway(max_transaction_size=40_000))
    send = frame("SEND", {"destination": "/queue/q", "transaction": "t"}, b"x" * 30_000)
    for _ in range(3):
        client.request_frames(send)
        assert client.command(verb, transaction="t", receipt="r") == [receipt("r")]
        client.command("BEGIN", transaction="t")


def test_begin_and_abort_have_receipts() -> None:
    client = Gateway().client()
    assert client.command("BEGIN", transaction="t", receipt="1") == [receipt("1")]
    assert client.command("ABORT", transaction="t", receipt="2") == [receipt("2")]
