"""``gateway quickstart``: a tour of a running broker."""

import os
import pty
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from gateway.cli.ctl.main import main as ctl
from gateway.cli.main import main
from gateway.cli.quickstart.device import DeviceRefused, publish_once
from tests.ports import free_port
from tests.running import HOST, Gateway, gateway_in


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_in(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


def url(gateway: Gateway) -> str:
    host, port = gateway.addresses["management"]
    return f"http://{host}:{port}"


def test_each_step_happens_at_the_ports_of_the_broker(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quickstart", "--url", url(gateway), "--yes"]) == 0
    printed = capsys.readouterr().out
    assert f"amqp://guest:guest@{HOST}:{gateway.addresses['amqp'][1]}/quickstart" in printed
    assert f"mosquitto_pub -h {HOST} -p {gateway.addresses['mqtt'][1]} -u quickstart:guest" in printed
    results = [line for line in printed.splitlines() if line.startswith("-> ")]
    assert results[:2] == [
        "-> The queue 'greetings' took the message and delivered it: 'Hello World!'",
        "-> The queue 'readings' has '21.5' with the routing key 'sensors.hall'",
    ]
    assert "timestamp_in_ms" in results[2]
    assert printed.count("The virtual host 'quickstart' is deleted.") == 1


def test_the_tour_can_be_kept_and_is_not_repeated_then(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quickstart", "--url", url(gateway), "--no-pause", "--keep"]) == 0
    assert main(["quickstart", "--url", url(gateway), "--no-pause"]) == 65
    assert capsys.readouterr().err == (
        "gateway: virtual host 'quickstart' exists: gatewayctl delete_vhost quickstart deletes it\n"
    )
    assert ctl(["--url", url(gateway), "delete_vhost", "quickstart"]) == 0


def test_a_password_of_your_own_is_not_printed(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    assert ctl(["--url", url(gateway), "add_user", "ann", "s3cret/"]) == 0
    assert ctl(["--url", url(gateway), "set_user_tags", "ann", "administrator"]) == 0
    assert main(["quickstart", "--url", url(gateway), "--username", "ann", "--password", "s3cret/", "--yes"]) == 0
    printed = capsys.readouterr().out
    assert "amqp://ann:PASSWORD@" in printed
    assert "-u quickstart:ann -P PASSWORD" in printed
    assert "s3cret" not in printed


def test_without_a_broker_one_line_says_how_to_start_one(capsys: pytest.CaptureFixture[str]) -> None:
    address = f"http://{HOST}:{free_port()}"
    assert main(["quickstart", "--url", address]) == 69
    assert capsys.readouterr().err == (
        f"gateway: no answer from {address}: Connection refused; "
        "`gateway run` starts a broker, --url names its management API\n"
    )


def test_a_wrong_password_is_one_line(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quickstart", "--url", url(gateway), "--password", "wrong"]) == 77
    assert capsys.readouterr().err == "gateway: the broker refuses user 'guest': Login failed\n"


def test_on_a_terminal_each_step_waits_for_enter(gateway: Gateway) -> None:
    outside, inside = pty.openpty()
    command = [sys.executable, "-m", "gateway", "quickstart", "--url", url(gateway)]
    with subprocess.Popen(command, stdin=inside, stdout=subprocess.PIPE, text=True) as tour:
        os.close(inside)
        assert tour.stdout is not None
        steps = 0
        for line in tour.stdout:
            if line.startswith("-> "):
                steps += 1
                os.write(outside, b"\n")
        assert (steps, tour.wait()) == (3, 0)
    os.close(outside)


def test_a_device_that_is_refused_says_so(gateway: Gateway) -> None:
    with pytest.raises(DeviceRefused, match="the broker refused the login of the device"):
        publish_once(gateway.addresses["mqtt"], "device", ("guest", "wrong"), "a/b", b"")


def test_a_device_whose_connection_ends_says_so() -> None:
    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        with pytest.raises((DeviceRefused, ConnectionError)):
            publish_once(listener.getsockname(), "device", ("guest", "guest"), "a/b", b"")
        thread.join()
