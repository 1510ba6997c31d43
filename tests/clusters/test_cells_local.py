"""The audit record, traces, jobs of the workbench and health checks of a cluster with two cells."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.clusters.cells import epoch_of, leader_of, led_cells, running_cells, spread
from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.management_client import get, request
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

VHOSTS = ("%2F", "second")


@pytest.fixture(scope="module")
def cluster() -> Iterator[GatewayCluster]:
    with running_cells() as found:
        yield found


def _refused(node: ClusterNode, path: str) -> tuple[int, dict[str, Any]]:
    with pytest.raises(HTTPError) as raised:
        get(node, path)
    return raised.value.code, json.loads(raised.value.read())


def _publish(node: ClusterNode, vhost: str, queue: str, payload: str) -> None:
    request(node, "PUT", f"queues/{vhost}/{queue}", {"durable": True})
    fields = {"properties": {}, "routing_key": queue, "payload": payload, "payload_encoding": "string"}
    request(node, "POST", f"exchanges/{vhost}/amq.default/publish", fields)


def test_the_audit_record_has_the_changes_of_both_cells_in_one_order(cluster: GatewayCluster) -> None:
    node = cluster.nodes[2]
    for vhost in (*VHOSTS, *VHOSTS):
        request(node, "PUT", f"queues/{vhost}/audited", {"durable": True})
        request(node, "DELETE", f"queues/{vhost}/audited")
    found = get(node, "audit?subject=audited&page_size=5")
    assert (found["filtered_count"], found["page_count"], len(found["items"])) == (8, 2, 5)
    entries = found["items"] + get(node, "audit?subject=audited&page_size=5&page=2")["items"]
    assert [each["at_ms"] for each in entries] == sorted((each["at_ms"] for each in entries), reverse=True)
    assert {(each["cell"], each["vhost"]) for each in entries} == {(1, "/"), (2, "second")}
    assert len({each["number"] for each in entries}) == 8
    for entry in entries:
        assert get(node, f"audit/{entry['number']}") == {name: entry[name] for name in entry if name != "cell"}
    assert {each["vhost"] for each in get(node, "audit?subject=audited&cell=2")["items"]} == {"second"}
    status, refusal = _refused(node, "audit?page=6")
    assert (status, "name a cell" in refusal["reason"]) == (400, True)
    assert _refused(node, "audit?cell=3") == (400, {"error": "bad_request", "reason": "the cluster has no cell 3"})


def test_a_job_of_the_workbench_is_found_and_undone_in_its_cell(cluster: GatewayCluster) -> None:
    node = cluster.nodes[2]
    ids = []
    for vhost in VHOSTS:
        _publish(node, vhost, "worked", f"of {vhost}")
        report = request(
            node, "POST", f"workbench/{vhost}/worked/delete", {"filter": {}, "dry_run": False, "wait_s": 20}
        )
        assert (report["done"], report["state"]) == (1, "done"), report
        assert get(node, f"workbench/jobs/{report['id']}")["queue"] == "worked"
        ids.append(report["undo"])
    assert {(each["cell"], each["vhost"]) for each in get(node, "workbench/jobs")} == {(1, "/"), (2, "second")}
    assert {(each["cell"], each["vhost"]) for each in get(node, "workbench/undo")} == {(1, "/"), (2, "second")}
    for vhost, id in zip(VHOSTS, ids, strict=True):
        request(node, "POST", f"workbench/undo/{id}", {"wait_s": 20})
        got = request(node, "POST", f"queues/{vhost}/worked/get", {
            "count": 5, "ackmode": "ack_requeue_false", "encoding": "auto",
        })  # fmt: skip
        assert [each["payload"] for each in got] == [f"of {vhost}"]


def test_traces_in_files_of_both_cells_are_listed_and_read(cluster: GatewayCluster) -> None:
    node = cluster.nodes[2]
    for vhost in VHOSTS:
        name = f"trace-{len(vhost)}"
        request(node, "PUT", f"traces/{vhost}/{name}", {"format": "json", "pattern": "#"})
        _publish(node, vhost, "traced", "x")
    assert {(each["cell"], each["vhost"]) for each in get(node, "traces")} == {(1, "/"), (2, "second")}
    for cell, vhost in enumerate(VHOSTS, 1):
        name = f"trace-{len(vhost)}"
        request(node, "DELETE", f"traces/{vhost}/{name}")
        assert (cell, f"{name}.log") in {(each["cell"], each["name"]) for each in get(node, "trace-files")}
        assert [each["name"] for each in get(node, f"trace-files?cell={cell}")] == [f"{name}.log"]
        request(node, "DELETE", f"trace-files/{name}.log")
    assert get(node, "trace-files") == []


def test_checks_name_the_cell_without_a_leader_and_its_clients_alone_are_turned_away(cluster: GatewayCluster) -> None:
    first, second, third = spread(cluster)
    for check in ("alarms", "virtual-hosts", "ready-to-serve-clients"):
        assert get(third, f"health/checks/{check}") == {"status": "ok"}
    epoch = epoch_of(cluster, 2)
    second.kill()
    reason = "cell 2 of the cluster does not answer: "
    for check in ("alarms", "virtual-hosts", "quorum-queues-without-elected-leaders/all-vhosts/pattern/.*"):
        status, failure = _refused(third, f"health/checks/{check}")
        assert (status, failure["cells"]) == (503, [2]), failure
        assert failure["reason"].startswith(reason)
    ready = get(third, "health/checks/ready-to-serve-clients")
    assert (ready["status"], [each["cell"] for each in ready["failed_cells"]]) == ("ok", [2])
    assert ready["failed_cells"][0]["reason"].startswith(reason)
    assert _refused(third, "health/checks/ready-to-serve-clients?cell=2")[0] == 503
    assert get(third, "health/checks/ready-to-serve-clients?cell=1") == {"status": "ok"}
    assert _refused(third, "health/checks/virtual-hosts?cell=3")[0] == 400
    assert 1 in led_cells(first), first.log
    leader_of(cluster, 2, after=epoch)

    def is_well() -> bool:
        try:
            return get(third, "health/checks/virtual-hosts") == {"status": "ok"}
        except HTTPError:
            return False

    wait_until(is_well, cluster.logs, timeout_s=30, interval_s=0.5)
    assert get(third, "health/checks/ready-to-serve-clients") == {"status": "ok"}
