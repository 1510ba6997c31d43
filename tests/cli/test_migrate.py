"""``gateway migrate``: settings of rabbitmq.conf and mosquitto.conf, and comments for the rest."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.main import main
from gateway.config import load

RABBITMQ = """
# the listeners
listeners.tcp.default = 5673
listeners.ssl.default = 10.0.0.1:5671
ssl_options.cacertfile = {pem}
ssl_options.certfile   = {pem}
ssl_options.keyfile    = {pem}
ssl_options.verify     = verify_peer
ssl_options.fail_if_no_peer_cert = true
ssl_options.versions.1 = tlsv1.3
ssl_options.versions.2 = tlsv1.2
default_user = admin
default_pass = 'word'
default_user_tags.administrator = true
default_user_tags.monitoring = true
loopback_users = none
vm_memory_high_watermark.relative = 0.7
disk_free_limit.absolute = 2GB
heartbeat = 30
mqtt.listeners.tcp.default = 1884
mqtt.allow_anonymous = false
stomp.listeners.tcp = none
management.tcp.port = 15673
auth_backends.1 = internal
auth_backends.2 = http
auth_http.user_path = http://auth/user
log.file.level = notice
"""

MOSQUITTO = """
listener 1885
listener 8883
certfile {pem}
keyfile {pem}
listener 9001
protocol websockets
allow_anonymous false
password_file /etc/mosquitto/passwd
acl_file /etc/mosquitto/acl
persistence true
max_queued_messages 5000
persistent_client_expiration 2w
"""


@pytest.fixture
def migrated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Migrate a text under a file name; return the document, its text and the output."""
    pem = tmp_path / "pem"
    pem.write_text("")

    def migrate(name: str, text: str) -> tuple[dict[str, Any], str, str]:
        source, output = tmp_path / name, tmp_path / "gateway.toml"
        source.write_text(text.replace("{pem}", str(pem)))
        assert main(["migrate", str(source), "--output", str(output), "--force"]) == 0
        written = output.read_text()
        load(output)
        return tomllib.loads(written), written, capsys.readouterr().out

    return migrate


def test_settings_of_rabbitmq_are_carried_over(migrated: Any) -> None:
    document, text, output = migrated("rabbitmq.conf", RABBITMQ)
    assert "not carried over" not in text
    assert "rabbitmq.conf (RabbitMQ): 25 lines carried over, 0 not" in output
    assert document["bind"] == "10.0.0.1"
    assert (document["amqp"], document["amqps"]) == ({"port": 5673, "heartbeat_s": 30}, {"port": 5671})
    assert (document["stomp"], document["management"]) == ({"port": "off"}, {"port": 15673})
    assert document["mqtt"] == {"port": 1884, "anonymous_user": ""}
    assert (document["default_user"], document["default_pass"]) == ("admin", "word")
    assert (document["default_user_tags"], document["loopback_users"]) == (["administrator", "monitoring"], [])
    assert (document["memory_high_watermark"], document["disk_free_limit"]) == (0.7, "2GB")
    assert (document["tls"]["verify"], document["tls"]["min_version"]) == ("required", "1.2")
    assert document["vhosts"] == {"/": {"plugins": {"auth-http": {"user_path": "http://auth/user"}}}}
    assert document["log"] == {"level": "info"}


@pytest.mark.parametrize(
    ("line", "comment"),
    [
        ("cluster_name = x", "cluster_name = x: this broker is one node"),
        ("auth_backends.1 = amqp", "auth_backends.1 = amqp: no plugin is known for this backend"),
        ("auth_ldap.other_bind = as_user", "auth_ldap.other_bind = as_user: searches and queries bind as bind_dn"),
        ("auth_oauth2.https.depth = 2", "auth_oauth2.https.depth = 2: auth-oauth2 has no such setting"),
        ("auth_cache.cache_module = x", "auth_cache.cache_module = x: auth-cache has no such setting"),
        ("management.tcp.ip = 127.0.0.1", "management.tcp.ip = 127.0.0.1: all listeners have the same address, bind"),
        ("frame_max = many", "frame_max = many: it is not a whole number"),
        ("default_queue_type = x", "default_queue_type = x: queues.default_queue_type cannot have this value"),
        ("mqtt.sparkplug.password = x", "mqtt.sparkplug.password = ***: see [mqtt]"),
        ("nonsense", "line 1: nonsense: it is not KEY = VALUE"),
        ("ssl_options.versions.1 = tlsv1.1", "TLS 1.2 is the oldest version"),
    ],
)
def test_a_line_of_rabbitmq_without_a_setting_is_a_comment(migrated: Any, line: str, comment: str) -> None:
    document, text, output = migrated("rabbitmq.conf", f"{line}\n")
    assert comment in text.splitlines()[0]
    assert text.startswith("# not carried over: ")
    assert (document, "0 lines carried over, 1 not" in output) == ({}, True)


def test_settings_of_mosquitto_are_carried_over(migrated: Any) -> None:
    document, text, _ = migrated("mosquitto.conf", MOSQUITTO)
    assert "not carried over" not in text
    assert document["mqtt"] == {
        "port": 1885, "anonymous_user": "", "max_session_expiry_s": 14 * 86400, "session_max_messages": 5000,
    }  # fmt: skip
    assert (document["mqtts"], document["web_mqtt"]) == ({"port": 8883}, {"port": 9001})
    files = {"password_file": "/etc/mosquitto/passwd", "acl_file": "/etc/mosquitto/acl"}
    assert document["vhosts"] == {"/": {"plugins": {"auth-mosquitto": files}}}


def test_a_bridge_of_mosquitto_is_a_command_without_its_password(migrated: Any) -> None:
    text = "connection plant\naddress plant.example:1883\ntopic a/# in 1\nremote_username me\nremote_password pw\n"
    _, written, _ = migrated("mosquitto.conf", text)
    parameter = '{"address": ["mqtt://me:PASSWORD@plant.example:1883"], "topics": ["a/# in 1"]}'
    assert f"gatewayctl set_parameter mqtt-bridge plant '{parameter}'" in written
    assert "pw" not in written


def test_a_bridge_keeps_what_its_parameter_has_and_names_the_rest(migrated: Any) -> None:
    text = (
        'connection plant\naddress one:1883 two\ntopic a/# out 1 it\'s/ ""\nremote_clientid c1\n'
        "restart_timeout 10 30\nbridge_protocol_version mqttv50\ncleansession false\nkeepalive_interval 20\n"
        "unknown_key 3\nbridge_psk secret\n"
    )
    _, written, _ = migrated("mosquitto.conf", text)
    [command] = [line for line in written.splitlines() if "gatewayctl set_parameter" in line]
    assert json.loads(shlex.split(command.partition("set it with: ")[2])[-1]) == {
        "address": ["mqtt://one:1883?version=5", "mqtt://two?version=5"],
        "topics": ['a/# out 1 it\'s/ ""'],
        "client-id": "c1",
        "reconnect-delay": 10,
    }
    for option in ("keepalive_interval 20", "unknown_key 3"):
        assert f"# not carried over: connection plant: {option}: a bridge has no such key here" in written
    assert "cleansession" not in written
    assert "secret" not in written


def test_a_listener_without_a_certificate_has_no_tls_whatever_another_file_says(tmp_path: Path) -> None:
    rabbit, mosquitto, output = tmp_path / "rabbitmq.conf", tmp_path / "mosquitto.conf", tmp_path / "gateway.toml"
    rabbit.write_text("ssl_options.certfile = /a/cert.pem\nssl_options.keyfile = /a/key.pem\n")
    mosquitto.write_text("listener 1885\nlistener 9001\nprotocol websockets\n")
    assert main(["migrate", str(rabbit), str(mosquitto), "--output", str(output)]) == 0
    document = tomllib.loads(output.read_text())
    assert (document["mqtt"]["port"], document["web_mqtt"]["port"]) == (1885, 9001)
    assert "mqtts" not in document


def test_the_default_listener_has_tls_if_its_certificate_precedes_its_port(migrated: Any, tmp_path: Path) -> None:
    pem = tmp_path / "pem"
    document, _, _ = migrated("mosquitto.conf", f"certfile {pem}\nkeyfile {pem}\nport 8883\nlistener 1885\n")
    assert (document["mqtts"]["port"], document["mqtt"]["port"]) == (8883, 1885)


def test_an_existing_file_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "rabbitmq.conf", tmp_path / "gateway.toml"
    source.write_text("heartbeat = 30\n")
    output.write_text("mine = 1\n")
    assert main(["migrate", str(source), "--output", str(output)]) == 65
    assert "exists; give --force" in capsys.readouterr().err
    assert output.read_text() == "mine = 1\n"


def test_files_that_are_missing_here_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "rabbitmq.conf", tmp_path / "gateway.toml"
    source.write_text("ssl_options.certfile = /nowhere/cert.pem\n")
    assert main(["migrate", str(source), "--output", str(output)]) == 0
    assert "tls.certificate: must be a file that can be read" in capsys.readouterr().err
    assert tomllib.loads(output.read_text())["tls"] == {"certificate": "/nowhere/cert.pem"}


def test_a_data_directory_needs_a_cluster_and_stands_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    assert main(["migrate", str(data)]) == 65
    assert "cluster.servers: is not set" in capsys.readouterr().err
    assert main(["migrate", str(data), str(data)]) == 64
    assert "is given twice" in capsys.readouterr().err
    file = tmp_path / "rabbitmq.conf"
    file.write_text("")
    assert main(["migrate", str(data), str(file)]) == 64
    assert main(["migrate", str(tmp_path / "rabbitmq.conf"), "--set", "cluster.name=x"]) == 64
