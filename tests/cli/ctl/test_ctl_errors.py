"""What goes wrong is one line that names it, and an exit code."""

import io
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.certificates import Authority
from tests.cli.ctl.fake_api import FakeApi, fake_api
from tests.cli.ctl.running import Ctl

PROJECT = Path(__file__).parents[3]

FAILURES = [
    #            command line, exit code, the line
    ("list_queus", 64, "Command 'list_queus' not found. Did you mean 'list_queues'?"),
    ("zzz", 64, "Command 'zzz' not found."),
    ("help zzz", 64, "Command 'zzz' not found."),
    ("join_cluster rabbit@a", 64, "Command 'join_cluster' is not implemented: a gateway is one node"),
    (
        "set_policy x",
        64,
        "Missing argument 'PATTERN'. Usage: gatewayctl set_policy [OPTIONS] NAME PATTERN DEFINITION",
    ),
    (
        "list_queues --wrong",
        64,
        "No such option '--wrong'. Usage: gatewayctl list_queues [OPTIONS] [COLUMNS]...",
    ),
    (
        "clear_policy a b",
        64,
        "Got unexpected extra argument (b) Usage: gatewayctl clear_policy [OPTIONS] NAME",
    ),
    ("list_bindings wrong", 64, None),
    ("list_queues name,bad", 64, None),
    ("list_queues --online --offline", 64, "a queue is not both online and offline"),
    ("list_queues --formatter=erlang", 64, None),
    ("set_policy a b {} --priority high", 64, None),
    ("list_queues --timeout 0", 64, None),
    ("list_users --url gopher://x", 64, "'gopher://x' is not a URL such as http://127.0.0.1:15672"),
    ("list_users --url http://x:y", 64, None),
    ("delete_queue nope", 64, "queue 'nope' does not exist in vhost '/'"),
    ("delete_vhost v9", 65, "Virtual host 'v9' does not exist"),
    ("list_queues -p v9", 65, "Virtual host 'v9' does not exist"),
    ("list_permissions -p v9", 65, "Virtual host 'v9' does not exist"),
    ("set_permissions -p v9 bob a b c", 65, "Virtual host 'v9' does not exist"),
    ("set_policy a b {} -p v9", 65, "Virtual host 'v9' does not exist"),
    ("clear_policy a -p v9", 65, "Virtual host 'v9' does not exist"),
    ("enable_vhost_protection_from_deletion v9", 65, "Virtual host 'v9' does not exist"),
    ("disable_vhost_protection_from_deletion v9", 65, "Virtual host 'v9' does not exist"),
    ("trace_on -p v9", 65, "Virtual host 'v9' does not exist"),
    ("set_vhost_limits {} -p v9", 65, "Virtual host 'v9' does not exist"),
    ("list_parameters -p v9", 65, "Virtual host 'v9' does not exist"),
    ("import_definitions none.json", 65, "cannot read none.json: No such file or directory"),
    ("export_definitions /none/x.json", 65, "cannot write /none/x.json: No such file or directory"),
    ("delete_user al", 67, 'User "al" does not exist'),
    ("change_password al x", 67, 'User "al" does not exist'),
    ("set_user_tags al", 67, 'User "al" does not exist'),
    ("set_permissions al a b c", 67, 'User "al" does not exist'),
    ("list_user_permissions al", 67, 'User "al" does not exist'),
    ("set_user_limits al {}", 67, 'User "al" does not exist'),
    ("clear_policy nope", 69, "policy 'nope' does not exist in vhost '/'"),
    ("clear_operator_policy nope", 69, "operator policy 'nope' does not exist in vhost '/'"),
    ("clear_parameter c nope", 69, "parameter 'nope' of component 'c' does not exist in vhost '/'"),
    ("clear_global_parameter nope", 69, "global parameter 'nope' does not exist"),
    ("purge_queue nope -p v1", 69, "queue 'nope' does not exist in vhost 'v1'"),
    ("close_connection nope why", 69, "connection 'nope' does not exist"),
    ("set_policy a b {bad", 69, None),
    ("set_policy a b []", 69, "the definition must be a JSON object, not []"),
    ("set_global_parameter a bad", 69, None),
    ("add_user bob x", 70, 'User "bob" already exists'),
]


@pytest.mark.parametrize(("line", "code", "reason"), FAILURES, ids=[failure[0] for failure in FAILURES])
def test_a_failure_is_one_line_and_a_code(ctl: Ctl, api: FakeApi, line: str, code: int, reason: str | None) -> None:
    api.answer("GET definitions", {})
    ended = ctl(*line.split())
    assert ended.code == code
    assert ended.err.startswith("Error: ")
    assert len(ended.err.splitlines()) == 1
    if reason is not None:
        assert ended.err == f"Error: {reason}\n"


def test_an_unknown_column_is_told_with_those_there_are(ctl: Ctl) -> None:
    told = ctl("list_queues", "name", "bad").err
    assert told.startswith("Error: Info key(s) bad are not supported; there are arguments, auto_delete, ")


DECLINED = [
    #            status, answer, exit code, the line
    (
        400,
        {"error": "bad_request", "reason": "Validation failed\n\npattern should be regular expression\n"},
        69,
        "Validation failed: pattern should be regular expression",
    ),
    (400, {"error": "bad_request", "reason": ["invalid_regexp", 0]}, 69, '["invalid_regexp",0]'),
    (401, {"error": "not_authorized", "reason": "Login failed"}, 77, "the broker refuses user 'guest': Login failed"),
    (403, {"error": "x", "reason": "no"}, 77, "the broker refuses user 'guest': no"),
    (500, {"error": "x", "reason": "oops"}, 70, None),
    (502, None, 70, None),
]


@pytest.mark.parametrize(("status", "answer", "code", "reason"), DECLINED)
def test_what_the_broker_declines_is_told(
    ctl: Ctl, api: FakeApi, status: int, answer: object, code: int, reason: str | None
) -> None:
    api.answer("PUT policies/%2F/a", answer, status)
    ended = ctl("set_policy", "a", "(", "{}", "-q")
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("Error: ")
    assert len(ended.err.splitlines()) == 1
    if reason is not None:
        assert ended.err == f"Error: {reason}\n"


def test_an_answer_that_is_not_json_is_told(ctl: Ctl, api: FakeApi) -> None:
    api.answers["GET whoami"] = (200, b"<html>")
    ended = ctl("ping", "-q")
    assert (ended.code, ended.err) == (70, f"Error: {api.url} is not a management API: its answer is not JSON\n")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_nobody_there_is_69(ctl: Ctl) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    ended = ctl("--url", url, "ping", "-q")
    assert (ended.code, ended.err) == (69, f"Error: no answer from {url}: Connection refused\n")


def test_a_host_without_a_sensible_name_is_69(ctl: Ctl) -> None:
    ended = ctl("--url", "http://a..b", "ping", "-q")
    assert ended.code == 69
    assert ended.err.startswith("Error: no answer from http://a..b:15672: ")


def test_a_pattern_that_cannot_be_read_here_is_told(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET policies/%2F", [{"name": "p", "pattern": "(?|a)", "apply-to": "all"}])
    api.answer("GET queues/%2F/q", {"name": "q"})
    ended = ctl("list_policies_that_match", "q")
    assert ended.code == 69
    assert ended.err.startswith("Error: the pattern of policy 'p' cannot be read here: ")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def tls_api(authority: Authority) -> Iterator[FakeApi]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.sign("management"))
    with fake_api(context) as api:
        api.answer("GET whoami", {"name": "guest"})
        yield api


def test_https_wants_a_certificate_it_can_trust(ctl: Ctl, authority: Authority, tls_api: FakeApi) -> None:
    trust = ("--url", tls_api.url, "--cacert", str(authority.certificate))
    assert ctl("ping", "-q", *trust).out == "Ping succeeded\n"
    assert ctl("authenticate_user", "bob", "secret", "-q", *trust).out == "Success\n"
    ended = ctl("ping", "-q", "--url", tls_api.url)
    assert ended.code == 69
    assert "certificate verify failed" in ended.err.lower().replace("_", " ")


def test_a_file_without_certificates_is_65(ctl: Ctl) -> None:
    ended = ctl("ping", "-q", "--url", "https://127.0.0.1:1", "--cacert", "none.pem")
    assert (ended.code, ended.err) == (65, "Error: cannot use none.pem: No such file or directory\n")


def test_silence_is_69_when_the_time_is_up(ctl: Ctl) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        ended = ctl("--url", url, "ping", "-q", "-t", "0.2")
    assert (ended.code, ended.err) == (69, f"Error: no answer from {url}: timed out\n")


def test_a_queue_that_is_not_empty_stays(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET queues/%2F/q", {"messages_ready": 1})
    api.answer("DELETE queues/%2F/q", {"error": "bad_request", "reason": "queue 'q' in vhost '/' not empty"}, 400)
    ended = ctl("delete_queue", "q", "--if-empty")
    assert (ended.code, ended.err) == (64, "Error: queue 'q' in vhost '/' not empty\n")


def test_a_wrong_password_is_65(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET whoami", {"error": "not_authorized", "reason": "Login failed"}, 401)
    ended = ctl("authenticate_user", "bob", "x", "-q")
    assert (ended.code, ended.err) == (65, 'Error: failed to authenticate user "bob": Login failed\n')


def test_a_password_comes_from_standard_input(ctl: Ctl, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.answer("PUT users/al", status=201)
    monkeypatch.setattr("sys.stdin", io.StringIO("from stdin\n"))
    assert ctl("add_user", "al").code == 0
    assert api.changes() == [("PUT users/al", {"password": "from stdin", "tags": ""})]
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    ended = ctl("add_user", "al")
    assert (ended.code, ended.err) == (65, "Error: Password is not provided via argument or stdin\n")


def test_definitions_that_are_not_json_are_65(ctl: Ctl, api: FakeApi, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text("{")
    assert ctl("import_definitions", str(file)).code == 65
    assert api.changes() == []


LOGINS = [
    pytest.param({}, [], "guest:guest", id="the default"),
    pytest.param({"GATEWAYCTL_USERNAME": "env", "GATEWAYCTL_PASSWORD": "e"}, [], "env:e", id="the environment"),
    pytest.param({"GATEWAYCTL_USERNAME": "env"}, ["--username", "cli", "--password", "c"], "cli:c", id="options"),
]


@pytest.mark.parametrize(("environment", "options", "login"), LOGINS)
def test_who_logs_in(
    ctl: Ctl,
    api: FakeApi,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    options: list[str],
    login: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ctl("ping", *options)
    ctl(*options, "ping")
    assert [asked.credentials for asked in api.asked] == [login, login]


def test_a_url_may_hold_the_credentials_and_a_prefix(ctl: Ctl, api: FakeApi) -> None:
    ctl("ping", "--url", f"http://al%40x:p%3A@127.0.0.1:{api.port}/mq/")
    assert (api.asked[-1].credentials, api.asked[-1].target) == ("al@x:p:", "/mq/api/whoami")


def test_nothing_at_all_prints_the_verbs(ctl: Ctl) -> None:
    ended = ctl()
    assert ended.code == 64
    assert "list_queues" in ended.err


def test_options_of_rabbitmqctl_that_mean_nothing_here_are_taken(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET whoami", {})
    assert ctl("-n", "rabbit@host", "ping", "--longnames").code == 0


def test_nobody_reads_what_is_printed(api: FakeApi) -> None:
    api.answer("GET queues/%2F", [{"name": "q" * 100, "messages": 1}] * 5000)
    read, write = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-m", "gateway.cli.ctl", "--url", api.url, "list_queues"],
        cwd=PROJECT,
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    os.close(read)
    _, error = child.communicate(timeout=30)
    assert error == b""


def test_a_broker_that_starts_says_how_far_it_is(ctl: Ctl, api: FakeApi) -> None:
    reason = "the broker is starting, 5 of 100 records recovered; try again"
    api.answer("GET overview", {"status": "starting", "reason": reason}, status=503)
    ended = ctl("status")
    assert (ended.code, ended.err) == (69, f"Error: {reason}\n")
