"""The members of a cluster: who is alive, and that each has a name of its own."""

import json

import pytest

from gateway.cluster.leadership.member import Member, Role, decode_member, encode_member, member_key
from gateway.cluster.leadership.timing import SILENT_S
from gateway.cluster.metadata import NEVER
from tests.cluster.nodes import Cluster
from tests.cluster.scripted_logs import run


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def alive(cluster: Cluster, name: str) -> list[str]:
    return [member.name for member in cluster.nodes[name].members.alive]


def test_a_member_is_alive_until_it_is_silent_and_known_until_it_leaves(cluster: Cluster) -> None:
    for name in "abc":
        cluster.node(name)
    cluster.advance(2)
    assert alive(cluster, "a") == ["a", "b", "c"]
    cluster.nodes["b"].kill()
    cluster.advance(3)
    assert alive(cluster, "a") == ["a", "b", "c"]
    cluster.advance(3)
    assert alive(cluster, "a") == ["a", "c"]
    left: list[bool] = []
    cluster.nodes["c"].members.leave(lambda: left.append(True))
    cluster.advance(0.1)
    assert left == [True]
    assert alive(cluster, "a") == ["a"]
    assert [member.name for member in cluster.nodes["a"].members.known] == ["a", "b"]


def test_a_member_that_was_stopped_does_not_think_that_the_others_are_dead(cluster: Cluster) -> None:
    for name in "abc":
        cluster.node(name)
    cluster.advance(2)
    cluster.nodes["a"].faults.is_deaf = True  # its timers come before what others wrote
    cluster.nodes["a"].pause()
    cluster.advance(30)
    cluster.nodes["a"].resume()
    assert alive(cluster, "a") == ["a", "b", "c"]
    cluster.nodes["a"].faults.heal()
    cluster.advance(0)
    assert alive(cluster, "b") == ["b", "c"]
    cluster.advance(2)
    assert alive(cluster, "b") == ["a", "b", "c"]


def test_a_second_live_node_with_a_name_is_refused(cluster: Cluster) -> None:
    first = cluster.node("a")
    cluster.advance(3)
    second = cluster.node("a")
    cluster.nodes["first"] = first
    cluster.advance(30)
    text = "another node at a.example:7000 is named a, and is alive; each node needs its own name"
    assert [str(refusal) for refusal in second.refusals] == [text]
    assert first.refusals == []
    assert first.leads
    assert not second.members.is_joined
    assert not any("elected" in report for report in second.reports)


def test_of_two_nodes_that_start_with_one_name_at_once_one_is_refused(cluster: Cluster) -> None:
    first = cluster.node("a")
    second = cluster.node("a")
    cluster.nodes["first"] = first
    first.faults.latency_s = second.faults.latency_s = 0.2
    cluster.advance(10)
    assert len(first.refusals) + len(second.refusals) == 1
    assert first.members.is_joined is not second.members.is_joined


def test_a_killed_node_comes_back_with_its_name(cluster: Cluster) -> None:
    cluster.node("a")
    cluster.advance(3)
    cluster.nodes["a"].kill()
    again = cluster.node("a")
    cluster.advance(SILENT_S - 0.5)
    assert not again.members.is_joined
    cluster.advance(1.5)
    assert again.members.is_joined
    assert again.refusals == []


def test_a_killed_node_comes_back_at_once_where_its_process_is_known_to_have_ended(cluster: Cluster) -> None:
    former = cluster.node("a")
    cluster.advance(3)
    former.kill()
    cluster.ended.add(former.instance)
    again = cluster.node("a")
    cluster.advance(0.5)
    assert again.members.is_joined
    assert again.refusals == []


def test_a_node_whose_name_was_taken_while_it_was_stopped_is_refused(cluster: Cluster) -> None:
    first = cluster.node("a")
    cluster.advance(3)
    first.pause()
    second = cluster.node("a")
    cluster.nodes["first"] = first
    cluster.advance(10)
    first.resume()
    cluster.advance(10)
    assert len(first.refusals) == 1
    assert second.refusals == []
    assert second.leads


def test_a_write_without_an_answer_is_no_other_node(cluster: Cluster) -> None:
    node = cluster.node("a")
    cluster.advance(3)
    node.faults.loses_answers = True
    cluster.advance(10)
    node.faults.heal()
    cluster.advance(10)
    assert node.refusals == []
    assert node.members.is_joined
    found = run(cluster.metadata.get(member_key("a")))
    assert found is not None
    assert found.value is not None
    member = decode_member(found.value)
    assert member is not None
    assert member.beat == node.members.own.beat


def test_a_deleted_record_is_written_again(cluster: Cluster) -> None:
    node = cluster.node("a")
    cluster.advance(3)
    found = run(cluster.metadata.get(member_key("a")))
    assert found is not None
    run(cluster.metadata.delete(member_key("a"), found.revision))
    cluster.advance(3)
    assert alive(cluster, "a") == ["a"]
    assert [member.name for member in node.members.known] == ["a"]


def test_a_record_that_cannot_be_read_is_no_member(cluster: Cluster) -> None:
    run(cluster.metadata.put(member_key("b"), b"{}", NEVER))
    run(cluster.metadata.put(("node", "c", "deep"), b"{}", NEVER))
    cluster.node("a")
    cluster.advance(3)
    assert alive(cluster, "a") == ["a"]


def test_a_record_has_all_fields_and_may_have_more() -> None:
    member = Member(
        "a",
        "i1",
        ("h", 1),
        {"amqp": ("h", 5672), "mqtt": ("::1", 1883)},
        "1.2",
        7,
        Role.LEADER,
        False,
        {"f": 1},
        "ab",
        "p",
    )
    data = encode_member(member)
    assert decode_member(data) == member
    assert decode_member(data[:-1] + b', "later": []}') == member


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b"null", b"[" * 100_000])
def test_records_of_any_bytes_are_read(data: bytes) -> None:
    assert decode_member(data) is None


@pytest.mark.parametrize("address", [[], ["h"], ["h", "1"], [1, "h"], "h:1", ["h", 1, 2], ["h", True]])
def test_an_address_is_a_host_and_a_port(address: object) -> None:
    fields = json.loads(encode_member(Member("a", "i1", ("h", 1))))
    fields["forwarding"] = address
    assert decode_member(json.dumps(fields).encode()) is None
