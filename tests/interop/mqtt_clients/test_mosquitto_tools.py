"""mosquitto_pub and mosquitto_sub of Debian's mosquitto-clients."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.broker.tls.certificates import Authority
from tests.interop.mqtt_clients.mqtt_server import MqttServer, running_server
from tests.interop.mqtt_clients.paho_client import Paho
from tests.interop.tools import program, run

TIMEOUT_S: Final = 15
#: The exit code of mosquitto_sub at its time limit (``-W``).
TIME_IS_UP: Final = 27
VERSIONS: Final = {"3.1": "mqttv31", "3.1.1": "mqttv311", "5.0": "mqttv5"}


@pytest.fixture(params=list(VERSIONS.values()), ids=list(VERSIONS))
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


class Tools:
    """The two programs with the server's address and, by default, one user."""

    def __init__(self, server: MqttServer, *options: str) -> None:
        login = ("-u", server.user, "-P", server.password) if server.user and not options else options
        self.options = ["-h", server.host, "-p", str(server.port), *login]

    def pub(self, *arguments: str, stdin: bytes = b"", exit_code: int = 0) -> str:
        """Publish, and return the output on standard error."""
        ended = run([program("mosquitto_pub"), *self.options, *arguments], stdin=stdin, timeout_s=TIMEOUT_S)
        assert ended.returncode == exit_code, ended.stderr.decode()
        return ended.stderr.decode()

    def sub(self, *arguments: str, exit_code: int = 0) -> str:
        """Subscribe until the program ends; return its messages, or the error output of an expected failure."""
        ended = run([program("mosquitto_sub"), *self.options, *arguments], timeout_s=TIMEOUT_S)
        assert ended.returncode == exit_code, ended.stderr.decode()
        return (ended.stdout if exit_code == 0 else ended.stderr).decode()

    @contextmanager
    def subscribed(self, topic: str, *arguments: str) -> Iterator["Subscriber"]:
        """Run mosquitto_sub during the block, subscribed from the start."""
        debug = [program("mosquitto_sub"), *self.options, "--debug", "-t", topic, *arguments]
        unbuffered = ["stdbuf", "--output=L", *debug]
        with subprocess.Popen(unbuffered, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
            try:
                waiting = Subscriber(child)
                waiting.until("Subscribed")
                yield waiting
            finally:
                child.kill()


class Subscriber:
    """A running mosquitto_sub."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self._child = child

    def until(self, start: str) -> str:
        """Return the next line with this prefix."""
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if line.startswith(start.encode()):
                return line.decode().rstrip("\n")
        raise AssertionError(f"mosquitto_sub ended without a line that starts with {start!r}")

    def messages(self, count: int) -> list[str]:
        """Return the next messages, which the format marks with ``>``."""
        return [self.until(">")[1:] for _ in range(count)]


@pytest.fixture
def tools(server: MqttServer) -> Tools:
    return Tools(server)


@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_a_message_of_mosquitto_pub_is_printed_by_mosquitto_sub(
    tools: Tools, name: str, version: str, qos: str
) -> None:
    with tools.subscribed(f"{name}/#", "-V", version, "-q", qos, "-F", ">%t %q %r %p") as waiting:
        tools.pub("-V", version, "-q", qos, "-t", f"{name}/a", "-m", "hello")
        assert waiting.messages(1) == [f"{name}/a {qos} 0 hello"]


def test_every_line_becomes_a_message(tools: Tools, name: str, version: str) -> None:
    lines = [f"line {number}" for number in range(200)]
    with tools.subscribed(name, "-V", version, "-q", "1", "-F", ">%p") as waiting:
        tools.pub("-V", version, "-q", "1", "-t", name, "-l", stdin="\n".join(lines).encode() + b"\n")
        assert waiting.messages(200) == lines


def test_a_file_becomes_a_message(tools: Tools, name: str, tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes(range(256)) * 4096)
    with tools.subscribed(name, "-q", "2", "-F", ">%l") as waiting:
        tools.pub("-q", "2", "-t", name, "-f", str(file))
        assert waiting.messages(1) == [str(2**20)]


def test_retained_messages_are_listed_and_removed(tools: Tools, name: str, version: str) -> None:
    for room, state in {"hall": "dark", "attic": "lit"}.items():
        tools.pub("-V", version, "-q", "1", "-r", "-t", f"{name}/{room}", "-m", state)
    listed = tools.sub("-V", version, "-t", f"{name}/+", "--retained-only", "-C", "2", "-F", "%t %p %r")
    assert sorted(listed.splitlines()) == [f"{name}/attic lit 1", f"{name}/hall dark 1"]
    tools.sub("-V", version, "-t", f"{name}/#", "--remove-retained", "-W", "1", exit_code=TIME_IS_UP)
    tools.pub("-V", version, "-q", "1", "-r", "-t", f"{name}/cellar", "-m", "damp")
    assert tools.sub("-V", version, "-t", f"{name}/#", "-C", "1", "-F", "%t") == f"{name}/cellar\n"


def test_a_session_stores_messages_while_its_client_is_offline(tools: Tools, name: str, version: str) -> None:
    kept = ("-V", version, "-i", name, "-c", "-q", "1", "-t", name)
    expiry = ("-x", "600") if version == "mqttv5" else ()
    tools.sub(*kept, *expiry, "-E")
    for number in range(5):
        tools.pub("-V", version, "-q", "1", "-t", name, "-m", str(number))
    assert tools.sub(*kept, *expiry, "-C", "5").split() == ["0", "1", "2", "3", "4"]


def test_the_will_of_a_killed_client_is_published(tools: Tools, name: str, version: str) -> None:
    will = ("--will-topic", f"{name}/will", "--will-payload", "gone", "--will-qos", "1")
    with tools.subscribed(f"{name}/will", "-V", version, "-q", "1", "-F", ">%p") as witness:
        with tools.subscribed(f"{name}/other", "-V", version, *will):
            pass  # the program is killed at the end of the block
        assert witness.messages(1) == ["gone"]


def test_properties_in_both_directions(tools: Tools, name: str) -> None:
    publish = ("-D", "publish")
    options = (
        *publish, "content-type", "application/json",
        *publish, "correlation-data", "c-1",
        *publish, "response-topic", f"{name}/answers",
        *publish, "message-expiry-interval", "600",
        *publish, "user-property", "colour", "red",
        *publish, "user-property", "colour", "blue",
    )  # fmt: skip
    shown = ">%C|%D|%R|%E|%P"
    with tools.subscribed(name, "-V", "mqttv5", "-q", "1", "-F", shown) as waiting:
        tools.pub("-V", "mqttv5", "-q", "1", "-t", name, "-m", "{}", *options)
        (line,) = waiting.messages(1)
    content_type, correlation, response, expiry, pairs = line.split("|")
    assert (content_type, correlation, response) == ("application/json", "c-1", f"{name}/answers")
    assert expiry in ("599", "600")
    assert pairs == "colour:red colour:blue"


def test_the_json_format_shows_all_fields_of_a_message(tools: Tools, name: str) -> None:
    with tools.subscribed(name, "-V", "mqttv5", "-q", "1", "-F", ">%j") as waiting:
        tools.pub("-V", "mqttv5", "-q", "1", "-t", name, "-m", "1")
        (line,) = waiting.messages(1)
    shown = json.loads(line)
    assert (shown["topic"], shown["qos"], shown["retain"], shown["payloadlen"]) == (name, 1, 0, 1)


def test_a_group_shares_messages(tools: Tools, name: str) -> None:
    options = ("-V", "mqttv5", "-q", "1", "-F", ">%p")
    with (
        tools.subscribed(f"$share/workers/{name}", *options) as one,
        tools.subscribed(f"$share/workers/{name}", *options) as two,
    ):
        tools.pub("-V", "mqttv5", "-q", "1", "-t", name, "-l", stdin=b"".join(b"%d\n" % n for n in range(20)))
        shares = one.messages(10) + two.messages(10)
    assert sorted(map(int, shares)) == list(range(20))


def test_a_request_is_answered_at_its_response_topic(tools: Tools, paho: Callable[..., Paho], name: str) -> None:
    responder = paho()
    responder.connect()
    responder.subscribe(f"{name}/q", qos=1)
    asking = [program("mosquitto_rr"), *tools.options, "-V", "mqttv5", "-q", "1"]
    asking += ["-t", f"{name}/q", "-e", f"{name}/a", "-m", "6 7"]
    with subprocess.Popen(asking, stdout=subprocess.PIPE) as child:
        question = responder.next()
        responder.publish(question.properties.ResponseTopic, b"42", qos=1)
        answer, _ = child.communicate(timeout=TIMEOUT_S)
    assert answer == b"42\n"


# Logins


@pytest.mark.parametrize(("version", "code"), [("mqttv31", 4), ("mqttv311", 4), ("mqttv5", 0x86)])
def test_a_wrong_password_is_refused(server: MqttServer, version: str, code: int) -> None:
    unknown_user = Tools(server, "-u", "guest", "-P", "wrong")
    unknown_user.pub("-V", version, "-t", "x", "-m", "x", exit_code=code)  # the exit code is that of CONNACK


def test_an_anonymous_client_publishes_and_subscribes(server: MqttServer, name: str, version: str) -> None:
    anonymous = Tools(server, "--quiet")
    anonymous.pub("-V", version, "-q", "1", "-r", "-t", name, "-m", "kept")
    assert anonymous.sub("-V", version, "-t", name, "-C", "1") == "kept\n"


def test_login_by_certificate_over_tls(tmp_path: Path, version: str) -> None:
    authority = Authority(tmp_path)
    (tmp_path / "definitions.json").write_text(
        json.dumps(
            {
                "users": [{"name": "lamp", "password_hash": "", "tags": ""}],
                "permissions": [{"user": "lamp", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
            }
        )
    )
    certificate, key = authority.sign("broker")
    settings = [
        "mqtts.port=0",
        f"tls.certificate={certificate}",
        f"tls.key={key}",
        f"tls.ca={authority.certificate}",
        "tls.verify=required",
        'vhosts."/".plugins.auth-certificate.login_from=common_name',
        f"load_definitions={tmp_path / 'definitions.json'}",
    ]
    with running_server(tmp_path, *settings) as server:
        own, own_key = authority.sign("lamp")
        behind_tls = MqttServer(server.host, server.ports["mqtts"])
        tls = ("--cafile", str(authority.certificate), "--cert", str(own), "--key", str(own_key))
        tools = Tools(behind_tls, *tls)
        tools.pub("-V", version, "-q", "1", "-r", "-t", "lamp", "-m", "lit")
        assert tools.sub("-V", version, "-t", "lamp", "-C", "1") == "lit\n"
