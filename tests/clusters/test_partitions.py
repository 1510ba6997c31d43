"""The network between servers and nodes is cut: nothing is confirmed without a majority, and nothing diverges."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from paho.mqtt.client import MQTTv5

from gateway.cli.ctl.main import main as gatewayctl
from tests.clusters.accounting import Accounting
from tests.clusters.blocked_clients import BlockedClient
from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster, seconds_until
from tests.clusters.links import AmqpLink
from tests.clusters.network import Network, running_network, ways_between
from tests.clusters.rounds import ROUNDS
from tests.clusters.staying_clients import PikaClients, StayingClients
from tests.clusters.staying_mqtt_clients import PahoClients
from tests.clusters.staying_stomp_clients import StompClients
from tests.clusters.test_lost_majority import TOLD_S, Watcher
from tests.clusters.test_staying_clients import _finish, _wait_for_progress
from tests.waiting import wait_until

#: How long each partition lasts, in seconds: longer than a lease and an election.
CUT_S: Final = 12.0

#: The halves of a flapping link, and how long it flaps, in seconds.
FLAP_S: Final = 1.5
FLAPPING_S: Final = 18.0

#: The delay of each message between a slow leader of the log and the others, and the time until another one leads it.
DELAY_S: Final = 0.05
MOVED_S: Final = 10.0

#: An authorization of guest.
_GUEST: Final = "Basic Z3Vlc3Q6Z3Vlc3Q="

Fault = Callable[[Network, GatewayCluster], None]


@pytest.fixture(scope="module")
def whole() -> Iterator[tuple[Network, GatewayCluster]]:
    """Yield a cluster whose network can be cut."""
    with running_network() as found:
        yield found


@pytest.fixture
def network(whole: tuple[Network, GatewayCluster]) -> Iterator[Network]:
    """Return the network, which is whole before and after a test."""
    assert whole[0].detours() == []
    yield whole[0]
    whole[0].heal()


@pytest.fixture
def parted(whole: tuple[Network, GatewayCluster]) -> GatewayCluster:
    """Return the cluster."""
    return whole[1].start()


def is_ready(node: ClusterNode) -> bool:
    """Whether a node says that it is ready to serve clients."""
    return readiness(node) == (200, "")


def readiness(node: ClusterNode) -> tuple[int, str]:
    """Return the status of the readiness check of a node, and its reason; 0 if there is no answer within 2 s."""
    host, port = node.addresses["management"]
    request = Request(f"http://{host}:{port}/api/health/checks/ready-to-serve-clients")
    request.add_header("Authorization", _GUEST)
    try:
        with urlopen(request, timeout=2) as answer:
            return int(answer.status), ""
    except HTTPError as error:
        return error.code, str(json.load(error)["reason"])
    except OSError:
        return 0, ""


def isolate_the_log_leader(network: Network, cluster: GatewayCluster) -> None:
    """The server that leads the log is alone."""
    network.isolate(cluster.log_leader().name)


def lose_what_the_log_leader_sends(network: Network, cluster: GatewayCluster) -> None:
    """The server that leads the log hears the others, and they do not hear it."""
    name = cluster.log_leader().name
    network.cut(ways_between([name], network.others(name)))


def lose_what_the_leader_sends(network: Network, cluster: GatewayCluster) -> None:
    """The leading node hears the servers, and they do not hear it."""
    name = cluster.leader().name
    network.cut(ways_between([name], network.others(name)))


def lose_what_the_leader_should_hear(network: Network, cluster: GatewayCluster) -> None:
    """The servers hear the leading node, and it does not hear them: its appends are stored without an answer."""
    name = cluster.leader().name
    network.cut(ways_between(network.others(name), [name]))


def flap(network: Network, cluster: GatewayCluster) -> None:
    """The leading node and the server that leads the log are cut off and come back, again and again."""
    names = {cluster.leader().name, cluster.log_leader().name}
    until_s = time.monotonic() + FLAPPING_S
    while time.monotonic() < until_s:
        network.isolate(*names)
        time.sleep(FLAP_S)
        network.heal()
        time.sleep(FLAP_S)


#: With one round, those that differ most; with more, all of them.
FAULTS: Final[tuple[Fault, ...]] = (
    isolate_the_log_leader,
    lose_what_the_leader_should_hear,
    lose_what_the_leader_sends,
    lose_what_the_log_leader_sends,
    flap,
)
TRIED: Final = FAULTS[:2] if ROUNDS == 1 else FAULTS


@pytest.mark.timeout(300 + 240 * ROUNDS * len(TRIED))
def test_no_partition_loses_or_doubles_what_was_confirmed(network: Network, parted: GatewayCluster) -> None:
    accounting = Accounting(parted, "parted").start()
    for _ in range(ROUNDS):
        for fault in TRIED:
            fault(network, parted)
            time.sleep(CUT_S)
            network.heal()
            healed_s = seconds_until(parted.are_copies_equal, lambda: "the copies of the log differ")
            accounting.goes_on()
            print(f"{fault.__name__}: the copies of the log are equal after {healed_s:.1f} s")
    accounting.finish()
    assert all(node.child.poll() is None for node in parted.nodes), "a node has ended"


@pytest.mark.timeout(300 + 240 * ROUNDS)
def test_a_leader_and_its_clients_in_a_minority_confirm_nothing(network: Network, parted: GatewayCluster) -> None:
    accounting = Accounting(parted, "minority").start()
    for at in range(ROUNDS):
        leader, server = parted.leader(), parted.servers.servers[at % 3]
        epoch = leader.led_epoch
        watchers = [Watcher(leader, f"minority-{at}-{number}") for number in range(2)]
        wait_until(lambda leader=leader: is_ready(leader), "the leader is not ready")  # type: ignore[misc]
        network.isolate(leader.name, server.name)
        begin_s = time.monotonic()
        watchers[0].publish()
        unready_s = seconds_until(lambda leader=leader: not is_ready(leader), lambda: "it is still ready")  # type: ignore[misc]
        told_s = watchers[0].seconds_until_told()
        declared_s = watchers[1].seconds_until_declared_or_ended()
        other = parted.leader(after=epoch)
        taken_s = time.monotonic() - begin_s
        assert other is not leader
        accounting.goes_on()
        assert not is_ready(leader), "a node of the minority is ready"
        assert [watcher.confirms for watcher in watchers] == [0, 0]
        assert max(told_s, declared_s, unready_s) <= TOLD_S
        network.heal()
        wait_until(parted.are_copies_equal, "the copies of the log differ", timeout_s=60)
        wait_until(lambda leader=leader: is_ready(leader), "it does not follow", timeout_s=60)  # type: ignore[misc]
        with AmqpLink(other.addresses["amqp"]) as link:
            assert link.take_all(watchers[0].queue) == [], "what the minority took was stored later"
        assert parted.leader() is other, "the new leader did not stay"
        print(f"unready {unready_s:.1f} s, told {told_s:.1f} s, declare {declared_s:.1f} s, led {taken_s:.1f} s")
        for watcher in watchers:
            watcher.link.close()
    accounting.finish()


def check_running(node: ClusterNode) -> int:
    """Return the exit code of ``gatewayctl check_running`` for a node."""
    host, port = node.addresses["management"]
    return gatewayctl(["check_running", "--url", f"http://{host}:{port}"])


@pytest.mark.timeout(300)
def test_clients_of_a_minority_are_blocked_and_go_on_when_the_network_heals(
    network: Network, parted: GatewayCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    leader, follower = parted.leader(), parted.follower()
    with AmqpLink(leader.addresses["amqp"]) as link:
        for queue in ("blocked", "amqp-staying", "stomp-staying"):
            link.declare(queue)
    staying: list[StayingClients] = [
        PikaClients(follower, "amqp-staying"),
        PahoClients(follower, "mqtt/staying", MQTTv5, 2),
        StompClients(follower, "stomp-staying"),
    ]
    for each in staying:
        each.start()
    _wait_for_progress(parted, staying)
    at_leader, at_follower, asking = (BlockedClient(node, "blocked").start() for node in (leader, follower, follower))
    wait_until(lambda: all(each.has_published for each in (at_leader, at_follower, asking)), parted.logs)
    epoch = leader.led_epoch
    network.isolate(leader.name, follower.name, parted.servers.servers[0].name)
    wait_until(lambda: at_leader.events == ["the store cannot write"], parted.logs)
    wait_until(lambda: at_leader.end, parted.logs)
    assert "320" in at_leader.end
    wait_until(lambda: at_follower.events and at_follower.events[-1] != "unblocked", parted.logs)
    asking.ask()
    for node in (leader, follower):
        wait_until(lambda node=node: readiness(node)[0] == 503, parted.logs, timeout_s=TOLD_S)  # type: ignore[misc]
        assert readiness(node)[1].startswith("this node has no majority of the cluster: ")
        assert check_running(node) != 0
        assert "this node has no majority of the cluster: " in capsys.readouterr().err
    other = parted.leader(after=epoch)
    assert other not in (leader, follower)
    assert is_ready(other)
    wait_until(lambda: asking.end, parted.logs, timeout_s=TOLD_S)  # after 15 s, for which all others were held, too
    assert "320" in asking.end
    assert "no node of the cluster leads, and a request was not answered for 15 s" in asking.end
    for each in staying:
        each.check()
    network.heal()
    wait_until(lambda: at_follower.events[-1] == "unblocked", parted.logs, timeout_s=60)
    assert at_follower.end == ""
    _wait_for_progress(parted, staying)
    for each in staying:
        _finish(parted, each)
    for client in (at_leader, at_follower, asking):
        client.close()
    for node in (leader, follower):
        wait_until(lambda node=node: is_ready(node), parted.logs, timeout_s=60)  # type: ignore[misc]
        assert check_running(node) == 0
    assert at_follower.events.count("unblocked") == 1


@pytest.mark.timeout(300 + 240 * ROUNDS)
def test_a_slow_leader_of_the_log_is_replaced_and_a_slow_follower_is_not(
    network: Network, parted: GatewayCluster
) -> None:
    parted.leader().kill()  # one that has asked for another leader of the log pauses before it asks again
    accounting = Accounting(parted, "slow").start()
    slow = parted.log_leader()
    network.slow_down(slow.name, DELAY_S)
    took_s = seconds_until(
        lambda: parted.log_leader() is not slow, lambda: f"{slow.name} still leads\n{parted.logs()}", timeout_s=60
    )
    assert took_s <= MOVED_S
    asked = _requests_for_another_leader(parted)
    assert asked > 0
    accounting.goes_on(200)
    time.sleep(MOVED_S)
    assert _requests_for_another_leader(parted) == asked, "a slow follower was taken for a slow leader"
    network.heal()
    accounting.finish()
    print(f"another server leads after {took_s:.1f} s")


def _requests_for_another_leader(cluster: GatewayCluster) -> int:
    """Return how often nodes asked the engine for another leader of the log; a busy engine may elect one by itself."""
    return sum(node.log.count("its leader is asked to step down") for node in cluster.nodes)
