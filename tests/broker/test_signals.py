"""Signals to a running broker: stop, reload and dump; no other signal ends it."""

import signal
import socket
import ssl
import time
from pathlib import Path

import pika
import pytest

from tests.broker.conftest import Connect
from tests.broker.tls.certificates import Authority
from tests.running import HOST, Gateway
from tests.waiting import wait_until

STUCK = """
import pathlib
import time
from gateway.api import hookimpl

class Stuck:
    def __init__(self, arguments): pass
    def bind(self, binding): pass
    def unbind(self, binding): pass
    def route(self, message):
        pathlib.Path(__file__).with_suffix(".stuck").touch()
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            sum(range(100))
        return []

@hookimpl
def gateway_exchange_types():
    return {"x-stuck": Stuck}
"""


def configured(gateway: Gateway, text: str) -> Path:
    file = gateway.directory / "gateway.toml"
    file.write_text(text)
    gateway.options = ("--config", str(file))
    return file


@pytest.fixture
def stuck(gateway: Gateway, connect: Connect) -> Gateway:
    """Return a gateway whose reactor is blocked by a minute of Python code."""
    plugins = gateway.directory / "plugins"
    plugins.mkdir(mode=0o755)
    (plugins / "stuck.py").write_text(STUCK)
    gateway.start(f"plugins_dir={plugins}", 'vhosts."/".plugins.stuck={}')
    channel = connect().channel()
    channel.exchange_declare("stuck", "x-stuck")
    channel.basic_publish("stuck", "", b"")
    channel.connection.process_data_events(0)
    wait_until((plugins / "stuck.stuck").exists, "the publish does not arrive")
    return gateway


# Stopping


def test_a_signal_during_the_start_ends_the_process_without_a_traceback(gateway: Gateway) -> None:
    gateway.from_scratch = True
    for delay_s in (0.5, 1.0, 1.5, 2.0, 2.5):
        gateway._spawn(())
        time.sleep(delay_s)  # somewhere in the start
        gateway.stop()
        assert "Traceback" not in gateway.log


def test_the_process_stops_although_the_reactor_is_blocked(stuck: Gateway) -> None:
    began = time.monotonic()
    assert stuck.stop() == 70
    assert time.monotonic() - began < 9
    assert "the reactor is blocked" in stuck.log
    assert 'stuck.py", line' in stuck.log


def test_a_second_signal_ends_a_blocked_process_immediately(stuck: Gateway) -> None:
    stuck.child.send_signal(signal.SIGTERM)
    time.sleep(1.2)  # the time for the first signal to act
    began = time.monotonic()
    assert stuck.stop() == 70
    assert time.monotonic() - began < 3, "after the first signal alone it takes about four more seconds"


def test_a_second_signal_does_not_disturb_an_orderly_stop(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    connect()
    gateway.child.send_signal(signal.SIGTERM)
    gateway.child.send_signal(signal.SIGTERM)
    assert gateway.stop() == 0


# Signals that do not end the process


@pytest.mark.parametrize("number", [signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP])
def test_other_signals_do_not_end_the_process(number: signal.Signals, gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    connection = connect()
    gateway.child.send_signal(number)
    if number is signal.SIGHUP:
        gateway.log_has("info reloaded applied=none needs_restart=none")
    elif number is not signal.SIGPIPE:
        assert "connections=1" in gateway.log_has("info dump")
        gateway.log_has("Current thread")
    connection.channel().queue_declare("still-there", exclusive=True)
    assert gateway.stop() == 0


def test_a_dump_shows_the_stack_of_a_blocked_reactor(stuck: Gateway) -> None:
    stuck.child.send_signal(signal.SIGUSR1)
    stuck.log_has('stuck.py", line')
    stuck.log_has("info dump")


# Reloading


def test_a_reload_applies_live_settings_and_lists_those_that_need_a_restart(gateway: Gateway, connect: Connect) -> None:
    file = configured(gateway, 'memory_high_watermark = 0.5\n[log]\nlevel = "info"\n[amqp]\nheartbeat_s = 60\n')
    gateway.start()
    old = connect()
    file.write_text('node_name = "other"\nmemory_high_watermark = 0.4\n[log]\nlevel="debug"\n[amqp]\nheartbeat_s = 7\n')
    gateway.child.send_signal(signal.SIGHUP)
    line = gateway.log_has("info reloaded")
    assert 'applied="memory_high_watermark, amqp.heartbeat_s, log.level" needs_restart=node_name' in line
    assert connect()._impl.params.heartbeat == 7
    assert old.is_open
    old.channel().queue_declare("q", exclusive=True)
    gateway.log_has("debug queue.created")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("memory_high_watermark = 7.5\n[log]\nlevel = 'debug'\n", "memory_high_watermark: must be"),
        ("[log\n", "not TOML"),
        ("no_such_setting = 1\n", "no such setting"),
        ("[log]\nfile = '/proc/no/such/file'\nlevel = 'debug'\n", "log.file: must be a file"),
    ],
)
def test_a_reload_of_an_invalid_file_is_refused(gateway: Gateway, text: str, reason: str, connect: Connect) -> None:
    file = configured(gateway, "")
    gateway.start()
    file.write_text(text)
    gateway.child.send_signal(signal.SIGHUP)
    assert reason in gateway.log_has("error reload refused, nothing was changed")
    connect().channel().queue_declare("q", exclusive=True)
    assert "debug queue.created" not in gateway.log
    assert gateway.stop() == 0


def test_a_log_file_that_was_moved_is_reopened(gateway: Gateway) -> None:
    log = gateway.directory / "own.log"
    gateway.start(f"log.file={log}")
    log.rename(log.with_suffix(".1"))
    gateway.child.send_signal(signal.SIGHUP)
    wait_until(lambda: log.exists() and "reloaded" in log.read_text(), "the log file is not reopened")
    gateway.child.send_signal(signal.SIGUSR2)
    wait_until(lambda: "Current thread" in log.read_text(), "the dump was written to another file")


def served_certificate(gateway: Gateway) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection(gateway.addresses["amqps"], timeout=5) as raw,
        context.wrap_socket(raw, server_hostname=HOST) as wrapped,
    ):
        return wrapped.getpeercert(binary_form=True) or b""


def test_a_reload_takes_new_certificates_and_keeps_connections_open(gateway: Gateway, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.sign("server")
    gateway.start(f"tls.certificate={certificate}", f"tls.key={key}")
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    host, port = gateway.addresses["amqps"]
    options = pika.SSLOptions(context, HOST)
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, ssl_options=options))
    before = served_certificate(gateway)
    new_certificate, new_key = authority.sign("renewed")
    certificate.write_bytes(new_certificate.read_bytes())
    gateway.child.send_signal(signal.SIGHUP)  # the key is still the old one
    gateway.log_has("reload refused, nothing was changed")
    assert served_certificate(gateway) == before
    key.write_bytes(new_key.read_bytes())
    gateway.child.send_signal(signal.SIGHUP)
    gateway.log_has("info reloaded")
    assert served_certificate(gateway) != before
    connection.channel().queue_declare("still-there", exclusive=True)
    connection.close()


def test_a_reload_reads_the_files_of_variables_again(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed secret is noticed as any other setting; its value is not written."""
    secret, limit = gateway.directory / "passcode", gateway.directory / "limit"
    secret.write_text("Xy-secret-1\n")
    limit.write_text("7\n")
    monkeypatch.setenv("GATEWAY__STOMP__DEFAULT_PASSCODE_FILE", str(secret))
    monkeypatch.setenv("GATEWAY__AMQP__LOGIN_TIMEOUT_S_FILE", str(limit))
    gateway.start()
    secret.write_text("Xy-secret-2\n")
    limit.write_text("8\n")
    gateway.child.send_signal(signal.SIGHUP)
    gateway.log_has("reloaded applied=amqp.login_timeout_s needs_restart=stomp.default_passcode")
    assert "Xy-secret" not in gateway.log
