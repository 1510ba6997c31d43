"""Settings of a cluster that contradict each other: each refusal begins with its key."""

import pytest

from gateway.config.loading import load
from gateway.kernel.errors import ConfigurationError

SERVERS = 'cluster.servers=["nats://a:4222", "nats://b:4222", "nats://c:4222"]'

CONTRADICTIONS = [
    (["cluster.name=shop"], "cluster.name: has no effect without cluster.servers"),
    (["cluster.port=5000"], "cluster.port: has no effect without cluster.servers"),
    ([SERVERS, "storage.engine=memory"], 'storage.engine: must be "lmdb" with cluster.servers'),
    ([SERVERS, "cluster.user=u", "cluster.token=t"], "cluster.token: only one of"),
    ([SERVERS, "cluster.ca=/nowhere"], "cluster.ca: must be a file that can be read"),
    ([SERVERS, f"cluster.certificate={__file__}"], "cluster.key: cluster.certificate and cluster.key belong together"),
]


@pytest.mark.parametrize(("overrides", "error"), CONTRADICTIONS, ids=[error for _, error in CONTRADICTIONS])
def test_a_contradiction_is_refused_by_its_key(overrides: list[str], error: str) -> None:
    with pytest.raises(ConfigurationError, match="^" + error.replace("[", r"\[")):
        load(None, overrides)


def test_servers_alone_make_a_cluster() -> None:
    cluster = load(None, [SERVERS]).cluster
    assert (len(cluster.servers), cluster.name, cluster.port) == (3, "gateway", 25672)


def test_a_server_needs_a_url_of_nats() -> None:
    with pytest.raises(ConfigurationError, match=r"cluster\.servers"):
        load(None, ['cluster.servers=["http://a:4222"]'])


def test_a_command_line_may_separate_urls_by_commas_and_name_the_node_shortly() -> None:
    settings = load(None, ["node=a", "cluster.servers=nats://a:4222,tls://b:4222"])
    assert (settings.node, settings.cluster.servers) == ("a", ["nats://a:4222", "tls://b:4222"])
