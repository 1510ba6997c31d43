"""The number of cells is raised while the cluster is used: what exists stays where it is."""

import pytest

from tests.clusters.accounting import Accounting
from tests.clusters.cells import cell_of, leader_of, spread
from tests.clusters.gateway_cluster import running_cluster
from tests.clusters.links import AmqpLink
from tests.management_client import get, request
from tests.waiting import wait_until


@pytest.mark.timeout(400)
def test_a_used_cluster_gets_a_second_cell_by_a_rolling_restart() -> None:
    with running_cluster() as cluster:
        request(cluster.nodes[0], "PUT", "vhosts/before", {})
        request(cluster.nodes[0], "PUT", "users/alice", {"password": "secret", "tags": ""})
        with AmqpLink(cluster.leader().addresses["amqp"], vhost="before") as link:
            link.declare("kept")
            link.publish("kept", b"message")
        accounting = Accounting(cluster, "more-cells").start()
        for node in cluster.nodes:
            epoch = node.led_epoch
            assert node.stop() == 0, node.log
            if epoch:
                cluster.leader(after=epoch)
            node._spawn(("cluster.cells=2",))
            node.wait_until_ready()
            accounting.goes_on(20)
        spread(cluster)
        node = cluster.nodes[1]
        assert {each["name"]: each["cell"] for each in get(node, "vhosts")} == {"/": 1, "before": 1}
        request(node, "PUT", "vhosts/after", {})
        assert cell_of(cluster, "after") == 2
        request(node, "PUT", "permissions/after/alice", {"configure": ".*", "write": ".*", "read": ".*"})
        assert ("after", "alice") in [(each["vhost"], each["user"]) for each in get(node, "permissions")]
        for each in cluster.nodes:
            with AmqpLink(each.addresses["amqp"], vhost="after") as link:
                link.declare("new")
            with AmqpLink(each.addresses["amqp"], vhost="before") as link:
                assert link.declare("kept") == 1
        accounting.goes_on()
        accounting.finish()
        cluster.kill_all()
        for each in cluster.nodes:  # without the setting: the number does not shrink
            each._spawn(())
        for each in cluster.nodes:
            each.wait_until_ready()
        leader_of(cluster, 1)
        leader_of(cluster, 2)
        wait_until(lambda: cell_of(cluster, "after") == 2, cluster.logs)
