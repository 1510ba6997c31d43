"""The election of a leader: one at a time, soon after the last one died, and never by a clock alone."""

import pytest

from gateway.cluster.leadership import LEASE_KEY, Role
from gateway.cluster.leadership.lease import Lease, decode_lease, encode_lease
from gateway.cluster.leadership.member import rank
from gateway.cluster.leadership.timing import LEASE_S, SILENT_S
from gateway.cluster.metadata import NEVER, Key, MetadataEntry
from gateway.cluster.queue_log import Epoch
from tests.cluster.nodes import Cluster, Node, takes_over
from tests.cluster.scripted_logs import run


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def three_nodes(cluster: Cluster) -> tuple[Node, Node, Node]:
    """Return the leader and two followers, after some seconds."""
    for name in "abc":
        cluster.node(name)
    cluster.advance(3)
    leader = cluster.leader()
    first, second = (node for node in cluster.nodes.values() if node is not leader)
    return leader, first, second


def test_one_of_the_first_nodes_leads_at_once(cluster: Cluster) -> None:
    for name in "abc":
        cluster.node(name)
    assert takes_over(cluster, 1) <= 0.6
    cluster.advance(60)
    leader = cluster.leader()
    assert leader.reports.count("reachable") == 1
    assert sum("elected" in report for node in cluster.nodes.values() for report in node.reports) == 1
    for node in cluster.nodes.values():
        lease = node.leadership.leader
        assert lease is not None
        assert (lease.leader, lease.forwarding) == (leader.name, leader.members.own.forwarding)
        roles = [(each.name, each.role is Role.LEADER) for each in node.members.alive]
        assert roles == [(name, name == leader.name) for name in "abc"]


def test_a_node_alone_leads_at_once_and_again_after_an_ordered_restart(cluster: Cluster) -> None:
    node = cluster.node("a")
    assert takes_over(cluster, 1) <= 0.6
    left: list[str] = []
    node.leadership.resign(lambda: left.append("leadership"))
    cluster.advance(0.1)
    node.leadership.close()
    node.members.leave(lambda: left.append("members"))
    cluster.advance(0.1)
    assert left == ["leadership", "members"]
    node.kill()
    cluster.node("a")
    assert takes_over(cluster, 1) <= 0.6


def test_a_dead_leader_is_followed_within_seven_seconds(cluster: Cluster) -> None:
    leader, *followers = three_nodes(cluster)
    leader.kill()
    cluster.advance(3)
    assert not any(node.leads for node in followers), "a follower leads before the lease is silent"
    assert takes_over(cluster, 4) + 3 <= SILENT_S + 2
    cluster.advance(20)
    assert cluster.leader() in followers
    assert len(cluster.leader().read) > 5


def test_candidates_come_in_the_order_of_their_rank(cluster: Cluster) -> None:
    leader, *followers = three_nodes(cluster)
    claim = leader.leadership.claim
    assert claim is not None
    leader.kill()
    takes_over(cluster, 8)
    ranks = {node.name: rank(node.name, [each.name for each in followers], claim.epoch) for node in followers}
    assert ranks[cluster.leader().name] == 0
    assert sum("elected" in report for node in followers for report in node.reports) == 1


def test_the_next_in_rank_leads_if_the_first_candidate_is_dead_too(cluster: Cluster) -> None:
    leader, *followers = three_nodes(cluster)
    claim = leader.leadership.claim
    assert claim is not None
    names = [each.name for each in followers]
    first = next(node for node in followers if rank(node.name, names, claim.epoch) == 0)
    cluster.advance(1.3)
    first.kill()
    leader.kill()
    assert takes_over(cluster, 8) <= SILENT_S + 1 + 1
    assert cluster.leader() not in (first, leader)


def test_a_leader_that_was_stopped_for_ten_seconds_loses_once_and_follows(cluster: Cluster) -> None:
    leader, *followers = three_nodes(cluster)
    leader.pause()
    cluster.advance(10)
    new = cluster.leader()
    assert new in followers
    leader.resume()
    assert not leader.leads
    cluster.advance(20)
    assert [report for report in leader.reports if report.startswith(("elected", "lost"))] == [
        leader.reports[1],
        "lost: the lease was not renewed for 4 s",
    ]
    assert cluster.leader() is new
    assert leader.leadership.role is Role.FOLLOWER


def test_a_follower_that_was_stopped_does_not_disturb_the_leader(cluster: Cluster) -> None:
    leader, follower, _ = three_nodes(cluster)
    follower.faults.is_deaf = True  # its timers come before what others wrote
    follower.pause()
    cluster.advance(30)
    follower.resume()
    assert follower.leadership.role is Role.FOLLOWER
    assert follower.leadership.leader is not None
    follower.faults.heal()
    cluster.advance(10)
    assert cluster.leader() is leader
    assert not any("elected" in report for report in follower.reports)


def test_a_follower_whose_watch_is_late_asks_before_it_claims(cluster: Cluster) -> None:
    leader, follower, _ = three_nodes(cluster)
    follower.faults.is_deaf = True
    cluster.advance(60)
    assert cluster.leader() is leader
    assert not any("elected" in report for report in follower.reports)


def test_a_follower_without_the_engine_says_so_and_does_not_disturb_the_leader(cluster: Cluster) -> None:
    leader, follower, _ = three_nodes(cluster)
    follower.faults.is_cut = True
    before = follower.faults.calls
    cluster.advance(60)
    assert follower.contact.reason == "no answer within 2 s; nothing was written"
    assert follower.leadership.leader is None
    assert follower.faults.calls - before < 2 * 60, "the node does not pause between its attempts"
    follower.faults.heal()
    cluster.advance(10)
    assert follower.contact.reason is None
    assert follower.reports[1:] == ["unreachable: no answer within 2 s; nothing was written", "reachable"]
    assert cluster.leader() is leader
    assert follower.leadership.leader is not None


def test_a_leader_without_the_engine_loses_before_another_one_is_elected(cluster: Cluster) -> None:
    leader, *followers = three_nodes(cluster)
    leader.faults.is_cut = True
    lost_s = 0.0
    while leader.leads:
        cluster.advance(0.1)
        lost_s += 0.1
    assert LEASE_S - 1.6 <= lost_s <= LEASE_S + 0.6
    assert leader.leadership.claim is None
    takes_over(cluster, 5)
    assert cluster.leader() in followers
    leader.faults.heal()
    cluster.advance(10)
    assert cluster.leader() in followers


def test_a_call_that_takes_long_counts_as_unreachable_before_it_ends(cluster: Cluster) -> None:
    _, follower, _ = three_nodes(cluster)
    follower.faults.latency_s = 15
    cluster.advance(7)
    assert follower.contact.reason == "the engine has not answered for 4 s"
    follower.faults.latency_s = 0
    cluster.advance(12)
    assert follower.contact.reason is None


def test_a_renewal_that_is_answered_late_does_not_prolong_the_lease(cluster: Cluster) -> None:
    leader, *_ = three_nodes(cluster)
    leader.faults.latency_s = 4.5
    cluster.advance(30)  # checks that two never lead at once
    assert "lost: the lease was not renewed for 4 s" in leader.reports
    assert cluster.leader() is not leader


def test_a_claim_without_an_answer_is_made_again(cluster: Cluster) -> None:
    node = cluster.node("a")
    node.faults.loses_answers = True
    cluster.advance(20)
    assert not any("elected" in report for report in node.reports)
    node.faults.heal()
    takes_over(cluster, 5)


def test_a_claim_whose_answer_was_lost_is_made_again_with_the_epoch_in_the_log(cluster: Cluster) -> None:
    node = cluster.node("a")
    run(cluster.logs.claim(node.leadership.log, "a", Epoch(0)))
    assert takes_over(cluster, 5) <= 0.6


def test_a_new_claim_of_another_node_without_a_lease_is_respected_for_five_seconds(cluster: Cluster) -> None:
    node = cluster.node("a")
    run(cluster.logs.claim(node.leadership.log, "other", Epoch(0)))
    assert SILENT_S <= takes_over(cluster, 10) <= SILENT_S + 2


def test_of_two_candidates_at_the_same_instant_one_leads(cluster: Cluster) -> None:
    one, two = cluster.node("a"), cluster.node("b")
    one.faults.latency_s = two.faults.latency_s = 0.2  # so that both read before one of them claims
    cluster.advance(10)
    assert sorted([one.leads, two.leads]) == [False, True]
    assert sum("elected" in report for node in (one, two) for report in node.reports) == 1


def test_a_candidate_that_learns_of_a_new_leader_while_it_asks_does_not_claim(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, follower, other = three_nodes(cluster)
    leader.kill()
    other.kill()
    follower.faults.latency_s = 1.0
    read = cluster.metadata.get

    def lead() -> None:
        claim = run(cluster.logs.claim(leader.leadership.log, other.name, Epoch(1)))
        lease, entry = Lease(other.name, "x", claim.epoch, ("other.example", 1)), run(read(LEASE_KEY))
        assert entry is not None
        run(cluster.metadata.put(LEASE_KEY, encode_lease(lease), entry.revision))

    async def read_before_the_other_leads(key: Key) -> MetadataEntry | None:
        if key == LEASE_KEY:
            monkeypatch.setattr(cluster.metadata, "get", read)
            cluster.clock.call_later(0.5, lead)
        return await read(key)

    monkeypatch.setattr(cluster.metadata, "get", read_before_the_other_leads)
    while follower.leadership.leader is None or follower.leadership.leader.leader != other.name:
        cluster.advance(0.1)
    cluster.advance(4.5)
    assert not follower.leads, "a candidate claimed the log of a leader that it knew of"
    assert not any("elected" in report for report in follower.reports)


def test_after_a_resignation_a_follower_leads_at_once(cluster: Cluster) -> None:
    leader, *followers = three_nodes(cluster)
    done: list[str] = []
    leader.leadership.resign(lambda: done.append("resigned"))
    assert not leader.leads
    assert leader.reports[-1] == "lost: this node resigned"
    assert takes_over(cluster, 2) <= 0.6
    assert done == ["resigned"]
    assert cluster.leader() in followers
    cluster.advance(20)
    for node in followers:
        node.kill()
    cluster.advance(20)
    assert not leader.leads, "a node that resigned was elected again"
    leader.leadership.stand()
    takes_over(cluster, 2)
    assert cluster.leader() is leader


def test_a_resignation_during_a_renewal_is_carried_out_after_it(cluster: Cluster) -> None:
    leader, *followers = three_nodes(cluster)
    leader.faults.latency_s = 0.4
    cluster.advance(1.2)
    leader.leadership.resign()
    assert takes_over(cluster, 3) <= 1.5
    assert cluster.leader() in followers


def test_a_follower_resigns_at_once(cluster: Cluster) -> None:
    leader, follower, other = three_nodes(cluster)
    done: list[str] = []
    follower.leadership.resign(lambda: done.append("resigned"))
    assert done == ["resigned"]
    cluster.advance(1)
    assert [each.is_eligible for each in other.members.alive if each.name == follower.name] == [False]
    leader.kill()
    takes_over(cluster, 8)
    assert cluster.leader() is other


def test_a_deleted_lease_is_a_vacant_one(cluster: Cluster) -> None:
    leader, *followers = three_nodes(cluster)
    leader.kill()
    entry = run(cluster.metadata.get(LEASE_KEY))
    assert entry is not None
    run(cluster.metadata.delete(LEASE_KEY, entry.revision))
    assert takes_over(cluster, 3) <= 1.2
    assert cluster.leader() in followers


def test_a_lease_of_a_higher_epoch_ends_a_leadership_and_is_not_overwritten(cluster: Cluster) -> None:
    leader, *_ = three_nodes(cluster)
    leader.faults.is_deaf = True
    entry = run(cluster.metadata.get(LEASE_KEY))
    assert entry is not None
    higher = encode_lease(Lease("other", "x", Epoch(1000), ("other.example", 1)))
    written = run(cluster.metadata.put(LEASE_KEY, higher, entry.revision))
    cluster.advance(2.5)
    assert leader.reports[-1] == "lost: other leads since epoch 1000"
    last = run(cluster.metadata.get(LEASE_KEY))
    assert last is not None
    assert last.revision == written


def test_a_lease_that_cannot_be_read_counts_as_one_until_it_is_silent(cluster: Cluster) -> None:
    node = cluster.node("a")
    run(cluster.metadata.put(LEASE_KEY, b'{"leader": 1, "new": true}', NEVER))
    assert SILENT_S <= takes_over(cluster, 10) <= SILENT_S + 2
    assert node.leads


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"leader": "a"}', b"null", b"[" * 100_000])
def test_records_of_any_bytes_are_read(data: bytes) -> None:
    assert decode_lease(data) is None
