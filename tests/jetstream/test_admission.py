"""A node refuses an engine that is too old, unsafe or too small, and another cluster's; each in one line."""

from collections.abc import Iterator

import pytest

from gateway.cluster.errors import ClusterMismatch
from gateway_jetstream.ports.admission import require_engine, require_jetstream, require_version
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
    assert place.run(engine) is None  # type: ignore[func-returns-value]


def test_each_server_must_be_known_by_its_monitoring_endpoint(place: JetStreamPlace) -> None:
    assert "endpoints of 2 NATS servers" in refusal(place, place.servers.monitoring[:2])
    unreachable = [*place.servers.monitoring[:2], "http://127.0.0.1:1"]
    assert refusal(place, unreachable).startswith("http://127.0.0.1:1/varz cannot be read: ")


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
