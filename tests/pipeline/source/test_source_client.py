"""The client retries until it is answered, reports refusals, and verifies the broker's certificate."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway_spark import client as module
from gateway_spark.client import Client
from gateway_spark.errors import AccessError, BrokerRefused, Unreachable
from gateway_spark.options import QueueSelection, source_options
from tests.broker.tls.certificates import Authority
from tests.pipeline.fake_broker import FakeBroker, fake_broker

ORDERS = QueueSelection(("orders",))


class Pauses:
    """Time that passes only during pauses."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds

    def clock(self) -> float:
        return self.now_s


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with fake_broker() as broker:
        broker.declare("orders", 5, 50)
        yield broker


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def client(broker: FakeBroker, pauses: Pauses) -> Iterator[Client]:
    address = source_options(broker.options(queue="orders"), is_stream=True).brokers[""]
    client = Client(address, pauses.pause, pauses.clock)
    yield client
    client.close()


def test_streams_by_name(client: Client) -> None:
    partition = client.streams(ORDERS)["orders"]["0"]
    assert (partition.queue, partition.first, partition.next, partition.size_bytes) == ("orders", 5, 50, 4500)


PATTERNS = [
    ("orders", {"orders": 1}),
    ("order", {}),
    (".*", {"orders": 1, "sales": 2}),
    ("sales.*", {"sales": 2}),
    ("sales-.*", {"sales-0": 1, "sales-1": 1}),
    ("sales|sales-0|.*s", {"orders": 1, "sales": 2}),
]


@pytest.mark.parametrize(("pattern", "partitions"), PATTERNS)
def test_a_pattern_matches_whole_names_and_lists_a_partition_once(
    broker: FakeBroker, client: Client, pattern: str, partitions: dict[str, int]
) -> None:
    broker.declare_super("sales", (0, 3), (0, 4))
    found = client.streams(QueueSelection(pattern=pattern))
    assert {queue: len(parts) for queue, parts in found.items()} == partitions


@pytest.mark.parametrize("fault", ["hang up", 503])
def test_a_failed_request_is_retried(broker: FakeBroker, client: Client, pauses: Pauses, fault: str | int) -> None:
    broker.faults.extend([fault] * 4)
    assert client.offset_at("orders", 0) == 5
    assert pauses.pauses == [0.1, 0.2, 0.4, 0.8]


def test_the_pauses_between_retries_are_bounded(broker: FakeBroker, client: Client, pauses: Pauses) -> None:
    broker.faults.extend([503] * 100)
    with pytest.raises(Unreachable):
        client.offset_at("orders", 0)
    assert max(pauses.pauses) <= 3.0
    assert pauses.now_s <= 5.0


@pytest.fixture
def other() -> Iterator[FakeBroker]:
    """Another node of the same cluster."""
    with fake_broker() as broker:
        broker.declare("orders", 5, 50)
        yield broker


@pytest.fixture
def both(broker: FakeBroker, other: FakeBroker, pauses: Pauses) -> Iterator[Client]:
    """A client that knows two nodes."""
    urls = f"http://127.0.0.1:{broker.port},http://127.0.0.1:{other.port}"
    given = {"urls": urls, "retryTimeout": "5s", "queue": "orders"}
    client = Client(source_options(given, is_stream=True).brokers[""], pauses.pause, pauses.clock)
    yield client
    client.close()


@pytest.mark.parametrize("fault", ["hang up", 503])
def test_the_next_node_is_asked_at_once(
    broker: FakeBroker, other: FakeBroker, both: Client, pauses: Pauses, fault: str | int
) -> None:
    broker.faults.append(fault)
    assert both.offset_at("orders", 0) == 5
    assert both.offset_at("orders", 0) == 5
    assert (broker.requests, other.requests, pauses.pauses) == (["GET offset"], ["GET offset"] * 2, [])


def test_there_is_a_pause_when_no_node_answers(
    broker: FakeBroker, other: FakeBroker, both: Client, pauses: Pauses
) -> None:
    broker.faults.extend([503] * 2)
    other.faults.extend(["hang up"] * 2)
    assert both.offset_at("orders", 0) == 5
    assert (len(broker.requests), len(other.requests), pauses.pauses) == (3, 2, [0.1, 0.2])


def test_a_refusal_is_not_asked_of_another_node(broker: FakeBroker, other: FakeBroker, both: Client) -> None:
    broker.faults.append(404)
    with pytest.raises(BrokerRefused):
        both.streams(ORDERS)
    assert other.requests == []


def test_a_port_without_a_listener_is_reported(pauses: Pauses) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    options = {"url": f"http://127.0.0.1:{port}", "retryTimeout": "5s", "queue": "orders"}
    client = Client(source_options(options, is_stream=True).brokers[""], pauses.pause, pauses.clock)
    with pytest.raises(Unreachable, match=f"no answer from http://127.0.0.1:{port} within 5 s .*Connection refused"):
        client.streams(ORDERS)


def test_the_reason_of_a_failure_is_in_the_error(broker: FakeBroker, client: Client) -> None:
    broker.faults.extend([503] * 100)
    with pytest.raises(Unreachable, match=r"\(option 'retryTimeout'\): the broker is not ready: on demand"):
        client.streams(ORDERS)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_login_names_the_user_and_the_virtual_host(broker: FakeBroker, client: Client, status: int) -> None:
    broker.faults.append(status)
    with pytest.raises(AccessError) as refusal:
        client.streams(ORDERS)
    expected = f"http://127.0.0.1:{broker.port} refuses user 'guest' in virtual host '/' ({status}): on demand"
    assert str(refusal.value) == expected


@pytest.mark.parametrize("status", [400, 404, 409, 410, 413, 416, 500])
def test_other_refusals_keep_their_status(broker: FakeBroker, client: Client, status: int) -> None:
    broker.faults.append(status)
    with pytest.raises(BrokerRefused) as refusal:
        client.streams(ORDERS)
    assert (refusal.value.status, str(refusal.value)) == (status, "on demand")


def test_names_are_escaped(broker: FakeBroker, client: Client) -> None:
    client.report("a/b c", {"offsets": {}})
    assert broker.progress == {"a/b c": {"offsets": {}}}


# ---- TLS ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def tls_server(authority: Authority, *, asks_for_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("server"))
    if asks_for_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.certificate)
    return context


def asked_over_tls(broker: FakeBroker, retry_s: str = "200ms", **tls: str) -> int:
    """Request an offset from the broker, and return it."""
    broker.declare("orders", 5, 50)
    options = {f"tls.{name}": value for name, value in tls.items()}
    given = {"url": f"https://127.0.0.1:{broker.port}", "retryTimeout": retry_s, "queue": "orders"} | options
    client = Client(source_options(given, is_stream=True).brokers[""])
    try:
        return client.offset_at("orders", 0)
    finally:
        client.close()


def test_a_certificate_of_the_trusted_authority_is_accepted(authority: Authority) -> None:
    with fake_broker(tls_server(authority)) as broker:
        assert asked_over_tls(broker, ca=str(authority.certificate)) == 5


def test_a_certificate_of_another_authority_is_refused(authority: Authority) -> None:
    with fake_broker(tls_server(authority)) as broker, pytest.raises(Unreachable, match="certificate is not accepted"):
        asked_over_tls(broker)


def test_the_check_of_the_host_name_can_be_disabled(authority: Authority) -> None:
    with fake_broker(tls_server(authority)) as broker:
        assert asked_over_tls(broker, verify="false") == 5


def test_a_peer_that_does_not_answer_to_tls_times_out(monkeypatch: pytest.MonkeyPatch, pauses: Pauses) -> None:
    """The broker's own port does not, without a TLS proxy in front."""
    monkeypatch.setattr(module, "CONNECT_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {"url": f"https://127.0.0.1:{silent.getsockname()[1]}", "retryTimeout": "1s", "queue": "orders"}
        client = Client(source_options(options, is_stream=True).brokers[""], pauses.pause, pauses.clock)
        with pytest.raises(Unreachable, match=r"within 1 s .*timed out"):
            client.streams(ORDERS)


def test_a_client_certificate_is_presented(authority: Authority) -> None:
    certificate, key = authority.sign("client")
    with fake_broker(tls_server(authority, asks_for_certificate=True)) as broker:
        shown = {"certificate": str(certificate), "key": str(key)}
        assert asked_over_tls(broker, ca=str(authority.certificate), **shown) == 5
        with pytest.raises(Unreachable):
            asked_over_tls(broker, ca=str(authority.certificate))
