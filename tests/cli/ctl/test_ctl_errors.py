"""An error is one line with its cause, and an exit code."""

import io
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.tls.certificates import Authority
from tests.cli.ctl.fake_api import FakeApi, fake_api
from tests.cli.ctl.running import Ctl
from tests.ports import free_port

PROJECT = Path(__file__).parents[3]

FAILURES = [
    #            command line, exit code, error line
    ("list_queus", 64, "Command 'list_queus' not found. Did you mean 'list_queues'?"),
    ("zzz", 64, "Command 'zzz' not found."),
    ("help zzz", 64, "Command 'zzz' not found."),
    ("join_cluster rabbit@a", 64, "Command 'join_cluster' is not implemented: a gateway is a single node"),
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
    ("list_queues --online --offline", 64, "--online and --offline exclude each other"),
    ("list_queues --formatter=erlang", 64, None),
    ("set_policy a b {} --priority high", 64, None),
    ("list_queues --timeout 0", 64, None),
    ("list_users --url gopher://x", 64, "'gopher://x' is not a URL such as http://127.0.0.1:15672"),
    ("list_users --url http://x:y", 64, None),
    (
        "list_users --url http://admin:secret/word@127.0.0.1:1",
        64,
        "'http://***@127.0.0.1:1' is not a URL: in a password / is %2F, ? is %3F, # is %23 and @ is %40",
    ),
    (
        "list_users --url http://admin:1/secret@127.0.0.1:1",
        64,
        "'http://***@127.0.0.1:1' is not a URL such as http://127.0.0.1:15672",
    ),
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
def test_an_error_is_one_line_and_an_exit_code(
    ctl: Ctl, api: FakeApi, line: str, code: int, reason: str | None
) -> None:
    api.answer("GET definitions", {})
    result = ctl(*line.split())
    assert result.code == code
    assert result.err.startswith("Error: ")
    assert len(result.err.splitlines()) == 1
    if reason is not None:
        assert result.err == f"Error: {reason}\n"


def test_the_error_for_an_unknown_column_lists_the_supported_ones(ctl: Ctl) -> None:
    printed = ctl("list_queues", "name", "bad").err
    assert printed.startswith("Error: Info key(s) bad are not supported; supported are arguments, auto_delete, ")


DECLINED = [
    #            status, answer, exit code, error line
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
def test_the_brokers_reason_for_a_refusal_is_printed(
    ctl: Ctl, api: FakeApi, status: int, answer: object, code: int, reason: str | None
) -> None:
    api.answer("PUT policies/%2F/a", answer, status)
    result = ctl("set_policy", "a", "(", "{}", "-q")
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("Error: ")
    assert len(result.err.splitlines()) == 1
    if reason is not None:
        assert result.err == f"Error: {reason}\n"


def test_an_answer_that_is_not_json_is_reported(ctl: Ctl, api: FakeApi) -> None:
    api.answers["GET whoami"] = (200, b"<html>")
    result = ctl("ping", "-q")
    assert (result.code, result.err) == (70, f"Error: {api.url} is not a management API: its answer is not JSON\n")


def test_a_refused_connection_exits_with_69(ctl: Ctl) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    result = ctl("--url", url, "ping", "-q")
    assert (result.code, result.err) == (69, f"Error: no answer from {url}: Connection refused\n")


def test_an_invalid_host_name_exits_with_69(ctl: Ctl) -> None:
    result = ctl("--url", "http://a..b", "ping", "-q")
    assert result.code == 69
    assert result.err.startswith("Error: no answer from http://a..b:15672: ")


def test_an_unsupported_pattern_is_reported(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET policies/%2F", [{"name": "p", "pattern": "(?|a)", "apply-to": "all"}])
    api.answer("GET queues/%2F/q", {"name": "q"})
    result = ctl("list_policies_that_match", "q")
    assert result.code == 69
    assert result.err.startswith("Error: the pattern of policy 'p' is not supported: ")


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


def test_https_requires_a_trusted_certificate(ctl: Ctl, authority: Authority, tls_api: FakeApi) -> None:
    trust = ("--url", tls_api.url, "--cacert", str(authority.certificate))
    assert ctl("ping", "-q", *trust).out == "Ping succeeded\n"
    assert ctl("authenticate_user", "bob", "secret", "-q", *trust).out == "Success\n"
    result = ctl("ping", "-q", "--url", tls_api.url)
    assert result.code == 69
    unknown = "its certificate is not trusted: unable to get local issuer certificate"
    assert result.err == f"Error: no answer from {tls_api.url}: {unknown}; --cacert or a profile's ca names its CA\n"


def test_https_to_a_port_of_http_is_named(ctl: Ctl, api: FakeApi) -> None:
    url = api.url.replace("http:", "https:")
    result = ctl("list_users", "--url", url)
    assert result.err == f"Error: no answer from {url}: it does not speak TLS, as a port of http:// does not\n"


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (b"", "it closed the connection without an answer, as a port of https:// does"),
        (b"AMQP\x00\x00\x09\x01", "it is not an HTTP server"),
    ],
    ids=["nothing", "AMQP"],
)
def test_a_port_of_another_protocol_is_named(ctl: Ctl, said: bytes, fault: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(said)

        server = threading.Thread(target=serve)
        server.start()
        result = ctl("list_users", "--url", url)
        server.join(10)
    assert (result.code, result.err) == (69, f"Error: no answer from {url}: {fault}\n")


def test_a_missing_file_of_certificates_exits_with_65(ctl: Ctl) -> None:
    result = ctl("ping", "-q", "--url", "https://127.0.0.1:1", "--cacert", "none.pem")
    assert (result.code, result.err) == (65, "Error: cannot use none.pem: No such file or directory\n")


def test_a_timeout_exits_with_69(ctl: Ctl) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        result = ctl("--url", url, "ping", "-q", "-t", "0.2")
    assert (result.code, result.err) == (69, f"Error: no answer from {url}: timed out\n")


def test_a_queue_that_is_not_empty_is_not_deleted(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET queues/%2F/q", {"messages_ready": 1})
    api.answer("DELETE queues/%2F/q", {"error": "bad_request", "reason": "queue 'q' in vhost '/' not empty"}, 400)
    result = ctl("delete_queue", "q", "--if-empty")
    assert (result.code, result.err) == (64, "Error: queue 'q' in vhost '/' not empty\n")


def test_a_wrong_password_exits_with_65(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET whoami", {"error": "not_authorized", "reason": "Login failed"}, 401)
    result = ctl("authenticate_user", "bob", "x", "-q")
    assert (result.code, result.err) == (65, 'Error: failed to authenticate user "bob": Login failed\n')


def test_a_password_is_read_from_standard_input(ctl: Ctl, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.answer("PUT users/al", status=201)
    monkeypatch.setattr("sys.stdin", io.StringIO("from stdin\n"))
    assert ctl("add_user", "al").code == 0
    assert api.changes() == [("PUT users/al", {"password": "from stdin", "tags": ""})]
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    result = ctl("add_user", "al")
    assert (result.code, result.err) == (65, "Error: Password is not provided via argument or stdin\n")


def test_definitions_that_are_not_json_exit_with_65(ctl: Ctl, api: FakeApi, tmp_path: Path) -> None:
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
def test_credentials_come_from_options_the_environment_or_defaults(
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
    assert [received.credentials for received in api.received] == [login, login]


def test_a_url_may_hold_the_credentials_and_a_prefix(ctl: Ctl, api: FakeApi) -> None:
    ctl("ping", "--url", f"http://al%40x:p%3A@127.0.0.1:{api.port}/mq/")
    assert (api.received[-1].credentials, api.received[-1].target) == ("al@x:p:", "/mq/api/whoami")


def test_an_empty_command_line_prints_the_verbs(ctl: Ctl) -> None:
    result = ctl()
    assert result.code == 64
    assert "list_queues" in result.err


def test_options_of_rabbitmqctl_without_effect_are_accepted(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET whoami", {})
    assert ctl("-n", "rabbit@host", "ping", "--longnames").code == 0


def test_a_closed_output_pipe_is_no_error(api: FakeApi) -> None:
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


def test_the_progress_of_a_starting_broker_is_printed(ctl: Ctl, api: FakeApi) -> None:
    reason = "the broker is starting, 5 of 100 records recovered; try again"
    api.answer("GET overview", {"status": "starting", "reason": reason}, status=503)
    result = ctl("status")
    assert (result.code, result.err) == (69, f"Error: {reason}\n")
