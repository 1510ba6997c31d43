"""The depths of queues of a moment over HTTP, within the user's permissions."""

from pathlib import Path

import pytest

from gateway.management.depths.depth_file import PAGE
from tests.management.console import Answer, Console
from tests.management.depths.recorded import RecordedBroker


@pytest.fixture
def broker(tmp_path: Path) -> RecordedBroker:
    """A broker with two queues, a second virtual host, and a sample."""
    broker = RecordedBroker(tmp_path)
    gateway = broker.gateway
    gateway.add_user("reader", "reader", "/", ("", "", "^orders$"))
    gateway.add_user("watcher", "watcher", "/", ("", "", ""), "monitoring")
    broker.console.put("/vhosts/other", {})
    gateway.add_user("stranger", "stranger", "other")
    broker.declare("orders", "secret")
    broker.publish("orders", 3)
    broker.sample()
    return broker


def ask(broker: RecordedBroker, query: str, user: str = "guest", vhost: str = "%2F") -> Answer:
    return broker.console.ask("GET", f"/queue-depths/{vhost}?{query}", user=user)


def test_a_user_sees_the_queues_that_it_may_read(broker: RecordedBroker) -> None:
    both = {"orders": (3, 0), "secret": (0, 0)}
    assert broker.recorded(broker.now_ms) == both
    assert broker.recorded(broker.now_ms, "watcher") == both
    assert broker.recorded(broker.now_ms, "reader") == {"orders": (3, 0)}


def test_other_virtual_hosts_are_refused_and_apart(broker: RecordedBroker) -> None:
    now = f"at={broker.now_ms}"
    assert ask(broker, now, "stranger").status == 401
    assert ask(broker, now, "reader", "other").status == 401
    assert ask(broker, now, vhost="none").status == 404
    assert ask(broker, now, "stranger", "other").json["queues"] == []


def test_many_queues_come_in_pages_of_one_sample(broker: RecordedBroker) -> None:
    broker.declare(*(f"q{number}" for number in range(2 * PAGE)))
    moment_ms = broker.sample()
    expected = broker.present()
    first = ask(broker, f"at={moment_ms}", "reader").json
    assert (len(first["queues"]), first["next"] is None) == (1, False)
    broker.publish("q999", 1)
    broker.sample()
    second = ask(broker, f"after={first['next']}").json
    assert (len(second["queues"]), second["sampled_to_ms"]) == (PAGE, moment_ms)
    assert all(each["ready"] == 0 for each in second["queues"])
    assert broker.recorded(moment_ms) == expected


@pytest.mark.parametrize(
    "query", ["", "at=x", "at=-1", "after=1", "after=1-2-x", "after=../x-1-2", "at=1&after=1-2-3-4"]
)
def test_a_wrong_query_is_refused(broker: RecordedBroker, query: str) -> None:
    assert ask(broker, query).status == 400


def test_a_page_of_a_removed_file_is_gone(broker: RecordedBroker) -> None:
    for after in ("1-1-0", f"{broker.now_ms}-99-0"):
        answer = ask(broker, f"after={after}")
        assert (answer.status, answer.json["error"]) == (410, "gone")


def test_a_broken_file_is_an_error(broker: RecordedBroker, tmp_path: Path) -> None:
    """Unless another file answers."""
    (tmp_path / f"{broker.now_ms + 1}.sqlite").write_text("no database at all" * 100)
    answer = ask(broker, f"at={broker.now_ms + 10**9}")
    assert (answer.status, answer.json["error"]) == (503, "not_now")
    assert "file is not a database" in answer.json["reason"]
    assert ask(broker, f"at={broker.now_ms}").status == 200
    assert ask(broker, f"at={broker.now_ms + 1}").json["sampled_to_ms"] == broker.now_ms


def test_without_a_record_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    console = Console()
    assert console.get("/queue-depths/%2F?at=1") == {
        "recording": False,
        "sampled_from_ms": None,
        "sampled_to_ms": None,
        "queues": [],
        "next": None,
    }
    assert list(tmp_path.iterdir()) == []
