"""A cluster of several nodes as the API of its leader shows it."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.kernel.errors import NotFound, PreconditionFailed
from gateway.management.cluster_state import ClusterState
from gateway.management.metrics.exposition import TEXT_TYPE
from tests.management.clusters import CLUSTER
from tests.management.console import Console
from tests.management.metrics.scraper import Scraper

#: What rabbitmq_http_client, which rabbitmqadmin 2 uses, requires of a node.
REQUIRED = (
    "name uptime run_queue processors os_pid fd_total sockets_total mem_limit mem_alarm disk_free_limit "
    "disk_free_alarm rates_mode enabled_plugins being_drained mem_used running type"
)


def led(console: Console, state: ClusterState = CLUSTER) -> Console:
    """Return the console of a node that leads a cluster."""
    console.context.cluster = lambda: state
    return console


def test_a_node_that_runs_alone_has_no_cluster(console: Console) -> None:
    assert console.ask("GET", "/cluster").status == 404
    assert [node["name"] for node in console.get("/nodes")] == ["gateway@here"]
    assert "doubt" not in console.get("/nodes/gateway@here")


def test_the_state_of_the_cluster_is_shown(console: Console) -> None:
    state = led(console).get("/cluster")
    assert (state["name"], state["leader"], state["epoch"]) == ("shop", "gateway@here", 7)
    assert [(each["name"], each["alive"], each["role"], each["this_node"]) for each in state["members"]] == [
        ("b", True, "follower", False), ("c", False, None, False), ("gateway@here", True, "leader", True)
    ]  # fmt: skip
    assert state["members"][0]["addresses"] == {"amqp": {"host": "10.0.0.2", "port": 5672}}
    assert state["members"][0]["clients"] == {"resumed": 5, "not_resumed": 1}
    assert state["members"][0]["copy_reads"] == {"answered": 4, "messages": 900}
    assert [each["copy"] for each in state["members"]] == [{"behind_batches": 3, "behind_seconds": 0.25}, None, None]
    assert state["engine"] == {"answers": True, "reason": None, "unchecked": []}
    assert state["doubt"] is None
    assert (state["log"]["append_p99_ms"], state["log"]["bytes_since_checkpoint"]) == (8.0, 40_000)
    assert state["rebuild"] == {"seconds": 0.5, "records": 100, "bytes": 30_000}


def test_the_name_of_the_cluster_is_that_of_the_settings_unless_it_was_set(console: Console) -> None:
    assert led(console).get("/cluster-name") == {"name": "shop"}
    assert console.get("/overview")["cluster_name"] == "shop"
    console.put("/cluster-name", {"name": "other"})
    assert console.get("/overview")["cluster_name"] == "other"


def test_the_state_is_for_monitoring(console: Console) -> None:
    led(console).add_user("plain", "management")
    assert console.ask("GET", "/cluster", user="plain").status == 401


def test_all_nodes_are_listed_with_what_clients_require(console: Console) -> None:
    nodes = led(console).get("/nodes")
    assert [(node["name"], node["running"]) for node in nodes] == [("b", True), ("c", False), ("gateway@here", True)]
    for node in nodes:
        assert [name for name in REQUIRED.split() if name not in node] == []
        assert type(node["os_pid"]) is str
        assert type(node["mem_used"]) is int
    assert nodes[0]["mem_used"] == 5
    assert console.get("/nodes/b?columns=name,type") == {"name": "b", "type": "disc"}
    assert console.get("/nodes/b/memory") == {"memory": "not_available"}
    assert console.get("/nodes/gateway@here/memory")["memory"]["total"]["rss"] > 0
    assert console.ask("GET", "/nodes/d").status == 404


def test_durable_queues_are_on_all_nodes_that_are_alive(console: Console) -> None:
    led(console).put("/queues/%2F/kept", {"durable": True})
    console.put("/queues/%2F/stream", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    console.put("/queues/%2F/passing", {"durable": False})
    queues: dict[str, Any] = {each["name"]: each for each in console.get("/queues")}
    for name in ("kept", "stream"):
        fields = queues[name]
        assert (fields["leader"], fields["members"], fields["online"]) == (
            "gateway@here", ["b", "gateway@here"], ["b", "gateway@here"]
        )  # fmt: skip
    assert "leader" not in queues["passing"]


def test_a_quorum_queue_has_a_replica_on_each_node_that_is_alive(console: Console) -> None:
    led(console).put("/queues/%2F/q", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    replicas = console.get("/queues/quorum/%2F/q/status")
    assert [(each["Node Name"], each["Raft State"]) for each in replicas] == [
        ("gateway@here", "leader"), ("b", "follower")
    ]  # fmt: skip
    refused = {
        node: console.ask("POST", "/queues/quorum/%2F/q/replicas/add", {"node": node}).json["reason"]
        for node in ("b", "c")
    }
    assert refused == {"b": "already_a_member", "c": "node c is not running: the nodes are b, gateway@here"}
    deleted = console.ask("DELETE", "/queues/quorum/%2F/q/replicas/delete", {"node": "b"})
    assert deleted.json["reason"] == "each queue is on all nodes of the cluster"


DOUBTS = [
    (
        replace(CLUSTER, engine_fault="no answer for 4 s"),
        "the engine of the cluster does not answer: no answer for 4 s",
    ),
    (replace(CLUSTER, lease_s=0.9), "the lease ends in 0.9 s, because the engine does not renew it"),
    (replace(CLUSTER, leader="b"), "this node does not lead the cluster"),
]


@pytest.mark.parametrize(("state", "reason"), DOUBTS, ids=["engine", "lease", "deposed"])
def test_a_leader_in_doubt_is_not_ready(console: Console, state: ClusterState, reason: str) -> None:
    checks = ("ready-to-serve-clients", "is-in-service", "below-node-connection-limit")
    for check in checks:
        assert led(console).ask("GET", f"/health/checks/{check}").status == 200
        answer = led(console, state).ask("GET", f"/health/checks/{check}")
        assert answer.result == (503, {"status": "failed", "reason": reason})
    assert console.get("/nodes/gateway@here")["doubt"] == reason
    assert console.ask("GET", "/health/checks/alarms").status == 200


def test_a_node_is_critical_if_no_other_one_is_alive(console: Console) -> None:
    check = "/health/checks/node-is-quorum-critical"
    assert led(console).ask("GET", check).status == 200
    alone = replace(CLUSTER, members=CLUSTER.members[1:])
    assert led(console, alone).ask("GET", check).status == 503


def test_the_metrics_of_a_cluster_are_exported() -> None:
    scraper = Scraper()
    assert not [name for name in scraper.scrape().names if name.startswith("gateway_cluster")]
    led(scraper)
    samples = scraper.scrape()
    assert scraper.answer("/metrics").headers["content-type"] == TEXT_TYPE
    assert samples.one("gateway_cluster_is_leader") == 1
    assert samples.one("gateway_cluster_epoch") == 7
    assert samples.one("gateway_cluster_engine_up") == 1
    assert samples.one("gateway_cluster_members", state="alive") == 2
    assert samples.one("gateway_cluster_members", state="silent") == 1
    assert samples.one("gateway_cluster_append_latency_seconds", quantile="0.99") == 0.008
    assert samples.one("gateway_cluster_copy_behind_batches", member="b") == 3
    assert samples.one("gateway_cluster_clients_resumed_total", member="b") == 5
    assert samples.one("gateway_cluster_clients_not_resumed_total", member="b") == 1
    assert samples.one("gateway_cluster_copy_behind_seconds", member="b") == 0.25
    assert samples.one("gateway_cluster_copy_reads_total", member="b") == 4
    assert samples.one("gateway_cluster_copy_messages_read_total", member="b") == 900
    assert samples.one("gateway_cluster_log_bytes") == 40_000
    assert samples.one("gateway_cluster_rebuild_seconds") == 0.5


class Control:
    """A control that notes what is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def drain(self, name: str) -> None:
        if name == "c":
            raise PreconditionFailed("node c is not running")
        self.asked.append(("drain", name))

    async def revive(self, name: str) -> None:
        self.asked.append(("revive", name))

    async def transfer(self, name: str, cell: int = 1) -> None:
        self.asked.append(("transfer", name if cell == 1 else f"{name} {cell}"))

    async def rebalance(self) -> None:
        self.asked.append(("rebalance", ""))

    async def forget(self, name: str) -> None:
        if name == "d":
            raise NotFound("the cluster has no node d")
        self.asked.append(("forget", name))


def test_the_cluster_is_changed_by_administrators(console: Console) -> None:
    led(console)
    assert console.ask("PUT", "/cluster/leader", {}).status == 404
    control = console.context.cluster_control = Control()
    for method, path, fields in (
        ("PUT", "/cluster/nodes/b/maintenance", {}),
        ("DELETE", "/cluster/nodes/b/maintenance", None),
        ("PUT", "/cluster/leader", {"node": "b"}),
        ("PUT", "/cluster/leader", {}),
        ("PUT", "/cluster/leader", {"node": "b", "cell": 2}),
        ("DELETE", "/cluster/nodes/c", None),
    ):
        assert console.ask(method, path, fields).status == 204
    assert control.asked == [
        ("drain", "b"),
        ("revive", "b"),
        ("transfer", "b"),
        ("transfer", ""),
        ("transfer", "b 2"),
        ("forget", "c"),
    ]
    assert console.ask("PUT", "/cluster/leader", {"cell": "2"}).status == 400
    console.add_user("plain", "monitoring")
    assert console.ask("PUT", "/cluster/leader", {}, user="plain").status == 401


def test_what_has_no_effect_in_a_cluster_is_refused_with_a_reason(console: Console) -> None:
    led(console).context.cluster_control = Control()
    for method, path, fields, status, reason in (
        ("PUT", "/cluster/nodes/c/maintenance", {}, 400, "node c is not running"),
        ("DELETE", "/cluster/nodes/d", None, 404, "the cluster has no node d"),
        ("PUT", "/cluster/leader", {"node": 1}, 400, "node must be the name of a node"),
        ("POST", "/rebalance/queues", {}, 400, "all queues of a cluster are on its leader, gateway@here"),
        ("PUT", "/maintenance", {}, 400, "a node of a cluster is drained and revived by its name"),
        ("DELETE", "/maintenance", None, 400, "a node of a cluster is drained and revived by its name"),
        ("PUT", "/maintenance/listeners", {}, 400, "a node of a cluster is drained and revived by its name"),
    ):
        answer = console.ask(method, path, fields)
        assert answer.status == status
        assert answer.json["reason"].startswith(reason)


def test_a_drained_node_is_shown(console: Console) -> None:
    members = tuple(replace(member, is_drained=member.name != "c") for member in CLUSTER.members)
    led(console, replace(CLUSTER, members=members))
    drained = {node["name"]: node["being_drained"] for node in console.get("/nodes")}
    assert drained == {"b": True, "c": False, "gateway@here": True}
    assert [each["drained"] for each in console.get("/cluster")["members"]] == [True, False, True]
