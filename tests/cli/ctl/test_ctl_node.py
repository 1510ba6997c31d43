"""Verbs for the running node: their requests and their output."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

CHANGES = [
    #   command line, the setting, its value, the announcement
    (
        "set_vm_memory_high_watermark 0.4",
        "memory_high_watermark",
        0.4,
        "Setting memory threshold on gateway@here to 0.4 ...",
    ),
    (
        "set_vm_memory_high_watermark absolute 1GB",
        "memory_high_watermark",
        10**9,
        "Setting memory threshold on gateway@here to 1GB bytes ...",
    ),
    (
        "set_disk_free_limit 50MB",
        "disk_free_limit",
        50 * 10**6,
        "Setting disk free limit on gateway@here to 50MB bytes ...",
    ),
    (
        "set_disk_free_limit 2Gi",
        "disk_free_limit",
        2 * 2**30,
        "Setting disk free limit on gateway@here to 2Gi bytes ...",
    ),
    (
        "set_disk_free_limit mem_relative 0.5",
        "disk_free_limit",
        4000,
        "Setting disk free limit on gateway@here to 0.5 times the total RAM ...",
    ),
    ("set_log_level debug", "log.level", "debug", 'Setting log level to "debug" ...'),
    ("set_setting amqp.heartbeat_s 30", "amqp.heartbeat_s", 30, "Setting amqp.heartbeat_s to 30 ..."),
    ("set_setting log.format json", "log.format", "json", "Setting log.format to json ..."),
]


@pytest.mark.parametrize(("line", "key", "value", "announced"), CHANGES, ids=[line for line, *_ in CHANGES])
def test_a_setting_is_changed_until_the_restart(
    ctl: Ctl, api: FakeApi, line: str, key: str, value: object, announced: str
) -> None:
    api.answer("GET nodes/gateway%40here", {"mem_total": 8000})
    api.answer(f"PUT settings/{key}", {})
    result = ctl(*line.split())
    assert (result.code, result.err) == (0, "")
    assert api.changes() == [(f"PUT settings/{key}", {"value": value})]
    assert result.out.splitlines() == [announced, "The change takes effect at once and does not survive a restart."]


WRONG = [
    ("set_vm_memory_high_watermark abc", 65, "'abc' is not a number"),
    ("set_vm_memory_high_watermark 2.5", 65, "The threshold should be a fraction between 0.0 and 1.0"),
    ("set_vm_memory_high_watermark relative 0.4", 65, None),
    ("set_vm_memory_high_watermark absolute 10XB", 65, None),
    ("set_disk_free_limit xx", 65, None),
    ("set_disk_free_limit mem_relative -1", 64, None),
    ("set_log_level foo", 69, "level foo is not supported. Try one of debug, info, warning, error, critical, none"),
    ("clear_setting log.level", 69, "log.level was not changed since the start"),
    ("wait", 64, None),
    ("wait /nonexistent/pid --timeout 0.3", 75, "waiting for /nonexistent/pid took more than 0.3 s"),
    ("consume_event_stream --pattern [", 64, None),
    ("await_online_nodes 2", 70, "this node runs alone: 2 nodes will never be online"),
    ("quorum_status nope", 69, "queue 'nope' does not exist in vhost '/'"),
    ("list [", 64, None),
]


@pytest.mark.parametrize(("line", "code", "reason"), WRONG, ids=[line for line, *_ in WRONG])
def test_an_error_has_rabbitmqs_code(ctl: Ctl, line: str, code: int, reason: str | None) -> None:
    result = ctl(*line.split())
    assert (result.code, len(result.err.splitlines())) == (code, 1)
    if reason is not None:
        assert result.err == f"Error: {reason}\n"


def test_a_level_that_the_broker_lacks_becomes_the_nearest(ctl: Ctl, api: FakeApi) -> None:
    api.answer("PUT settings/log.level", {})
    assert 'The nearest level of this broker is "error".' in ctl("set_log_level", "critical").out
    assert api.changes() == [("PUT settings/log.level", {"value": "error"})]


def test_settings_are_listed_with_their_origin(ctl: Ctl, api: FakeApi) -> None:
    rows = [
        {"key": "amqp.port", "value": 5672, "default": 5672, "origin": "default"},
        {"key": "log.level", "value": "debug", "default": "info", "origin": "run time"},
        {"key": "bind", "value": "*", "origin": "default", "needs_restart": True, "configured": "::1"},
    ]
    api.answer("GET settings", {"files": [], "settings": rows})
    printed = ctl("environment", "--quiet").out.splitlines()
    assert printed == [
        "key\tvalue\torigin",
        "amqp.port\t5672\tdefault",
        'log.level\t"debug"\trun time',
        'bind\t"*"\tdefault; "::1" after a restart',
    ]
    assert [row["key"] for row in json.loads(ctl("environment", "log", "--formatter=json").out)] == ["log.level"]


def test_a_reload_prints_what_it_did(ctl: Ctl, api: FakeApi) -> None:
    found = {"applied": ["log.level"], "needs_restart": ["bind", "data"], "kept": [], "certificates": 2}
    api.answer("POST reload", found)
    assert ctl("reload", "--quiet").out.splitlines() == [
        "Applied: log.level",
        "Needs a restart: bind, data",
        "Kept as changed at run time: (none)",
        "Certificates read: 2",
    ]
    assert json.loads(ctl("reload", "--formatter=json").out) == found


def test_a_refused_reload_fails_with_the_reason(ctl: Ctl, api: FakeApi) -> None:
    api.answer("POST reload", {"error": "bad_request", "reason": "log.level: must be debug"}, 400)
    result = ctl("reload")
    assert (result.code, result.err) == (69, "Error: log.level: must be debug\n")


def test_another_broker_than_a_gateway_is_named_in_the_error(ctl: Ctl, api: FakeApi) -> None:
    result = ctl("drain")
    assert (result.code, result.err) == (69, f"Error: the broker at {api.url} cannot do this over its API\n")


def test_drain_waits_until_no_connection_is_left(ctl: Ctl, api: FakeApi) -> None:
    api.answer("PUT maintenance", {})
    api.answer("GET maintenance", {"connections_left": 0})
    result = ctl("drain")
    assert result.code == 0
    assert result.out == (
        "Will put node gateway@here into maintenance mode. The node will no longer serve any client traffic!\n"
    )


def test_a_recording_is_started_shown_and_ended(ctl: Ctl, api: FakeApi) -> None:
    api.answer("PUT recording", {})
    api.answer("GET recording", {"state": "recording", "error": "", "file": "/data/a.jsonl", "size": 7, "left_out": 2})
    api.answer("DELETE recording", None)
    assert ctl("start_recording").out.endswith("Recording to /data/a.jsonl\n")
    shown = ctl("recording_status").out.splitlines()
    assert shown[1:] == ["state: recording", "file: /data/a.jsonl", "size: 7", "left_out: 2"]
    assert ctl("stop_recording").code == 0
    assert [change for change, _ in api.changes()] == ["PUT recording", "DELETE recording"]


def test_stop_is_idempotent_on_request(ctl: Ctl, api: FakeApi) -> None:
    assert ctl("stop", "--url", "http://127.0.0.1:1").code == 69
    assert ctl("stop", "--idempotent", "--url", "http://127.0.0.1:1").code == 0


def test_wait_ends_when_the_process_is_gone(ctl: Ctl, tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    file = tmp_path / "pid"
    file.write_text(f"{child.pid}\n")
    result = ctl("wait", str(file), "--url", "http://127.0.0.1:1")
    assert (result.code, result.err) == (70, f"Error: process {child.pid} is not running\n")


def test_wait_ends_when_the_broker_answers(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET whoami", {"name": "guest"})
    assert ctl("wait", "--pid", str(os.getpid())).code == 0


def test_tls_versions_are_printed_as_by_rabbitmq(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET tls", {"versions": ["tlsv1.3", "tlsv1.2"], "cipher_suites": ["A", "B"], "certificates": []})
    assert ctl("tls_versions").out == "Listing all TLS versions supported by the runtime...\ntlsv1.3\ntlsv1.2\n"
    assert ctl("tls_versions", "--formatter=json").out == '{"versions":["tlsv1.3","tlsv1.2"]}\n'
    assert ctl("cipher_suites", "--silent").out == "A\nB\n"


def test_the_log_is_printed_line_by_line(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET log", {"files": ["/var/log/gateway.log"], "lines": ["one", "two"]})
    assert ctl("log_tail", "-N", "2").out == "Last 2 log lines on node gateway@here ...\none\ntwo\n"
    assert api.received[-1].target == "/api/log?lines=2"
    assert ctl("log_location", "--silent").out == "/var/log/gateway.log\n"


def test_events_are_filtered_by_their_name(ctl: Ctl, api: FakeApi) -> None:
    lines = b'\n{"event":"queue.created","name":"q"}\n\n{"event":"user.deleted","name":"queue"}\n'
    api.answers["GET events/stream"] = (200, lines)
    assert ctl("consume_event_stream", "--pattern", "^queue").out == '{"event":"queue.created","name":"q"}\n'


def test_a_member_of_a_quorum_queue_is_this_node(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET queues/%2F/qq", {"type": "quorum"})
    api.answer("GET queues/%2F/q", {"type": "classic"})
    api.answer("GET nodes", [{"name": "gateway@here", "running": True}])
    found = json.loads(ctl("quorum_status", "qq", "--formatter=json").out)
    assert (found[0]["Node Name"], found[0]["Raft State"]) == ("gateway@here", "leader")
    assert ctl("quorum_status", "q").err == "Error: Cannot get quorum status of a classic queue\n"
    assert ctl("delete_member", "qq", "gateway@here").err == "Error: the last node cannot be removed\n"
    assert ctl("add_member", "qq", "gateway@here").code == 0
    assert ctl("add_member", "qq", "x@y").code == 69


@pytest.fixture
def plugins(api: FakeApi) -> None:
    rows = [
        {"name": "exchange-topic", "state": "enabled", "set_by": "always enabled", "version": 1},
        {"name": "auth-http", "state": "disabled"},
        {"name": "enrich", "state": "enabled", "set_by": "virtual host", "version": 2},
    ]
    api.answer("GET plugins/%2F", rows)
    api.answer("GET nodes/gateway%40here", {"enabled_plugins": ["rabbitmq_management", "rabbitmq_mqtt"]})
    for name in ("auth-http", "enrich"):
        api.answer(f"PUT plugins/%2F/{name}")
        api.answer(f"DELETE plugins/%2F/{name}")


@pytest.mark.usefixtures("plugins")
def test_plugins_are_listed_as_by_rabbitmq_plugins(ctl: Ctl) -> None:
    assert ctl("list", "--quiet").out.splitlines() == [
        "[  ] auth-http",
        "[E*] enrich",
        "[e*] exchange-topic",
        "[E*] rabbitmq_management",
        "[E*] rabbitmq_mqtt",
    ]
    assert ctl("list", "-m", "-E", "-q").out.splitlines() == ["enrich", "rabbitmq_management", "rabbitmq_mqtt"]
    listed = json.loads(ctl("list", "mqtt", "--formatter=json").out)
    assert (listed["status"], [row["name"] for row in listed["plugins"]]) == ("running", ["rabbitmq_mqtt"])


@pytest.mark.usefixtures("plugins")
def test_a_built_in_plugin_of_rabbitmq_is_enabled(ctl: Ctl, api: FakeApi) -> None:
    assert ctl("is_enabled", "rabbitmq_management", "enrich").code == 0
    assert ctl("is_enabled", "auth-http").code == 69
    assert ctl("enable", "rabbitmq_mqtt", "--offline").code == 0
    assert ctl("disable", "rabbitmq_mqtt").code == 69
    assert ctl("enable", "rabbitmq_stomp").err == (
        "Error: plugin 'rabbitmq_stomp' of RabbitMQ is not installed here: "
        "STOMP is built in; its port is the setting stomp.port\n"
    )
    assert ctl("enable", "nope").code == 69
    assert api.changes() == []


@pytest.mark.usefixtures("plugins")
def test_set_enables_the_named_plugins_and_disables_others(ctl: Ctl, api: FakeApi) -> None:
    assert ctl("set", "auth-http", "rabbitmq_management").code == 0
    assert [change for change, _ in api.changes()] == ["PUT plugins/%2F/auth-http", "DELETE plugins/%2F/enrich"]
