"""The message workbench over HTTP: search, actions, jobs, undo, permissions and the audit record."""

from typing import Any

import pytest
from pamqp import commands

from gateway.testing.clock import FakeClock
from tests.management.console import Answer, Console
from tests.protocols.amqp.dialogue import Gateway

Fields = dict[str, Any]
QUEUE = "/workbench/%2F/q"


@pytest.fixture
def console(console: Console) -> Console:
    """A console with the queues q and other, and three messages in q: a1, b2, a3."""
    for name in ("q", "other"):
        console.put(f"/queues/%2F/{name}", {"durable": True})
    for body in ("a1", "b2", "a3"):
        publish(console, body, headers={"kind": body[0]})
    return console


def publish(console: Console, body: str, key: str = "q", **properties: Any) -> None:
    fields = {"routing_key": key, "payload": body, "payload_encoding": "string", "properties": properties}
    assert console.post("/exchanges/%2F/amq.default/publish", fields) == {"routed": True}


def search(console: Console, fields: Fields, name: str = "q") -> Fields:
    found: Fields = console.post(f"/workbench/%2F/{name}/search", fields)
    return found


def bodies(console: Console, name: str = "q", **fields: Any) -> list[str]:
    return [message["payload"] for message in search(console, fields, name)["messages"]]


def act(console: Console, action: str, fields: Fields) -> Fields:
    """The report of an action that is done."""
    answer = console.ask("POST", f"{QUEUE}/{action}", {"dry_run": False, **fields})
    assert answer.status == 200, answer
    report: Fields = answer.json
    assert report["state"] == "done", report
    return report


def undo(console: Console, report: Fields) -> Fields:
    undone: Fields = console.post(f"/workbench/undo/{report['undo']}", {})
    return undone


# Search


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({}, ["a1", "b2", "a3"]),
        ({"headers": {"kind": "a"}}, ["a1", "a3"]),
        ({"headers": {"kind": None}}, ["a1", "b2", "a3"]),
        ({"headers": {"other": None}}, []),
        ({"body": {"pattern": "^a[12]$"}}, ["a1"]),
        ({"body": "2"}, ["b2"]),
        ({"key": {"pattern": "^q$"}, "exchange": ""}, ["a1", "b2", "a3"]),
        ({"exchange": "amq.topic"}, []),
        ({"properties": {"message_id": None}}, []),
        ({"states": ["delayed"]}, []),
    ],
)
def test_messages_are_found_by_their_parts(console: Console, conditions: Fields, found: list[str]) -> None:
    assert bodies(console, filter=conditions) == found


def test_a_search_is_continued_with_its_cursor(console: Console) -> None:
    first = search(console, {"limit": 2})
    assert ([each["payload"] for each in first["messages"]], first["stopped_by"]) == (["a1", "b2"], "limit")
    second = search(console, {"limit": 2, "cursor": first["cursor"]})
    assert ([each["payload"] for each in second["messages"]], second["cursor"]) == (["a3"], None)


def test_a_search_ends_after_its_number_of_examined_messages(console: Console) -> None:
    found = search(console, {"filter": {"body": "3"}, "max_examined": 2})
    assert (found["messages"], found["examined"], found["stopped_by"]) == ([], 2, "examined")
    assert search(console, {"filter": {"body": "3"}, "cursor": found["cursor"]})["messages"][0]["payload"] == "a3"


def test_a_search_leaves_no_trace(console: Console) -> None:
    before = console.get("/queues/%2F/q")
    (first, *_) = search(console, {})["messages"]
    assert (first["redelivered"], first["delivery_count"], first["state"]) == (False, 0, "ready")
    assert first["properties"] == {"headers": {"kind": "a"}}
    assert console.get("/queues/%2F/q") == before
    fetched = console.post("/queues/%2F/q/get", {"ackmode": "ack_requeue_false", "count": 9, "encoding": "auto"})
    assert [(each["payload"], each["redelivered"]) for each in fetched] == [(b, False) for b in ("a1", "b2", "a3")]


def test_unacknowledged_messages_are_found_with_their_connection(console: Console) -> None:
    peer = console.gateway.connect()
    peer.send(commands.Basic.Get(queue="q"))
    found = search(console, {"filter": {"states": ["unacknowledged"]}})["messages"]
    assert [(each["payload"], each["connection"], each["channel"]) for each in found] == [("a1", peer.name, 1)]
    assert bodies(console) == ["b2", "a3", "a1"]


def test_delayed_messages_are_found_with_their_time(console: Console) -> None:
    console.put("/queues/%2F/later", {"durable": True, "arguments": {"x-delayed-delivery": True}})
    publish(console, "d", "later", headers={"x-delay": 60_000})
    (found,) = search(console, {}, "later")["messages"]
    assert (found["state"], found["payload"], found["due_at_ms"] - found["enqueued_at_ms"]) == ("delayed", "d", 60_000)


def test_queues_with_priorities_are_searched_highest_first(console: Console) -> None:
    console.put("/queues/%2F/p", {"durable": True, "arguments": {"x-max-priority": 5}})
    for priority in (1, 5, 3):
        publish(console, str(priority), "p", priority=priority)
    assert bodies(console, "p") == ["5", "3", "1"]
    first = search(console, {"limit": 1}, "p")
    assert search(console, {"cursor": first["cursor"]}, "p")["messages"][0]["payload"] == "3"


# Actions


def test_a_dry_run_is_the_default_and_changes_nothing(console: Console) -> None:
    report = console.post(f"{QUEUE}/delete", {"filter": {"headers": {"kind": "a"}}})
    assert (report["dry_run"], report["matched"], report["done"], report["undo"]) == (True, 2, 0, None)
    assert [each["payload"] for each in report["sample"]] == ["a1", "a3"]
    assert bodies(console) == ["a1", "b2", "a3"]


def test_messages_are_moved_and_back(console: Console) -> None:
    report = act(console, "move", {"filter": {"headers": {"kind": "a"}}, "to": {"queue": "other"}})
    assert (report["done"], report["matched"]) == (2, 2)
    assert (bodies(console), bodies(console, "other")) == (["b2"], ["a1", "a3"])
    assert undo(console, report)["done"] == 2
    assert (bodies(console), bodies(console, "other")) == (["a1", "b2", "a3"], [])
    assert console.ask("POST", f"/workbench/undo/{report['undo']}").status == 404


def test_a_target_that_does_not_exist_is_named(console: Console) -> None:
    request = {"filter": {}, "to": {"queue": "nowhere"}}
    answer = console.ask("POST", f"{QUEUE}/move", request)
    assert (answer.status, answer.json["error"]) == (404, "not_found")
    assert answer.json["reason"] == "to.queue: no queue 'nowhere' in vhost '/'"
    assert console.ask("POST", "/workbench/%2F/nowhere/delete", {"filter": {}}).json["error"] == "Object Not Found"


def test_a_message_that_was_consumed_meanwhile_is_not_moved_back(console: Console) -> None:
    report = act(console, "move", {"filter": {"headers": {"kind": "a"}}, "to": {"queue": "other"}})
    console.post("/queues/%2F/other/get", {"ackmode": "ack_requeue_false", "count": 1, "encoding": "auto"})
    undone = undo(console, report)
    assert (undone["done"], undone["gone"]) == (1, 1)
    assert (bodies(console), bodies(console, "other")) == (["b2", "a3"], [])


def test_messages_are_selected_by_their_ids(console: Console) -> None:
    ids = [message["id"] for message in search(console, {})["messages"]]
    report = act(console, "delete", {"ids": [ids[2], ids[0], 999_999]})
    assert report["done"] == 2
    assert bodies(console) == ["b2"]
    undo(console, report)
    assert bodies(console) == ["a1", "b2", "a3"]


def test_messages_are_copied_with_changes(console: Console) -> None:
    changes = {"headers": {"copied": True, "kind": None}, "routing_key": "new"}
    report = act(console, "copy", {"filter": {"body": "b"}, "to": {"queue": "other"}, "changes": changes})
    (copy,) = search(console, {}, "other")["messages"]
    assert (copy["payload"], copy["routing_key"], copy["properties"]["headers"]) == ("b2", "new", {"copied": True})
    assert bodies(console) == ["a1", "b2", "a3"]
    undo(console, report)
    assert (bodies(console), bodies(console, "other")) == (["a1", "b2", "a3"], [])


def test_an_edited_message_keeps_its_place(console: Console) -> None:
    changes = {"payload": "new", "properties": {"message_id": "m", "content_type": "text/plain"}}
    report = act(console, "edit", {"filter": {"body": "b"}, "changes": changes})
    assert bodies(console) == ["a1", "new", "a3"]
    edited = search(console, {"filter": {"body": "new"}})["messages"][0]
    assert edited["properties"] == {"headers": {"kind": "b"}, "message_id": "m", "content_type": "text/plain"}
    undo(console, report)
    assert bodies(console) == ["a1", "b2", "a3"]


def test_messages_are_requeued_at_the_end(console: Console) -> None:
    report = act(console, "requeue", {"filter": {"body": "1"}})
    assert bodies(console) == ["b2", "a3", "a1"]
    undo(console, report)
    assert bodies(console) == ["a1", "b2", "a3"]


def test_dead_letters_are_requeued_to_the_queue_where_they_died_first(console: Console) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    console.put("/queues/%2F/first", {"durable": True, "arguments": arguments})
    publish(console, "dead", "first")
    console.post("/queues/%2F/first/get", {"ackmode": "reject_requeue_false", "count": 1, "encoding": "auto"})
    report = act(console, "requeue", {"filter": {"headers": {"x-first-death-queue": "first"}}})
    assert report["done"] == 1
    assert (bodies(console), bodies(console, "first")) == (["a1", "b2", "a3"], ["dead"])


def test_delayed_messages_are_released_and_delayed_again(console: Console) -> None:
    console.put("/queues/%2F/later", {"durable": True, "arguments": {"x-delayed-delivery": True}})
    publish(console, "d", "later", headers={"x-delay": 60_000})
    fields = {"filter": {"states": ["delayed"]}, "dry_run": False}
    report = console.post("/workbench/%2F/later/requeue", fields)
    assert report["done"] == 1
    assert [each["state"] for each in search(console, {}, "later")["messages"]] == ["ready"]
    undo(console, report)
    assert [each["state"] for each in search(console, {}, "later")["messages"]] == ["delayed"]


def test_messages_are_moved_through_an_exchange_without_undo(console: Console) -> None:
    console.post("/bindings/%2F/e/amq.direct/q/other", {"routing_key": "k"})
    report = act(console, "move", {"filter": {"body": "b"}, "to": {"exchange": "amq.direct", "routing_key": "k"}})
    assert report["undo"] is None
    (moved,) = search(console, {}, "other")["messages"]
    assert (moved["exchange"], moved["routing_key"]) == ("amq.direct", "k")
    assert bodies(console) == ["a1", "a3"]


def test_a_message_without_a_route_stays(console: Console) -> None:
    report = act(console, "move", {"filter": {"body": "b"}, "to": {"exchange": "amq.direct"}})
    assert (report["done"], report["refused"]) == (0, 1)
    assert report["refusals"] == [{"reason": "the message is not routed to any queue", "count": 1}]
    assert bodies(console) == ["a1", "b2", "a3"]


def test_a_full_target_refuses_messages_which_stay(console: Console) -> None:
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    console.put("/queues/%2F/full", {"durable": True, "arguments": arguments})
    report = act(console, "move", {"filter": {}, "to": {"queue": "full"}})
    assert (report["done"], report["refused"]) == (1, 2)
    assert (bodies(console), bodies(console, "full")) == (["b2", "a3"], ["a1"])


def test_streams_are_searched_and_copied_only(console: Console) -> None:
    console.put("/queues/%2F/s", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    for body in ("s1", "s2", "s3"):
        publish(console, body, "s")
    assert bodies(console, "s") == ["s1", "s2", "s3"]
    first = search(console, {"limit": 1}, "s")
    assert bodies(console, "s", cursor=first["cursor"], filter={"body": "3"}) == ["s3"]
    report = console.post("/workbench/%2F/s/copy", {"filter": {"body": "2"}, "to": {"queue": "q"}, "dry_run": False})
    assert report["done"] == 1
    assert bodies(console) == ["a1", "b2", "a3", "s2"]
    refused = console.ask("POST", "/workbench/%2F/s/delete", {"filter": {}})
    assert (refused.status, refused.json["reason"][:20]) == (400, "delete of messages n")


# Jobs


def test_a_long_action_is_a_job_that_is_cancelled() -> None:
    clock = FakeClock()
    console = Console(Gateway(clock=clock))
    console.put("/queues/%2F/q", {"durable": True})
    publish(console, "a")
    clock.background.is_paused = lambda: True
    answer = console.ask("POST", f"{QUEUE}/delete", {"filter": {}, "dry_run": False, "wait_s": 0})
    job = answer.json
    assert (answer.status, job["state"], job["total"], job["examined"]) == (202, "running", 1, 0)
    assert console.ask("DELETE", f"/workbench/undo/{job['undo']}").status == 400
    console.delete(f"/workbench/jobs/{job['id']}")
    clock.background.is_paused = lambda: False
    clock.advance(1)
    ended = console.get(f"/workbench/jobs/{job['id']}")
    assert (ended["state"], ended["done"], ended["undo"]) == ("cancelled", 0, None)
    assert [each["action"] for each in console.get("/workbench/jobs")] == ["delete"]
    assert bodies(console) == ["a"]


def test_an_action_stops_before_it_removes_more_than_can_be_kept(console: Console) -> None:
    workbench = console.gateway.broker.workbench
    workbench.rules = type(workbench.rules)(undo_max_messages=8)
    for number in range(30):
        publish(console, f"x{number}", "other")
    fields = {"filter": {}, "dry_run": False}
    report = console.post("/workbench/%2F/other/delete", fields)
    assert (report["state"], report["done"]) == ("stopped", 8)
    assert report["reason"] == "8 removed messages are kept for undoing, the limit is 8"
    again = console.ask("POST", "/workbench/%2F/other/delete", fields)
    assert (again.status, "forget an action" in again.json["reason"]) == (400, True)
    assert console.post("/workbench/%2F/other/delete", fields | {"undo": False})["done"] == 22
    assert bodies(console, "other") == []


def test_what_can_be_undone_is_listed_and_forgotten(console: Console) -> None:
    report = act(console, "move", {"filter": {"body": "a"}, "to": {"queue": "other"}})
    (listed,) = console.get("/workbench/undo")
    assert (listed["action"], listed["messages"], listed["bytes"]) == ("move", 2, 4)
    assert listed["target"] == {"vhost": "/", "queue": "other"}
    console.delete(f"/workbench/undo/{report['undo']}")
    assert console.get("/workbench/undo") == []


# Errors and permissions


@pytest.mark.parametrize(
    ("action", "fields", "reason"),
    [
        ("search", {"filter": {"bod": "x"}}, "filter.bod: unknown; known are body, exchange, headers, key"),
        ("search", {"filter": {"body": {"pattern": "("}}}, "invalid regular expression '('"),
        ("search", {"filter": {"body": {"pattern": "(.{1,30}){1,30}z"}}}, "is too large to search messages"),
        ("search", {"filter": {"states": ["gone"]}}, "filter.states: 'gone' is not allowed here"),
        ("search", {"cursor": "x"}, "cursor: is not the cursor of a search"),
        ("search", {"limit": 0}, "limit: must be from 1 to 500"),
        ("delete", {}, "give either filter or ids"),
        *(
            (action, {"filter": {"states": ["unacknowledged"]}, **more}, "belongs to its consumer; allowed are ready")
            for action, more in (
                ("delete", {}),
                ("move", {"to": {"queue": "q"}}),
                ("edit", {"changes": {"routing_key": "k"}}),
                ("requeue", {}),
            )
        ),
        ("delete", {"filter": {}, "to": {"queue": "other"}}, "request.to: unknown"),
        ("move", {"filter": {}}, 'to: must be {"queue": name}'),
        ("move", {"filter": {}, "to": {"queue": "other", "exchange": ""}}, "to: give either a queue or an exchange"),
        ("edit", {"filter": {}}, "changes: is missing"),
        ("edit", {"filter": {}, "changes": {"properties": {"colour": "x"}}}, "changes.properties.colour: unknown"),
        ("edit", {"filter": {}, "changes": {"properties": {"user_id": "x"}}}, "user_id property set to 'x'"),
        ("edit", {"filter": {}, "changes": {"payload": "x" * 1001}}, "message size 1001 is larger"),
        ("edit", {"filter": {}, "changes": {"payload": "x", "payload_encoding": "hex"}}, "unsupported_encoding"),
    ],
)
def test_an_invalid_request_is_refused_by_name(console: Console, action: str, fields: Fields, reason: str) -> None:
    status, answer = console.ask("POST", f"{QUEUE}/{action}", fields).result
    assert status == 400
    assert reason in str(answer["reason"])


def permitted(console: Console, write: str, read: str) -> None:
    console.add_user("u", "management")
    console.put("/permissions/%2F/u", {"configure": "", "write": write, "read": read})


def asked(console: Console, action: str, fields: Fields) -> Answer:
    return console.ask("POST", f"{QUEUE}/{action}", {"dry_run": False, **fields}, user="u")


@pytest.mark.parametrize(
    ("write", "read", "action", "fields", "status"),
    [
        ("", "q", "delete", {"filter": {}}, 200),
        ("q", "", "delete", {"filter": {}}, 401),
        ("", "q", "edit", {"filter": {}, "changes": {"payload": "x"}}, 401),
        ("q", "q", "edit", {"filter": {}, "changes": {"payload": "x"}}, 200),
        ("", "q", "requeue", {"filter": {}}, 401),
        ("q", "q", "move", {"filter": {}, "to": {"queue": "other"}}, 401),
        ("other", "q", "move", {"filter": {}, "to": {"queue": "other"}}, 200),
        ("other", "q", "copy", {"filter": {}, "to": {"queue": "other"}}, 200),
        ("other", "", "copy", {"filter": {}, "to": {"queue": "other"}}, 401),
        ("other", "q", "move", {"filter": {}, "to": {"exchange": "amq.fanout"}}, 401),
    ],
)
def test_an_action_needs_the_permissions(
    console: Console, write: str, read: str, action: str, fields: Fields, status: int
) -> None:
    permitted(console, f"^{write}$", f"^{read}$")
    before = bodies(console)
    assert asked(console, action, fields).status == status
    if status == 401:
        assert (bodies(console), bodies(console, "other")) == (before, [])


def test_a_search_needs_read(console: Console) -> None:
    permitted(console, ".*", "^other$")
    assert console.ask("POST", f"{QUEUE}/search", {}, user="u").status == 401
    assert console.ask("POST", "/workbench/%2F/other/search", {}, user="u").status == 200


def test_dead_letters_return_only_to_queues_that_the_user_may_write_to(console: Console) -> None:
    publish(console, "dead", headers={"x-first-death-queue": "other"})
    permitted(console, "^q$", "^q$")
    report = asked(console, "requeue", {"filter": {"body": "dead"}}).json
    assert (report["done"], report["refused"]) == (0, 1)
    assert "may not be written to" in report["refusals"][0]["reason"]


def test_jobs_and_undo_of_others_are_not_shown(console: Console) -> None:
    report = act(console, "delete", {"filter": {}})
    permitted(console, ".*", ".*")
    assert console.get("/workbench/jobs", user="u") == []
    assert console.get("/workbench/undo", user="u") == []
    assert console.ask("GET", f"/workbench/jobs/{report['id']}", user="u").status == 404
    assert console.ask("POST", f"/workbench/undo/{report['undo']}", user="u").status == 404


def test_actions_are_recorded_with_their_outcome(console: Console) -> None:
    report = act(console, "delete", {"filter": {"body": "a"}})
    undo(console, report)
    undone, deleted = console.get("/audit?action=workbench.*")["items"]
    assert (deleted["action"], deleted["subject"], deleted["details"]["done"]) == ("workbench.delete", "q", 2)
    assert deleted["details"]["request"]["filter"] == {"body": "a"}
    assert undone["details"]["undone_action"] == "delete"
