"""A node refuses an engine that is too old, unsafe or too small, and another cluster's; each in one line."""

from collections.abc import Iterator

import pytest

from gateway.cluster.errors import ClusterMismatch
from gateway_jetstream.ports.admission import ServerUnreachable, require_engine, require_jetstream, require_version
from gateway_jetstream.ports.foundation import metadata_of
from gateway_jetstream.ports.server_checks import decode_checked, remember, require_checked
from tests.jetstream.nats_servers import NatsServers, running_servers
from tests.jetstream.places import JetStreamPlace


@pytest.mark.parametrize("version", ["2.12.8", "2.13.0", "2.15.1", "v3.0.0", "2.16.0-RC.1"])
def test_versions_from_the_oldest_on_are_taken(version: str) -> None:
    assert require_version(version, "nats://a:4222") is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize("version", ["2.12.7", "2.10.27", "2.9.10", "1.99.99"])
def test_older_versions_are_refused_with_both_numbers(version: str) -> None:
    with pytest.raises(ClusterMismatch) as refused:
        require_version(version, "nats://a:4222")
    text = f"nats://a:4222 is nats-server {version}; the oldest version for a cluster is 2.12.8"
    assert str(refused.value) == text


def test_a_server_without_a_version_is_refused() -> None:
    with pytest.raises(ClusterMismatch, match="does not say its version"):
        require_version("", "a")


def test_a_server_without_jetstream_is_refused() -> None:
    with pytest.raises(ClusterMismatch, match="a has no JetStream"):
        require_jetstream({"disabled": True, "config": {}}, "a")


def refusal(place: JetStreamPlace, monitoring: list[str]) -> str:
    with pytest.raises(ClusterMismatch) as refused:
        place.run(require_engine(place.client(), place.loop.reactor, monitoring))
    text = str(refused.value)
    assert "\n" not in text
    return text


def test_three_servers_that_write_before_they_acknowledge_are_taken(place: JetStreamPlace) -> None:
    engine = require_engine(place.client(), place.loop.reactor, place.servers.monitoring)
    servers = place.run(engine)
    assert servers.checked == dict(zip(place.servers.monitoring, ("n1", "n2", "n3"), strict=True))
    assert servers.missing == []


def test_each_server_must_be_known_by_its_monitoring_endpoint(place: JetStreamPlace) -> None:
    assert "endpoints of 2 NATS servers" in refusal(place, place.servers.monitoring[:2])
    unreachable = [place.servers.monitoring[0], "http://127.0.0.1:1", "http://127.0.0.1:2"]
    assert refusal(place, unreachable).startswith("http://127.0.0.1:1/varz cannot be read: ")


def test_a_minority_may_be_missing_if_it_was_checked_once(place: JetStreamPlace) -> None:
    monitoring = [*place.servers.monitoring[:2], "http://127.0.0.1:1"]
    servers = place.run(require_engine(place.client(), place.loop.reactor, monitoring))
    assert [each.url for each in servers.missing] == ["http://127.0.0.1:1"]
    metadata = place.cluster().metadata
    with pytest.raises(ClusterMismatch, match=r"127.0.0.1:1/varz cannot be read: .* it was never checked"):
        place.run(require_checked(metadata, servers.missing))
    place.run(remember(metadata, servers.checked))
    place.run(remember(metadata, {"http://127.0.0.1:1": "n3"}))
    place.run(remember(metadata, servers.checked))
    place.run(require_checked(metadata, servers.missing))


def test_a_cluster_that_does_not_exist_has_checked_no_server(place: JetStreamPlace) -> None:
    metadata = metadata_of(place.client(), place.loop.reactor, "nowhere")
    with pytest.raises(ClusterMismatch, match="the record of the checked servers cannot be read"):
        place.run(require_checked(metadata, [ServerUnreachable("http://127.0.0.1:1", "no answer")]))


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b'{"a": 1}', b"null"])
def test_a_record_that_cannot_be_read_has_checked_no_server(data: bytes) -> None:
    assert decode_checked(data) == {}


def test_another_clusters_name_is_refused(place: JetStreamPlace, servers: NatsServers) -> None:
    place.cluster()
    other = JetStreamPlace(servers, name="production")
    try:
        with pytest.raises(ClusterMismatch) as refused:
            other.cluster()
    finally:
        other.close()
    assert str(refused.value) == "these NATS servers belong to the cluster 'test', not to 'production'"


def test_the_number_of_shards_is_that_of_the_founding(place: JetStreamPlace, servers: NatsServers) -> None:
    shards = place.cluster().layout.shards
    other = JetStreamPlace(servers, shards=shards + 3)
    try:
        assert other.cluster().layout.shards == shards
    finally:
        other.close()


@pytest.fixture(scope="module")
def alone() -> Iterator[NatsServers]:
    """Yield one server that acknowledges before it writes."""
    with running_servers(1, jetstream="sync_interval: 2m") as found:
        yield found


def test_a_server_that_acknowledges_before_it_writes_is_refused(alone: NatsServers) -> None:
    place = JetStreamPlace(alone)
    try:
        text = refusal(place, alone.monitoring * 3)
    finally:
        place.close()
    assert text.startswith(f"{alone.monitoring[0]} acknowledges messages before they are on disk")
    assert "sync_interval: always" in text


def test_a_single_server_is_refused() -> None:
    with running_servers(1) as alone:
        place = JetStreamPlace(alone)
        try:
            text = refusal(place, alone.monitoring * 3)
        finally:
            place.close()
    assert text == f"{alone.monitoring[0]} is in a NATS cluster of 1; at least 3 servers are needed"


def test_messages_that_are_too_small_are_refused() -> None:
    with running_servers(1, settings="max_payload: 64KB") as alone:
        place = JetStreamPlace(alone)
        try:
            text = refusal(place, alone.monitoring * 3)
        finally:
            place.close()
    assert text.endswith("takes messages of up to 65536 bytes; max_payload must be at least 524288")
