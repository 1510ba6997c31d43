"""Recordings of a running node: started and stopped over HTTP, without secrets, and replayed in the simulation."""

import json
import socket
import ssl
from base64 import b64encode
from pathlib import Path
from urllib.error import HTTPError

import pika
import pytest

from gateway.recording.lines import read_recording
from gateway.simulation.replay.run import replay
from tests.broker.conftest import Connect
from tests.broker.tls.certificates import Authority
from tests.management_client import get, put, request
from tests.running import Gateway


def recorded(gateway: Gateway) -> Path:
    """Stop the recording and return its file, once it is complete."""
    path = Path(get(gateway, "recording")["file"])
    request(gateway, "DELETE", "recording")
    gateway.stop()
    return path


def test_a_recording_of_a_client_is_replayed_with_the_same_answers(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    put(gateway, "recording", {})
    with connect(gateway) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, b"a private body", pika.BasicProperties(headers={"kind": "order"}))
        assert channel.basic_get(queue, auto_ack=True)[2] == b"a private body"
    path = recorded(gateway)
    content = path.read_bytes()
    assert b'"opened":"amqp"' in content
    outcome = replay(path, traces=True)
    assert "\n".join(outcome.lines).count("basic.get-ok") == 1
    assert [each for each in outcome.differences if "amqp" in each] == []
    assert outcome.findings == []


def test_no_part_of_a_recording_has_a_secret_or_a_body(gateway: Gateway, connect: Connect) -> None:
    gateway.start("default_pass=QZQZ-very-secret")
    login = "guest:QZQZ-very-secret"
    request(gateway, "PUT", "recording", {}, login=login)
    credentials = pika.PlainCredentials("guest", "QZQZ-very-secret")
    with connect(gateway, credentials=credentials) as connection:
        connection.channel().basic_publish("", "nowhere", b"QZQZ-private-body")
    request(gateway, "PUT", "users/other", {"password": "QZQZ-other", "tags": "management"}, login=login)
    path = Path(request(gateway, "GET", "recording", login=login)["file"])
    request(gateway, "DELETE", "recording", login=login)
    gateway.stop()
    with path.open("rb") as file:
        received = [event.data for event in read_recording(file)]
    assert b"guest" in b"".join(received)
    assert b"QZQZ" not in b"".join(received)
    assert b64encode(b"guest:QZQZ")[:-4] not in b"".join(received)


def test_a_tls_connection_is_recorded_after_its_decryption(gateway: Gateway, tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path).sign("broker", "localhost")
    gateway.start("recording.enabled=true", f"tls.certificate={certificate}", f"tls.key={key}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(gateway.addresses["amqps"], 10) as plain, context.wrap_socket(plain) as client:
        client.sendall(b"AMQP\0\0\x09\x01")
        assert client.recv(1) == b"\x01"
    path = recorded(gateway)
    with path.open("rb") as file:
        events = [event for event in read_recording(file) if event.connection == 1]
    assert [event.kind for event in events[:3]] == ["opened", "received", "sent"]
    assert events[1].data == b"AMQP\0\0\x09\x01"
    assert events[2].answers == ["connection.start"]


def test_a_second_start_keeps_the_recording_that_runs(gateway: Gateway) -> None:
    gateway.start()
    assert get(gateway, "recording") == {"state": "off", "error": ""}
    first = request(gateway, "PUT", "recording", {})
    assert first["state"] == "recording"
    assert request(gateway, "PUT", "recording", {})["file"] == first["file"]
    settings = {row["key"]: row["value"] for row in get(gateway, "settings")["settings"]}
    assert settings["recording.enabled"] is True
    request(gateway, "DELETE", "recording")
    assert get(gateway, "recording")["state"] == "off"


def test_a_reload_starts_a_recording(gateway: Gateway, tmp_path: Path) -> None:
    configuration = tmp_path / "gateway.toml"
    configuration.write_text("")
    gateway.options = ("--config", str(configuration))
    gateway.start()
    configuration.write_text("[recording]\nenabled = true\n")
    assert request(gateway, "POST", "reload")["applied"] == ["recording.enabled"]
    assert get(gateway, "recording")["state"] == "recording"


def test_a_recording_whose_file_cannot_be_created_is_refused_with_the_reason(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    gateway.start(f"recording.directory={tmp_path / 'file'}")
    with pytest.raises(HTTPError) as refused:
        put(gateway, "recording", {})
    assert "cannot be created" in json.load(refused.value)["reason"]
