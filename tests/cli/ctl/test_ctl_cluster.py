"""Verbs about a cluster of several nodes, and the same of a node that runs alone."""

import json

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

OVERVIEW = {
    "node": "a",
    "cluster_name": "shop",
    "product_name": "gateway",
    "product_version": "0.2",
    "rabbitmq_version": "3.13",
}
NODES = [
    {"name": "a", "running": True, "applications": [{"name": "gateway", "version": "0.2"}], "mem_alarm": True},
    {"name": "b", "running": True, "applications": [{"name": "gateway", "version": "0.1"}]},
    {"name": "c", "running": False},
]
STATE = {
    "name": "shop", "leader": "a", "epoch": 7, "engine": {"answers": True, "reason": None}, "doubt": None,
    "log": {"append_p50_ms": 1.5, "append_p99_ms": 8.0, "records_since_checkpoint": 3, "bytes_since_checkpoint": 400},
    "rebuild": {"seconds": 0.5, "records": 100},
    "members": [{"name": "a", "copy": None}, {"name": "b", "copy": {"behind_batches": 3, "behind_seconds": 0.25}}],
}  # fmt: skip


@pytest.fixture
def cluster(api: FakeApi) -> FakeApi:
    """An API of three nodes, of which one is not alive."""
    api.answer("GET overview", OVERVIEW)
    api.answer("GET nodes", NODES)
    api.answer("GET nodes/a", NODES[0])
    api.answer("GET cluster", STATE)
    return api


def sections(text: str) -> dict[str, list[str]]:
    """Return the lines of each section by its title."""
    parts = text.split("\n\n")
    return {parts[at].splitlines()[-1]: parts[at + 1].splitlines() for at in range(0, len(parts) - 1, 2)}


def test_the_status_of_a_cluster_has_its_nodes_and_its_leader(cluster: FakeApi, ctl: Ctl) -> None:
    found = sections(ctl("cluster_status", "-q").out)
    assert found["Leader"] == ["a, epoch 7"]
    assert found["Disk Nodes"] == ["a", "b", "c"]
    assert found["Running Nodes"] == ["a", "b"]
    assert found["Versions"] == ["a: gateway 0.2", "b: gateway 0.1", "c: gateway 0.2"]
    assert found["Engine"][:2] == ["answers", "Appends (ms): p50 1.5, p99 8.0"]
    assert found["Copies of followers"] == ["Node: b, 0.25 s, 3 batches behind"]
    assert found["Alarms"] == ["memory alarm on node a"]
    assert "Doubt" not in found


def test_the_status_says_why_a_leader_is_in_doubt(cluster: FakeApi, ctl: Ctl) -> None:
    reason = "no answer for 4 s"
    cluster.answer("GET cluster", {**STATE, "engine": {"answers": False, "reason": reason}, "doubt": "the engine ..."})
    found = sections(ctl("cluster_status", "-q").out)
    assert found["Engine"][0] == f"does not answer: {reason}"
    assert found["Doubt"] == ["the engine ..."]


def test_the_status_as_json_has_the_fields_of_rabbitmqctl_and_the_state(cluster: FakeApi, ctl: Ctl) -> None:
    found = json.loads(ctl("cluster_status", "--formatter=json").out)
    assert (found["disk_nodes"], found["running_nodes"], found["leader"]) == (["a", "b", "c"], ["a", "b"], "a")
    assert found["cluster"] == STATE
    assert set(found["versions"]) == {"a", "b", "c"}


def test_the_status_of_a_node_that_runs_alone_is_as_before(api: FakeApi, ctl: Ctl) -> None:
    api.answer("GET overview", OVERVIEW)
    api.answer("GET nodes", NODES[:1])
    assert list(sections(ctl("cluster_status", "-q").out)) == [
        "Basics", "Disk Nodes", "Running Nodes", "Versions", "Maintenance status", "Alarms", "Network Partitions"
    ]  # fmt: skip
    found = json.loads(ctl("cluster_status", "--formatter=json").out)
    assert "leader" not in found
    assert "cluster" not in found


def test_nodes_are_waited_for(cluster: FakeApi, ctl: Ctl) -> None:
    assert ctl("await_online_nodes", "2").code == 0
    assert ctl("await_online_nodes", "3", "--timeout", "0.3").code == 75


def test_a_leader_in_doubt_is_not_running(cluster: FakeApi, ctl: Ctl) -> None:
    assert ctl("check_running").code == 0
    cluster.answer("GET nodes/a", {**NODES[0], "doubt": "the lease ends in 0.9 s"})
    result = ctl("check_running", "-q")
    assert (result.code, result.err) == (
        69,
        "Error: the broker on node a cannot be relied on: the lease ends in 0.9 s\n",
    )


def test_the_members_of_a_quorum_queue_are_the_nodes(cluster: FakeApi, ctl: Ctl) -> None:
    cluster.answer("GET queues/%2F/q", {"type": "quorum"})
    replicas = [{"Node Name": "a", "Raft State": "leader"}, {"Node Name": "b", "Raft State": "follower"}]
    cluster.answer("GET queues/quorum/%2F/q/status", replicas)
    found = json.loads(ctl("quorum_status", "q", "--formatter=json").out)
    assert [(each["Node Name"], each["Raft State"]) for each in found] == [("a", "leader"), ("b", "follower")]
    assert ctl("add_member", "q", "b").code == 0
    assert ctl("add_member", "q", "c").code == 69
    assert ctl("delete_member", "q", "b").err == "Error: a queue is on all nodes of the cluster\n"


def test_a_node_of_a_cluster_is_critical_if_no_other_one_is_alive(cluster: FakeApi, ctl: Ctl) -> None:
    check = "GET health/checks/node-is-quorum-critical"
    cluster.answer(check, {"status": "ok"})
    assert (
        ctl("check_if_node_is_quorum_critical", "-q").out == "Node a is not critical for quorum of any quorum queues\n"
    )
    cluster.answer(check, {"status": "ok", "reason": "single node cluster"})
    assert "the only one" in ctl("check_if_node_is_quorum_critical", "-q").out
    cluster.answer(check, {"status": "failed", "reason": "no other node of the cluster is alive"}, 503)
    assert ctl("check_if_node_is_quorum_critical", "-q").code == 69


def test_a_node_of_a_cluster_is_drained_and_revived_by_its_name(cluster: FakeApi, ctl: Ctl) -> None:
    assert ctl("drain").err == "Error: name the node of the cluster to drain, such as: drain a\n"
    assert ctl("revive").err == "Error: name the node of the cluster to revive, such as: revive a\n"
    path = "cluster/nodes/b/maintenance"
    cluster.answer(f"PUT {path}")
    cluster.answer(f"DELETE {path}")
    cluster.answer("GET nodes/b", {**NODES[1], "being_drained": True})
    assert ctl("drain", "b").code == 0
    assert ctl("revive", "b").code == 0
    assert cluster.changes() == [(f"PUT {path}", {}), (f"DELETE {path}", None)]
    cluster.answer("GET nodes/b", NODES[1])
    assert ctl("drain", "b", "--timeout", "0.3").code == 75
    assert ctl("drain", "b", "--no-wait").code == 0


def test_the_leadership_is_transferred(cluster: FakeApi, ctl: Ctl) -> None:
    cluster.answer("PUT cluster/leader")
    assert ctl("transfer_leadership", "b", "--timeout", "0.3").code == 75
    assert ctl("transfer_leadership", "a").code == 0
    assert ctl("transfer_leadership", "--no-wait").code == 0
    assert cluster.changes() == [
        ("PUT cluster/leader", {"node": "b"}),
        ("PUT cluster/leader", {"node": "a"}),
        ("PUT cluster/leader", {}),
    ]


def test_a_dead_node_is_forgotten(cluster: FakeApi, ctl: Ctl) -> None:
    cluster.answer("DELETE cluster/nodes/c")
    assert ctl("forget_cluster_node", "c").code == 0
    assert cluster.changes() == [("DELETE cluster/nodes/c", None)]


def test_a_node_that_runs_alone_has_no_leadership_and_no_other_node(api: FakeApi, ctl: Ctl) -> None:
    api.answer("GET overview", OVERVIEW)
    for verb in ("transfer_leadership", "forget_cluster_node b"):
        assert ctl(*verb.split()).err == "Error: this node runs alone, not in a cluster\n"
    assert ctl("drain", "b").err == "Error: the broker runs alone as a; it has no node b\n"


def test_a_node_that_could_lead_is_waited_for(cluster: FakeApi, ctl: Ctl) -> None:
    for verb in ("await_online_quorum_plus_one", "await_online_synchronized_mirror"):
        cluster.answer("GET whoami", {})
        assert ctl(verb).code == 0
        cluster.answer("GET nodes", [NODES[0], {**NODES[1], "being_drained": True}, NODES[2]])
        assert ctl(verb, "--timeout", "0.3").code == 75
        cluster.answer("GET nodes", NODES)
    assert ctl("post_upgrade").code == 0
    assert cluster.changes() == [], "nothing to rebalance"


@pytest.mark.parametrize("type", ["all", "quorum", "classic", "stream", "queues"])
def test_the_leaders_of_cells_are_spread_for_each_type_of_queues(cluster: FakeApi, ctl: Ctl, type: str) -> None:
    cells = [{"cell": 1, "leader": "a"}, {"cell": 2, "leader": "b"}]
    cluster.answer("GET cluster", {**STATE, "cells": cells})
    cluster.answer("POST rebalance/queues", status=204)
    cluster.answer("GET queues", [{"type": "quorum", "leader": "b"}, {"type": "classic", "leader": "a"}])
    done = ctl("rebalance", type, "--vhost-pattern", ".*")
    assert cluster.changes() == [("POST rebalance/queues", {})]
    assert "leaders of cells, each with queues of all types" in done.out
    assert [line.split("\t")[:2] for line in done.out.splitlines()[-2:]] == [["a", "0"], ["b", "1"]]


@pytest.mark.parametrize("option", ["--vhost-pattern", "--queue-pattern"])
def test_a_part_of_a_cell_cannot_be_moved(cluster: FakeApi, ctl: Ctl, option: str) -> None:
    cluster.answer("GET cluster", {**STATE, "cells": [{"cell": 1, "leader": "a"}]})
    done = ctl("rebalance", "quorum", option, "^orders")
    assert done.err == f"Error: {option} can have no effect: a cell moves with all its queues; leave it out\n"
    assert cluster.changes() == []
