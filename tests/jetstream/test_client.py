"""The client on real servers: several servers, reconnecting, requests, logins, TLS and ordered consumers."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.kernel.errors import ConfigurationError
from gateway_jetstream.client.addresses import ServerAddress, parse_address
from gateway_jetstream.client.backoff import Backoff
from gateway_jetstream.client.client import NatsClient
from gateway_jetstream.client.nkeys import parse_seed
from gateway_jetstream.client.options import ClientOptions, NatsCredentials, NatsTls
from gateway_jetstream.client.tls import tls_context
from gateway_jetstream.codec.frames import Delivered
from gateway_jetstream.errors import (
    CannotConnect,
    Disconnected,
    NatsError,
    NoResponders,
    RequestTimedOut,
    StreamNotFound,
    TooMuch,
    WrongLastSequence,
)
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.ordered_consumer import OrderedConsumer
from gateway_jetstream.jetstream.publishing import EXPECTED_SEQUENCE, JetStreamPublisher
from gateway_jetstream.jetstream.pull_consumer import PullConsumer
from gateway_jetstream.jetstream.push_consumer import PushConsumer
from tests.broker.tls.certificates import Authority
from tests.jetstream.identities import Identities, seed_of
from tests.jetstream.nats_servers import NatsServers, running_servers
from tests.jetstream.places import JetStreamPlace


def test_a_message_reaches_a_subscriber_on_another_server(place: JetStreamPlace) -> None:
    one, other = place.client(only=0), place.client(only=1)
    got: list[Delivered] = []
    subscription = other.subscribe("news.*", got.append)
    ready = [False]

    def arrives() -> bool:
        one.publish("news.x", b"hello")
        return bool(got) or ready[0]

    place.until(arrives)
    assert (got[0].subject, got[0].payload) == ("news.x", b"hello")
    subscription.stop()
    subscription.stop()


def test_what_a_full_socket_did_not_take_comes_first(place: JetStreamPlace) -> None:
    sender, reader = place.client(only=0), place.client(only=0)
    got: list[int] = []
    reader.subscribe("full", lambda message: got.append(int(message.payload[:4])))

    def arrives() -> bool:
        sender.publish("full", b"0000")
        return bool(got)

    place.until(arrives)
    for at in range(1, 61):  # 30 MB, more than any socket takes in one call
        sender.publish("full", b"%04d" % at + bytes(500_000))
    place.loop.turn()
    for at in range(61, 121):
        sender.publish("full", b"%04d" % at)
        place.loop.turn()
    place.until(lambda: got[-1] == 120)
    assert [each for each in got if each] == list(range(1, 121))


def test_errors_say_server_subject_and_code(place: JetStreamPlace) -> None:
    client = place.client()
    with pytest.raises(NoResponders) as unanswered:
        place.loop.run(client.request("empty.subject", b""))
    assert str(unanswered.value) == f"no subscriber answers (server {client.server}, subject empty.subject)"
    client.subscribe("silent", lambda message: None)
    with pytest.raises(RequestTimedOut, match=r"no answer within 0\.3 s \(server nats://.*, subject silent\)"):
        place.loop.run(client.request("silent", b"", timeout_s=0.3))
    with pytest.raises(StreamNotFound) as missing:
        place.run(JetStreamApi(client).stream("nothing"))
    subject = "$JS.API.STREAM.INFO.nothing"
    assert str(missing.value) == f"stream not found (server {client.server}, subject {subject}, code 10059)"
    with pytest.raises(TooMuch, match="the server takes 1048576"):
        client.publish("a", bytes(2_000_000))


def test_a_refused_append_has_an_exception_of_its_own(place: JetStreamPlace) -> None:
    client = place.client()
    api, publish = JetStreamApi(client), JetStreamPublisher(client)
    config = {"name": "errors", "subjects": ["errors.>"], "num_replicas": 3}
    place.run(api.create_stream(config))
    assert place.run(publish("errors.a", b"", {EXPECTED_SEQUENCE: "0"}, 30.0)).sequence == 1
    with pytest.raises(WrongLastSequence) as refused:
        place.run(publish("errors.a", b"", {EXPECTED_SEQUENCE: "0"}, 30.0))
    assert refused.value.code == 10071
    assert place.run(api.update_stream({**config, "max_msgs": 10})).config["max_msgs"] == 10
    assert place.run(api.purge("errors")) == 1
    place.run(api.delete_stream("errors"))


def test_after_a_kill_the_client_uses_another_server_and_keeps_its_subscriptions(
    place: JetStreamPlace, servers: NatsServers
) -> None:
    client, other = place.client(), place.client(only=2)
    if client.server == servers.servers[2].url:  # that of the other client
        client.reconnect("to begin")
    got: list[bytes] = []
    client.subscribe("kept", lambda message: got.append(message.payload))
    place.until(lambda: client.is_open and client.server != servers.servers[2].url)
    victim = next(server for server in servers.servers if server.url == client.server)
    waiting = client.request("kept", b"without an answer", timeout_s=30)
    victim.kill()
    with pytest.raises(Disconnected):
        place.loop.run(waiting)
    assert not client.is_open
    with pytest.raises(Disconnected, match="no connection to NATS: nats://"):
        client.publish("kept", b"")
    place.until(lambda: client.is_open)
    assert client.server != victim.url

    def arrives() -> bool:
        other.publish("kept", b"again")
        return b"again" in got

    place.until(arrives)
    victim.start()
    servers.wait_until_ready()


@pytest.mark.parametrize("kind", [PushConsumer, PullConsumer])
def test_an_ordered_consumer_goes_on_after_gaps_without_doubles(
    place: JetStreamPlace, servers: NatsServers, kind: type[OrderedConsumer]
) -> None:
    client, reader = place.client(), place.client()
    api, publish = JetStreamApi(client), JetStreamPublisher(client)
    place.run(api.create_stream({"name": kind.__name__, "subjects": [f"{kind.__name__}.>"], "num_replicas": 3}))
    got: list[int] = []
    consumer = kind(
        JetStreamApi(reader),
        place.loop.reactor,
        kind.__name__,
        [f"{kind.__name__}.*"],
        lambda message: got.append(message.sequence),
        start={"deliver_policy": "all"},
    )
    for at in range(1, 91):
        assert place.run(publish(f"{kind.__name__}.a", b"%d" % at, {}, 30.0)).sequence == at
        if at == 30:
            place.until(lambda: len(got) == 30)
            reader.reconnect("a lost connection")
        if at == 60:
            place.until(lambda: len(got) == 60)
            drop_one(reader)
    place.until(lambda: len(got) >= 90)
    consumer.stop()
    assert got == list(range(1, 91))
    assert consumer.restarts >= 2, "no gap was noticed"


def test_a_publish_that_is_not_sent_is_reported_once(place: JetStreamPlace) -> None:
    options = ClientOptions([parse_address(place.servers.urls[0])], most_output=1_000)
    client = NatsClient(place.loop.reactor, options)
    place.clients.append(client)
    client.start()
    place.run(client.opened(10))
    told: list[object] = []
    JetStreamPublisher(client).send("ordered.a", bytes(10_000), {}, 0.2, told.append)
    JetStreamPublisher(client).send("ordered.a", b"", {"": "x"}, 0.2, told.append)
    is_late: list[bool] = []
    place.clock.call_later(0.6, lambda: is_late.append(True))
    place.until(lambda: bool(is_late))
    assert [type(each) for each in told] == [TooMuch, NatsError]


def drop_one(client: NatsClient) -> None:
    """Lose the next message of a client, as a network does."""
    deliver = client.connection_delivered

    def lose(message: Delivered) -> None:
        if message.reply.startswith("$JS.ACK."):
            client.connection_delivered = deliver  # type: ignore[method-assign]
        else:
            deliver(message)

    client.connection_delivered = lose  # type: ignore[method-assign]


def test_too_much_output_is_refused_and_not_kept(place: JetStreamPlace) -> None:
    options = ClientOptions([parse_address(place.servers.urls[0])], most_output=100_000, most_requests=3)
    client = NatsClient(place.loop.reactor, options)
    place.clients.append(client)
    client.start()
    place.run(client.opened(10))
    for _ in range(9):
        client.publish("a", bytes(10_000))
    with pytest.raises(TooMuch, match="more than 100000 bytes wait"):
        client.publish("a", bytes(10_000))
    place.loop.turn()
    client.publish("a", bytes(10_000))
    client.subscribe("silent", lambda message: None)
    answers = [client.request("silent", b"") for _ in range(3)]
    with pytest.raises(TooMuch, match="more than 3 requests wait"):
        client.request("silent", b"")
    client.stop()
    for answer in answers:
        with pytest.raises(Disconnected):
            place.loop.run(answer)


def test_backoff_rises_to_its_limit_with_jitter() -> None:
    low, high = Backoff(0.1, 2.0, lambda: 0.0), Backoff(0.1, 2.0, lambda: 1.0)
    assert [low.next_s() for _ in range(7)] == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    assert [high.next_s() for _ in range(7)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0])
    high.reset()
    assert high.next_s() == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("nats://a:1", ServerAddress("a", 1)),
        ("a", ServerAddress("a")),
        ("tls://u%40x:p@[::1]/", ServerAddress("::1", 4222, True, "u@x", "p")),
    ],
)
def test_addresses_are_parsed(url: str, address: ServerAddress) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize("url", ["http://a", "nats://", "nats://u:secret@a:x", "nats://u:secret@a/path"])
def test_a_bad_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_address(url)
    assert "secret" not in str(refused.value)


def test_logins_by_password_token_and_nkey(tmp_path: Path) -> None:
    seed = seed_of(Ed25519PrivateKey.generate())
    (tmp_path / "seed").write_text(seed + "\n")
    logins = {
        "authorization { user: me, password: pass }": NatsCredentials("me", "pass"),
        "authorization { token: secret }": NatsCredentials(token="secret"),
        f"authorization {{ users: [{{ nkey: {parse_seed(seed).public} }}] }}": NatsCredentials.of_nkey_file(
            tmp_path / "seed"
        ),
    }
    for settings, credentials in logins.items():
        with running_servers(1, settings=settings) as alone:
            place = JetStreamPlace(alone)
            try:
                assert place.client(credentials=credentials).is_open
                stranger = NatsClient(place.loop.reactor, ClientOptions([parse_address(alone.urls[0])]))
                place.clients.append(stranger)
                stranger.start()
                with pytest.raises(CannotConnect, match="Authorization Violation"):
                    place.run(stranger.opened(1.0))
            finally:
                place.close()


def test_tls_with_the_names_of_both_sides(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    certificate, key = authority.sign("server")
    own, own_key = authority.sign("client")
    files = f"cert_file: {certificate}, key_file: {key}, ca_file: {authority.certificate}"
    settings = f"tls {{ {files}, verify: true, timeout: 5 }}"
    good = NatsTls(authority.certificate, own, own_key)
    with running_servers(1, settings=settings) as alone:
        place = JetStreamPlace(alone)
        try:
            client = place.client(tls=good)
            with pytest.raises(NoResponders):
                place.loop.run(client.request("anything", b""))
            for tls in (NatsTls(stranger.certificate, own, own_key), NatsTls(authority.certificate), None):
                refused = NatsClient(place.loop.reactor, ClientOptions([parse_address(alone.urls[0])], tls=tls))
                place.clients.append(refused)
                refused.start()
                with pytest.raises(CannotConnect):
                    place.run(refused.opened(1.0))
                refused.stop()
        finally:
            place.close()


def test_unusable_certificates_are_an_error_of_the_settings(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for options in (NatsTls(empty), NatsTls(tmp_path / "missing"), NatsTls(None, empty)):
        with pytest.raises(ConfigurationError):
            tls_context("a", options)


def test_a_login_by_a_credentials_file(tmp_path: Path) -> None:
    identities = Identities()
    file = tmp_path / "me.creds"
    file.write_text(identities.credentials)
    with running_servers(1, settings=identities.settings) as alone:
        place = JetStreamPlace(alone)
        try:
            assert place.client(credentials=NatsCredentials.of_credentials_file(file)).is_open
            refused = NatsClient(place.loop.reactor, ClientOptions([parse_address(alone.urls[0])]))
            place.clients.append(refused)
            refused.start()
            with pytest.raises(CannotConnect, match="Authorization Violation"):
                place.run(refused.opened(1.0))
        finally:
            place.close()


def test_a_credentials_file_without_its_seed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "me.creds"
    file.write_text(Identities().credentials.partition("-----BEGIN USER")[0])
    with pytest.raises(ConfigurationError, match="one of them is missing"):
        NatsCredentials.of_credentials_file(file)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        NatsCredentials.of_credentials_file(tmp_path / "nothing")


def test_a_damaged_seed_is_refused_without_repeating_it() -> None:
    seed = seed_of(Ed25519PrivateKey.generate())
    for damaged in (seed[:30] + ("A" if seed[30] != "A" else "B") + seed[31:], seed[:20], "nothing", "SO" + seed[2:]):
        with pytest.raises(ConfigurationError) as refused:
            parse_seed(damaged)
        assert damaged not in str(refused.value)
