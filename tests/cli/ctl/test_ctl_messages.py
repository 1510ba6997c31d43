"""``gatewayctl messages``: requests to the workbench, and reports of its jobs."""

from typing import Any

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

REPORT: dict[str, Any] = {
    "id": 4, "state": "done", "dry_run": False, "undo": 7, "examined": 9, "matched": 2, "matched_bytes": 20,
    "done": 1, "gone": 0, "refused": 1, "refusals": [{"reason": "queue 'b' refuses the message: maxlen", "count": 1}],
}  # fmt: skip


def body(api: FakeApi) -> Any:
    return api.received[-1].body


def test_found_messages_are_listed_and_the_cursor_is_shown(api: FakeApi, ctl: Ctl) -> None:
    found = {"id": 7, "state": "ready", "routing_key": "k", "payload": "p"}
    answer = {"messages": [found], "cursor": "ready:0:7", "examined": 9, "stopped_by": "limit"}
    api.answer("POST workbench/%2F/q/search", answer)
    result = ctl("messages", "search", "q", "id", "payload", "--header", "a=x", "--header", "b", "--body-pattern", "^p")
    assert result.code == 0
    assert "7\tp\n" in result.out
    assert "continue with --cursor ready:0:7" in result.out
    headers = {"a": {"contains": "x"}, "b": None}
    states = ["ready", "unacknowledged", "delayed"]
    wanted = {"headers": headers, "body": {"pattern": "^p"}, "states": states}
    assert body(api) == {"filter": wanted, "limit": 50, "truncate": 100}


def test_a_move_shows_its_effect_and_how_it_is_undone(api: FakeApi, ctl: Ctl) -> None:
    api.answer("POST workbench/v1/a/move", REPORT)
    result = ctl("messages", "move", "a", "--key", "x", "--to", "b", "--apply", "-p", "v1", "--set-header", "n=1")
    assert result.code == 0
    assert "9\t2\t20\t1\t0\t1\n" in result.out
    assert "gatewayctl messages undo 7" in result.out
    assert result.err == "refused 1: queue 'b' refuses the message: maxlen\n"
    assert body(api) == {
        "dry_run": False, "undo": True, "wait_s": 1, "to": {"queue": "b"}, "changes": {"headers": {"n": 1}},
        "filter": {"key": {"contains": "x"}, "states": ["ready"]},
    }  # fmt: skip


def test_a_dry_run_says_that_nothing_was_changed(api: FakeApi, ctl: Ctl) -> None:
    api.answer("POST workbench/%2F/a/delete", REPORT | {"dry_run": True, "undo": None, "refusals": []})
    result = ctl("messages", "delete", "a", "--id", "5", "--id", "6")
    assert (result.code, "Nothing was changed: repeat with --apply." in result.out) == (0, True)
    assert body(api) == {"dry_run": True, "undo": True, "wait_s": 1, "ids": [5, 6]}


def test_a_job_that_stopped_is_an_error(api: FakeApi, ctl: Ctl) -> None:
    api.answer("POST workbench/%2F/a/delete", REPORT | {"state": "stopped", "reason": "full"})
    result = ctl("messages", "delete", "a", "--all", "--apply")
    assert (result.code, "the job was stopped: full" in result.err) == (69, True)


def test_an_error_names_the_queue_that_does_not_exist(api: FakeApi, ctl: Ctl) -> None:
    api.answer("GET vhosts/%2F", {"name": "/"})
    missing = {"error": "not_found", "reason": "to.queue: no queue 'b' in vhost '/'"}
    api.answer("POST workbench/%2F/a/move", missing, status=404)
    result = ctl("messages", "move", "a", "--all", "--to", "b")
    assert (result.code, result.err) == (69, "Error: to.queue: no queue 'b' in vhost '/'\n")


def test_what_can_be_undone_is_listed(api: FakeApi, ctl: Ctl) -> None:
    api.answer("GET workbench/undo", [{"id": 7, "action": "move", "queue": "a"}])
    assert "7\tmove\t" in ctl("messages", "undo").out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("delete", "a"), "select messages by filters such as --header, by --id, or by --all"),
        (("delete", "a", "--all", "--id", "4"), "select messages by filters such as --header, by --id, or by --all"),
        (("move", "a", "--all"), "give either --to or --to-exchange"),
        (("edit", "a", "--all"), "give a change: --set-body, --set-key, --set-header, "),
        (("search", "a", "--body", "x", "--body-pattern", "x"), "give either --body or --body-pattern"),
        (("edit", "a", "--all", "--set-header", "x"), "'x' is not NAME=VALUE"),
    ],
)
def test_wrong_usage_is_refused(api: FakeApi, ctl: Ctl, arguments: tuple[str, ...], reason: str) -> None:
    result = ctl("messages", *arguments)
    assert (result.code, reason in result.err) == (64, True), result
