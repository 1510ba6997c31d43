"""The API requests of each verb (method, path, body), and its output.

Rules: R142.
"""

import base64
from pathlib import Path

import pytest

from gateway.access.passwords import verify_password
from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

KEPT = {"password_hash": "h", "hashing_algorithm": "a"}
MAX_LENGTH = {"pattern": "^two-messages$", "definition": {"max-length": 2, "overflow": "reject-publish"}}
ONE_MEG = {"pattern": "^one-meg$", "definition": {"max-length-bytes": 1048576}}

CHANGES = [
    #            command line, requests, output
    pytest.param(
        ["set_policy", "my-pol", "^one-meg$", '{"max-length-bytes":1048576}', "--apply-to", "queues"],
        [("PUT policies/%2F/my-pol", {**ONE_MEG, "priority": 0, "apply-to": "queues"})],
        'Setting policy "my-pol" for pattern "^one-meg$" to "{"max-length-bytes":1048576}" with priority "0" '
        'for vhost "/" ...\n',
        id="R71",
    ),
    pytest.param(
        [
            *("set_policy", "my-pol", "^two-messages$"),
            *('{"max-length":2,"overflow":"reject-publish"}', "--apply-to", "queues"),
        ],
        [("PUT policies/%2F/my-pol", {**MAX_LENGTH, "priority": 0, "apply-to": "queues"})],
        'Setting policy "my-pol" for pattern "^two-messages$" to "{"max-length":2,"overflow":"reject-publish"}" '
        'with priority "0" for vhost "/" ...\n',
        id="R72",
    ),
    pytest.param(
        ["-p", "v1", "set_operator_policy", "op", "x", "{}", "--priority", "3"],
        [("PUT operator-policies/v1/op", {"pattern": "x", "definition": {}, "priority": 3, "apply-to": "all"})],
        'Setting operator policy override "op" for pattern "x" to "{}" with priority "3" for vhost "v1" ...\n',
        id="set_operator_policy",
    ),
    pytest.param(
        ["delete_shovel", "s"],
        [("DELETE shovels/vhost/%2F/s", None)],
        "Deleting shovel s in vhost / ...\n",
        id="delete_shovel",
    ),
    pytest.param(
        ["restart_shovel", "s", "-p", "v1"],
        [("DELETE shovels/vhost/v1/s/restart", None)],
        "Restarting shovel s in vhost v1 ...\n",
        id="restart_shovel",
    ),
    pytest.param(
        ["clear_policy", "my-pol"],
        [("DELETE policies/%2F/my-pol", None)],
        'Clearing policy "my-pol" on vhost "/" ...\n',
        id="clear_policy",
    ),
    pytest.param(
        ["clear_operator_policy", "op", "-p", "v1"],
        [("DELETE operator-policies/v1/op", None)],
        'Clearing operator policy "op" on vhost "v1" ...\n',
        id="clear_operator_policy",
    ),
    pytest.param(
        ["add_user", "al", "secret"],
        [("PUT users/al", {"password": "secret", "tags": ""})],
        'Adding user "al" ...\nDone. Don\'t forget to grant the user permissions to some virtual hosts! '
        "See 'gatewayctl help set_permissions' to learn more.\n",
        id="add_user",
    ),
    pytest.param(["delete_user", "a/b"], [("DELETE users/a%2Fb", None)], 'Deleting user "a/b" ...\n', id="delete_user"),
    pytest.param(
        ["change_password", "bob", "new"],
        [("PUT users/bob", {"password": "new", "tags": "x,y"})],
        'Changing password for user "bob" ...\n',
        id="change_password keeps the tags",
    ),
    pytest.param(
        ["clear_password", "bob"],
        [("PUT users/bob", {"password_hash": "", "tags": "x,y"})],
        'Clearing password for user "bob" ...\n',
        id="clear_password",
    ),
    pytest.param(
        ["set_user_tags", "bob", "monitoring", "policymaker"],
        [("PUT users/bob", {**KEPT, "tags": "monitoring,policymaker"})],
        'Setting tags for user "bob" to [monitoring, policymaker] ...\n',
        id="set_user_tags keeps the password",
    ),
    pytest.param(
        ["add_vhost", "v2", "--description", "the second", "--tags", "a,b"],
        [("PUT vhosts/v2", {"description": "the second", "tags": "a,b"})],
        'Adding vhost "v2" ...\n',
        id="add_vhost",
    ),
    pytest.param(
        ["add_vhost", "v2", "--cell", "2"],
        [("PUT vhosts/v2", {"cell": 2})],
        'Adding vhost "v2" ...\n',
        id="add_vhost in a cell",
    ),
    pytest.param(["delete_vhost", ".."], [("DELETE vhosts/%2E%2E", None)], 'Deleting vhost ".." ...\n', id="dots"),
    pytest.param(
        ["enable_vhost_protection_from_deletion", "v1"],
        [("POST vhosts/v1/deletion/protection", None)],
        'Protecting vhost "v1" from deletion ...\n',
        id="enable_vhost_protection_from_deletion",
    ),
    pytest.param(
        ["disable_vhost_protection_from_deletion", "v1"],
        [("DELETE vhosts/v1/deletion/protection", None)],
        'Lifting protection of vhost "v1" from deletion ...\n',
        id="disable_vhost_protection_from_deletion",
    ),
    pytest.param(
        ["set_vhost_tags", "v1", "a", "b"],
        [("PUT vhosts/v1", {"tracing": True, "description": "d", "tags": "a,b"})],
        'Setting tags for virtual host "v1" to [a, b] ...\n',
        id="set_vhost_tags keeps the rest",
    ),
    pytest.param(
        ["trace_off", "-p", "v1"],
        [("PUT vhosts/v1", {"tracing": False, "description": "d", "tags": "t"})],
        'Stopping tracing for vhost "v1" ...\nTrace disabled for vhost v1\n',
        id="trace_off keeps the rest",
    ),
    pytest.param(
        ["trace_on", "-p", "v1"],
        [("PUT vhosts/v1", {"tracing": True, "description": "d", "tags": "t"})],
        'Starting tracing for vhost "v1" ...\nTrace enabled for vhost v1\n',
        id="trace_on",
    ),
    pytest.param(
        ["set_permissions", "-p", "v1", "bob", ".*", "^a", ""],
        [("PUT permissions/v1/bob", {"configure": ".*", "write": "^a", "read": ""})],
        'Setting permissions for user "bob" in vhost "v1" ...\n',
        id="set_permissions",
    ),
    pytest.param(
        ["clear_permissions", "bob"],
        [("DELETE permissions/%2F/bob", None)],
        'Clearing permissions for user "bob" in vhost "/" ...\n',
        id="clear_permissions",
    ),
    pytest.param(
        ["set_topic_permissions", "bob", "amq.topic", "^x", "^y"],
        [("PUT topic-permissions/%2F/bob", {"exchange": "amq.topic", "write": "^x", "read": "^y"})],
        'Setting topic permissions on "amq.topic" for user "bob" in vhost "/" ...\n',
        id="set_topic_permissions",
    ),
    pytest.param(
        ["clear_topic_permissions", "bob"],
        [("DELETE topic-permissions/%2F/bob", None)],
        'Clearing topic permissions for user "bob" in vhost "/" ...\n',
        id="clear_topic_permissions",
    ),
    pytest.param(
        ["clear_topic_permissions", "bob", "amq.topic"],
        [("DELETE topic-permissions/%2F/bob/amq.topic", None)],
        'Clearing topic permissions on "amq.topic" for user "bob" in vhost "/" ...\n',
        id="clear_topic_permissions on one exchange",
    ),
    pytest.param(
        ["set_vhost_limits", "-p", "v1", '{"max-queues":2}'],
        [
            ("PUT vhost-limits/v1/max-queues", {"value": 2}),
            ("DELETE vhost-limits/v1/max-connections", None),
            ("DELETE vhost-limits/v1/max-bindings", None),
            ("DELETE vhost-limits/v1/max-consumers", None),
        ],
        'Setting vhost limits to "{"max-queues":2}" for vhost "v1" ...\n',
        id="set_vhost_limits replaces",
    ),
    pytest.param(
        ["clear_vhost_limits"],
        [
            ("DELETE vhost-limits/%2F/max-connections", None),
            ("DELETE vhost-limits/%2F/max-queues", None),
            ("DELETE vhost-limits/%2F/max-bindings", None),
            ("DELETE vhost-limits/%2F/max-consumers", None),
        ],
        'Clearing vhost "/" limits ...\n',
        id="clear_vhost_limits",
    ),
    pytest.param(
        ["set_user_limits", "bob", '{"max-channels":2}'],
        [("PUT user-limits/bob/max-channels", {"value": 2})],
        'Setting user limits to "{"max-channels":2}" for user "bob" ...\n',
        id="set_user_limits adds",
    ),
    pytest.param(
        ["clear_user_limits", "bob", "max-channels"],
        [("DELETE user-limits/bob/max-channels", None)],
        'Clearing "max-channels" limit for user "bob" ...\n',
        id="clear_user_limits",
    ),
    pytest.param(
        ["clear_user_limits", "bob", "all"],
        [
            (f"DELETE user-limits/bob/max-{what}", None)
            for what in ("connections", "channels", "queues", "bindings", "consumers")
        ],
        'Clearing all limits for user "bob" ...\n',
        id="clear_user_limits all",
    ),
    pytest.param(
        ["set_parameter", "federation", "up", '{"uri":"x"}'],
        [
            (
                "PUT parameters/federation/%2F/up",
                {"component": "federation", "vhost": "/", "name": "up", "value": {"uri": "x"}},
            )
        ],
        'Setting runtime parameter "up" for component "federation" to "{"uri":"x"}" in vhost "/" ...\n',
        id="set_parameter",
    ),
    pytest.param(
        ["clear_parameter", "federation", "up"],
        [("DELETE parameters/federation/%2F/up", None)],
        'Clearing runtime parameter "up" for component "federation" on vhost "/" ...\n',
        id="clear_parameter",
    ),
    pytest.param(
        ["set_global_parameter", "gp", '"s"'],
        [("PUT global-parameters/gp", {"name": "gp", "value": "s"})],
        'Setting global runtime parameter "gp" to ""s"" ...\n',
        id="set_global_parameter",
    ),
    pytest.param(
        ["clear_global_parameter", "gp"],
        [("DELETE global-parameters/gp", None)],
        'Clearing global runtime parameter "gp" ...\n',
        id="clear_global_parameter",
    ),
    pytest.param(
        ["purge_queue", "q"],
        [("DELETE queues/%2F/q/contents", None)],
        "Purging queue 'q' in vhost '/' ...\n",
        id="purge_queue",
    ),
    pytest.param(
        ["delete_queue", "q", "--if-empty", "-u"],
        [("DELETE queues/%2F/q?if-empty=true&if-unused=true", None)],
        "Deleting queue 'q' on vhost '/' if queue is empty and unused ...\n"
        "Queue was successfully deleted with 4 ready messages\n",
        id="delete_queue",
    ),
    pytest.param(
        ["cancel_delayed_messages", "q", "17", "9"],
        [("DELETE queues/%2F/q/delayed/17", None), ("DELETE queues/%2F/q/delayed/9", None)],
        "Cancelling 2 delayed message(s) of queue 'q' in vhost '/' ...\n",
        id="cancel_delayed_messages",
    ),
    pytest.param(
        ["cancel_delayed_messages", "later", "--all", "--exchange", "-p", "v1"],
        [("DELETE exchanges/v1/later/delayed", None)],
        "Cancelling all delayed messages of exchange 'later' in vhost 'v1' ...\n",
        id="cancel_delayed_messages all of an exchange",
    ),
    pytest.param(
        ["drop_kept_messages", "prices", "EUR", "a/b", "-p", "v1"],
        [("DELETE exchanges/v1/prices/kept?key=EUR", None), ("DELETE exchanges/v1/prices/kept?key=a%2Fb", None)],
        "Dropping 2 kept message(s) of exchange 'prices' in vhost 'v1' ...\n",
        id="drop_kept_messages",
    ),
    pytest.param(
        ["drop_kept_messages", "prices", "--all"],
        [("DELETE exchanges/%2F/prices/kept", None)],
        "Dropping all kept messages of exchange 'prices' in vhost '/' ...\n",
        id="drop_kept_messages all",
    ),
    pytest.param(
        ["clear_deduplication_window", "once", "--exchange"],
        [("DELETE exchanges/%2F/once/deduplication", None)],
        "Clearing the deduplication window of exchange 'once' in vhost '/' ...\n",
        id="clear_deduplication_window",
    ),
    pytest.param(
        ["set_cluster_name", "here"],
        [("PUT cluster-name", {"name": "here"})],
        "Setting cluster name to here ...\n",
        id="set_cluster_name",
    ),
    pytest.param(
        ["enable_feature_flag", "quorum_queue"],
        [("PUT feature-flags/quorum_queue/enable", {})],
        'Enabling feature flag "quorum_queue" ...\n',
        id="enable_feature_flag",
    ),
    pytest.param(["enable_feature_flag", "all"], [], "Enabling all feature flags ...\n", id="enable_feature_flag all"),
    pytest.param(
        ["close_connection", "1 -> 2", "go"],
        [("DELETE connections/1%20-%3E%202", None)],
        "Closing connection 1 -> 2, reason: go...\n",
        id="close_connection",
    ),
    pytest.param(
        ["close_all_connections", "go"],
        [("DELETE connections/a", None), ("DELETE connections/c", None)],
        "Closing all connections in vhost /, reason: go...\nClosed 2 connections\n",
        id="close_all_connections of a virtual host",
    ),
    pytest.param(
        ["close_all_connections", "--global", "--limit", "2", "go"],
        [("DELETE connections/a", None), ("DELETE connections/b", None)],
        "Closing all connections to node gateway@here (across all vhosts), reason: go...\nClosed 2 connections\n",
        id="close_all_connections at most",
    ),
    pytest.param(
        ["close_all_user_connections", "bob", "go"],
        [("DELETE connections/b", None), ("DELETE connections/c", None)],
        "Closing connections of user bob, reason: go...\n",
        id="close_all_user_connections",
    ),
]

CONNECTIONS = [
    {"name": "a", "vhost": "/", "user": "al"},
    {"name": "b", "vhost": "v1", "user": "bob"},
    {"name": "c", "vhost": "/", "user": "bob"},
]


@pytest.mark.parametrize(("arguments", "changes", "said"), CHANGES)
def test_a_verb_sends_its_requests_and_prints_its_progress(
    ctl: Ctl, api: FakeApi, arguments: list[str], changes: list[tuple[str, object]], said: str
) -> None:
    api.answer("GET vhosts/v1", {"name": "v1", "tracing": True, "description": "d", "tags": ["t"]})
    api.answer("GET queues/%2F/q", {"messages_ready": 4})
    api.answer("GET connections", CONNECTIONS)
    for request, _ in changes:
        api.answer(request.partition("?")[0], status=204)
    result = ctl(*arguments)
    assert (result.code, result.err) == (0, "")
    assert result.out == said
    assert api.changes() == changes


READS = [
    #            command line, the resource, its objects, output below the banner
    (["list_users"], "users", [{"name": "g", "tags": ["a", "b"]}, {"name": "h", "tags": ""}], "g\t[a, b]\nh\t[]\n"),
    (["list_vhosts"], "vhosts", [{"name": "/"}], "/\n"),
    (["list_vhosts", "name,tracing"], "vhosts", [{"name": "/", "tracing": False}], "/\tfalse\n"),
    (["list_vhosts", "name,cell"], "vhosts", [{"name": "/", "cell": 2}], "/\t2\n"),
    (
        ["list_permissions"],
        "vhosts/%2F/permissions",
        [{"user": "u", "vhost": "/", "configure": ".*", "write": "^a", "read": ""}],
        "u\t.*\t^a\t\n",
    ),
    (
        ["list_user_permissions", "u"],
        "users/u/permissions",
        [{"user": "u", "vhost": "/", "configure": ".*", "write": "^a", "read": ""}],
        "/\t.*\t^a\t\n",
    ),
    (
        ["list_topic_permissions", "-p", "v1"],
        "vhosts/v1/topic-permissions",
        [{"user": "u", "vhost": "v1", "exchange": "e", "write": "w", "read": "r"}],
        "u\te\tw\tr\n",
    ),
    (
        ["list_user_topic_permissions", "u"],
        "users/u/topic-permissions",
        [{"user": "u", "vhost": "v1", "exchange": "e", "write": "w", "read": "r"}],
        "v1\te\tw\tr\n",
    ),
    (
        ["list_policies"],
        "policies/%2F",
        [{"vhost": "/", "name": "p", "pattern": "^", "apply-to": "all", "definition": {"a": 1}, "priority": 5}],
        '/\tp\t^\tall\t{"a":1}\t5\n',
    ),
    (["list_operator_policies"], "operator-policies/%2F", [], ""),
    (["list_exchanges"], "exchanges/%2F", [{"name": "", "type": "direct"}], "\tdirect\n"),
    (
        ["list_bindings"],
        "bindings/%2F",
        [{"source": "x", "destination": "q", "destination_type": "queue", "routing_key": "k", "arguments": {"n": 1}}],
        'x\texchange\tq\tqueue\tk\t[{"n",1}]\n',
    ),
    (
        ["list_connections", "pid", "user", "state"],
        "connections",
        [{"name": "1 -> 2", "user": "g", "state": "running"}],
        "1 -> 2\tg\trunning\n",
    ),
    (
        ["list_channels", "name", "connection", "prefetch_count"],
        "channels",
        [{"name": "c (1)", "connection_details": {"name": "c"}, "prefetch_count": 7}],
        "c (1)\tc\t7\n",
    ),
    (
        ["list_consumers"],
        "consumers/%2F",
        [
            {
                "queue": {"name": "q", "vhost": "/"},
                "channel_details": {"name": "c (1)"},
                "consumer_tag": "t",
                "ack_required": True,
                "prefetch_count": 7,
                "active": True,
                "arguments": {"x-priority": 3},
            }
        ],
        'q\tc (1)\tt\ttrue\t7\ttrue\t[{"x-priority",3}]\n',
    ),
    (["list_queues", "--online", "name"], "queues/%2F", [{"name": "a"}, {"name": "b", "state": "down"}], "a\n"),
    (["list_queues", "--offline", "name"], "queues/%2F", [{"name": "a"}, {"name": "b", "state": "down"}], "b\n"),
    (
        ["list_parameters", "-p", "v1"],
        "parameters",
        [
            {"vhost": "v1", "component": "shovel", "name": "s", "value": {"a": [1]}},
            {"vhost": "/", "component": "shovel", "name": "t", "value": {}},
        ],
        'shovel\ts\t{"a":[1]}\n',
    ),
    (["list_global_parameters"], "global-parameters", [{"name": "gp", "value": "s"}], 'gp\t"s"\n'),
    (["list_vhost_limits", "-p", "v1"], "vhost-limits/v1", [{"vhost": "v1", "value": {"a": 5}}], '{"a":5}\n'),
    (["list_vhost_limits"], "vhost-limits/%2F", [], "{}\n"),
    (
        ["list_vhost_limits", "--global"],
        "vhost-limits",
        [{"vhost": "v1", "value": {"a": 5}}, {"vhost": "v2", "value": {}}],
        'v1\t{"a":5}\n',
    ),
    (["list_user_limits"], "user-limits/guest", [{"user": "guest", "value": {}}], "{}\n"),
    (["list_user_limits", "--user", "u"], "user-limits/u", [{"user": "u", "value": {"a": 5}}], '{"a":5}\n'),
    (["list_user_limits", "--global"], "user-limits", [{"user": "u", "value": {"a": 5}}], 'u\t{"a":5}\n'),
    (["list_feature_flags"], "feature-flags", [{"name": "f", "state": "enabled", "desc": "d"}], "f\tenabled\n"),
]


@pytest.mark.parametrize(
    ("arguments", "resource", "objects", "printed"), READS, ids=[" ".join(read[0]) for read in READS]
)
def test_a_listing_prints_the_entities(
    ctl: Ctl, api: FakeApi, arguments: list[str], resource: str, objects: list[object], printed: str
) -> None:
    api.answer("GET whoami", {"name": "guest"})
    api.answer(f"GET {resource}", objects)
    result = ctl(*arguments, "--silent")
    assert (result.code, result.err) == (0, "")
    assert result.out == printed


def test_only_the_printed_fields_are_requested(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET consumers/%2F", [])
    ctl("list_consumers", "queue_name", "channel_pid")
    assert api.received[-1].target == "/api/consumers/%2F?columns=channel_details.name%2Cqueue.name"


POLICIES = [
    {"name": "low", "pattern": "^one", "apply-to": "queues", "definition": {}, "priority": 1},
    {"name": "high", "pattern": "one", "apply-to": "all", "definition": {}, "priority": 9},
    {"name": "other", "pattern": "two", "apply-to": "all", "definition": {}, "priority": 10},
    {"name": "exchanges", "pattern": "", "apply-to": "exchanges", "definition": {}, "priority": 11},
]


def test_policies_and_parameters_without_effect_are_reported(ctl: Ctl, api: FakeApi) -> None:
    policy = {"vhost": "/", "name": "fed", "pattern": "^f", "apply-to": "all", "definition": {}, "priority": 0}
    api.answer("GET policies/%2F", [{**policy, "without_effect": "no effect: ha-mode"}])
    assert "Without effect: policy 'fed' (no effect: ha-mode)\n" in ctl("list_policies").out
    assert "Without effect" not in ctl("list_policies", "-s").out
    api.answer("GET operator-policies/%2F", [{**policy, "without_effect": "no effect: ha-mode"}])
    assert "Without effect: operator policy 'fed' (no effect: ha-mode)\n" in ctl("list_operator_policies").out
    parameter = {"vhost": "/", "component": "shovel", "name": "s", "value": {}}
    api.answer("GET vhosts", [{"name": "/"}])
    api.answer("GET parameters", [{**parameter, "without_effect": "component shovel not found"}])
    assert "Without effect: parameter 's' (component shovel not found)\n" in ctl("list_parameters").out


def test_the_policy_that_applies_is_the_first_of_those_that_match(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET policies/%2F", POLICIES)
    api.answer("GET queues/%2F/one-meg", {"name": "one-meg"})
    api.answer("GET exchanges/%2F/one", {"name": "one"})
    names = [line.split("\t")[1] for line in ctl("list_policies_that_match", "one-meg", "-s").out.splitlines()]
    assert names == ["high", "low"]
    printed = ctl("list_policies_that_match", "one", "--object-type", "exchange", "-s").out
    assert [line.split("\t")[1] for line in printed.splitlines()] == ["exchanges", "high"]


def test_the_reason_for_closing_a_connection_is_sent_on_one_line(ctl: Ctl, api: FakeApi) -> None:
    api.answer("DELETE connections/c", status=204)
    ctl("close_connection", "c", "for\nmaintenance")
    assert api.received[-1].reason == "for maintenance"


def test_a_connection_that_has_closed_already_is_no_error(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET connections", CONNECTIONS)
    api.answer("DELETE connections/c", status=204)
    assert ctl("close_all_connections", "go", "-q").out == "Closed 1 connections\n"


def test_definitions_are_exported_unchanged(ctl: Ctl, api: FakeApi, tmp_path: Path) -> None:
    api.answer("GET definitions", {"users": []})
    api.answer("GET definitions/v1", {"queues": []})
    file = tmp_path / "definitions.json"
    assert ctl("export_definitions", str(file)).out == f'Exporting definitions in JSON to a file at "{file}" ...\n'
    assert file.read_text() == '{"users": []}'
    assert ctl("export_definitions", "-", "-p", "v1").out == '{"queues": []}\n'


def test_an_export_says_how_many_passwords_it_does_not_have(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET definitions", {"parameters": [{"value": {"uri": ["amqp://u:***@a", "amqp://u:***@b"]}}]})
    done = ctl("export_definitions", "-")
    assert done.err == "passwords in URIs replaced by ***: 2; --with-secrets exports them\n"
    assert ctl("export_definitions", "-", "--with-secrets").err == ""


def test_a_parameter_is_announced_without_its_password(ctl: Ctl, api: FakeApi) -> None:
    api.answer("PUT parameters/shovel/%2F/s", status=204)
    done = ctl("set_parameter", "shovel", "s", '{"src-uri": "amqp://u:opensesame@a"}')
    assert "amqp://u:***@a" in done.out
    assert "opensesame" not in done.out
    assert api.changes()[-1][1]["value"] == {"src-uri": "amqp://u:opensesame@a"}


def test_definitions_are_imported_into_the_broker_or_a_virtual_host(ctl: Ctl, api: FakeApi, tmp_path: Path) -> None:
    api.answer("POST definitions", status=204)
    api.answer("POST definitions/v1", status=204)
    file = tmp_path / "definitions.json"
    file.write_text('{"users": []}')
    assert ctl("import_definitions", str(file)).code == 0
    assert ctl("-p", "v1", "import_definitions", str(file)).code == 0
    assert api.changes() == [("POST definitions", {"users": []}), ("POST definitions/v1", {"users": []})]


def test_a_password_is_hashed_without_the_broker(ctl: Ctl, api: FakeApi) -> None:
    printed = ctl("hash_password", "secret", "-s").out.strip()
    assert len(base64.b64decode(printed)) == 36
    assert verify_password("secret", printed, "rabbit_password_hashing_sha256")
    assert api.received == []


def test_a_user_is_authenticated_with_the_given_password(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET whoami", {"name": "bob"})
    assert ctl("authenticate_user", "bob", "s:e").out == 'Authenticating user "bob" ...\nSuccess\n'
    assert api.received[-1].credentials == "bob:s:e"
    api.answer("GET whoami", {"error": "not_authorised", "reason": "Not management user"}, status=401)
    assert ctl("authenticate_user", "bob", "s").code == 0
