"""CONNECT: versions, virtual hosts, logins, heart-beats, and the frames allowed before and after it."""

import pytest

from gateway.access import CertificateSubject
from gateway_stomp.state import State
from tests.protocols.stomp.dialogue import Gateway, frame
from tests.protocols.stomp.frame_reader import CLOSED, ReceivedFrame


def refusal(received: list[ReceivedFrame]) -> str:
    """Return the ``message`` of the ERROR that ended a connection."""
    assert [each.verb for each in received] == ["ERROR", "closed"], received
    assert received[0]["version"] == "1.0,1.1,1.2"
    assert received[0]["content-type"] == "text/plain"
    return received[0]["message"]


@pytest.mark.parametrize(
    ("accepted", "version"),
    [
        (None, "1.0"),
        ("1.0", "1.0"),
        ("1.1", "1.1"),
        ("1.2", "1.2"),
        ("1.0,1.1,1.2", "1.2"),
        ("1.1,1.0", "1.1"),
        ("1.1, 1.2", "1.2"),
        ("1.2,1.3,2.0", "1.2"),
    ],
)
def test_the_highest_common_version_is_used(accepted: str | None, version: str) -> None:
    headers = {"login": "guest", "passcode": "guest"} | ({} if accepted is None else {"accept-version": accepted})
    (welcome,) = Gateway().new_client().request_frames(frame("CONNECT", headers, version="1.0"))
    assert welcome.verb == "CONNECTED"
    assert welcome["version"] == version
    assert welcome["session"].startswith("session-")
    assert welcome["server"] == "gateway"


def test_a_connect_without_a_common_version_is_refused_with_the_supported_ones() -> None:
    received = Gateway().new_client().connect(accept_version="2.0")
    assert refusal(received) == "Version mismatch"
    assert b"1.0,1.1,1.2" in received[0].body


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_stomp_is_equivalent_to_connect(version: str) -> None:
    told = {"login": "guest", "passcode": "guest", "accept-version": version}
    (welcome,) = Gateway().new_client().request_frames(frame("STOMP", told, version="1.0"))
    assert (welcome.verb, welcome["version"]) == ("CONNECTED", version)


def test_a_session_has_a_unique_name() -> None:
    gateway = Gateway()
    assert gateway.client().welcome["session"] != gateway.client().welcome["session"]


def test_the_host_header_selects_the_virtual_host() -> None:
    gateway = Gateway()
    gateway.broker.declare_vhost("other")
    assert refusal(gateway.new_client().connect(host="other")) == "Bad CONNECT"  # guest has no permission there
    assert refusal(gateway.new_client().connect(host="none")) == "Bad CONNECT"
    client = gateway.client(host="/")
    assert client.vhost_name == "/"


def test_without_a_host_header_the_virtual_host_of_the_settings_is_used() -> None:
    assert refusal(Gateway(vhost="none").new_client("1.0").connect()) == "Bad CONNECT"
    assert Gateway().client("1.0").vhost_name == "/"


@pytest.mark.parametrize(
    "headers",
    [
        {"passcode": "wrong"},
        {"passcode": ""},
        {"login": "unknown"},
        {"login": ""},
    ],
)
def test_an_unknown_user_is_refused_and_counted(headers: dict[str, str]) -> None:
    gateway = Gateway()
    assert refusal(gateway.new_client().connect(**headers)) == "Bad CONNECT"
    assert gateway.broker.connections.logins_by_protocol["stomp"].failed == 1


def test_passwords_appear_neither_in_the_log_nor_in_an_error() -> None:
    client = Gateway().new_client()
    received = client.connect(login="guest", passcode="s3cret")
    assert "s3cret" not in repr(client.log_lines) + repr(received) + repr(vars(client.machine.handshake))


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_client_without_a_login_is_refused_unless_there_is_a_default_user(version: str) -> None:
    connect = frame("CONNECT", {"accept-version": version}, version="1.0")
    assert refusal(Gateway().new_client(version).request_frames(connect)) == "Bad CONNECT"
    gateway = Gateway(default_user="guest", default_passcode="guest")
    client = gateway.new_client(version)
    assert [received.verb for received in client.request_frames(connect)] == ["CONNECTED"]
    assert client.user_name == "guest"


def test_a_login_takes_precedence_over_the_default_user() -> None:
    gateway = Gateway(default_user="guest", default_passcode="guest")
    gateway.add_user("ann", "secret")
    assert gateway.client(login="ann", passcode="secret").user_name == "ann"
    assert refusal(gateway.new_client().connect(login="ann", passcode="wrong")) == "Bad CONNECT"


def test_connect_may_be_left_out_if_implicit_connect_is_enabled() -> None:
    gateway = Gateway(default_user="guest", default_passcode="guest", implicit_connect=True)
    client = gateway.new_client("1.0")
    received = client.request_frames(
        frame("SUBSCRIBE", {"destination": "/queue/q"}) + frame("SEND", {"destination": "/queue/q"}, b"hi")
    )
    assert [(each.verb, each.body) for each in received] == [("MESSAGE", b"hi")]
    assert client.user_name == "guest"


def test_implicit_connect_requires_a_default_user() -> None:
    client = Gateway(implicit_connect=True).new_client("1.0")
    assert refusal(client.publish("/queue/q")) == "Bad CONNECT"


def test_a_client_can_log_in_with_its_certificate() -> None:
    gateway = Gateway(plugins=("auth-certificate",))
    gateway.add_user("CN=device", "unknown")
    client = gateway.new_client()
    client.certificate = CertificateSubject("device", "CN=device")
    received = client.request_frames(frame("CONNECT", {"accept-version": "1.2"}, version="1.0"))
    assert [each.verb for each in received] == ["CONNECTED"]
    assert (client.user_name, client.machine.handshake.mechanism) == ("CN=device", "EXTERNAL")


def test_a_login_takes_precedence_over_a_certificate() -> None:
    gateway = Gateway(plugins=("auth-certificate",))
    client = gateway.new_client()
    client.certificate = CertificateSubject("device", "CN=device")
    client.connect()
    assert client.user_name == "guest"


def test_certificates_are_ignored_if_certificate_login_is_disabled() -> None:
    gateway = Gateway(plugins=("auth-certificate",), certificate_login=False)
    gateway.add_user("CN=device", "unknown")
    client = gateway.new_client()
    client.certificate = CertificateSubject("device", "CN=device")
    assert refusal(client.request_frames(frame("CONNECT", {"accept-version": "1.2"}))) == "Bad CONNECT"


@pytest.mark.parametrize("limit", [{"max-connections": 0}])
def test_connection_limits_are_enforced(limit: dict[str, int]) -> None:
    gateway = Gateway()
    gateway.broker.limit_vhost("/", limit)
    assert refusal(gateway.new_client().connect()) == "Bad CONNECT"


@pytest.mark.parametrize("verb", ["SEND", "SUBSCRIBE", "BEGIN", "DISCONNECT", "ACK", "NONSENSE"])
def test_a_frame_before_connect_is_refused(verb: str) -> None:
    assert refusal(Gateway().new_client().command(verb)) == "Illegal command"


@pytest.mark.parametrize("verb", ["CONNECT", "STOMP"])
def test_a_second_connect_is_refused(verb: str) -> None:
    assert refusal(Gateway().client().command(verb)) == "Illegal command"


@pytest.mark.parametrize("verb", ["NONSENSE", "send", "MESSAGE", "RECEIPT", "ERROR", "CONNECTED"])
def test_a_verb_that_is_not_a_clients_is_refused(verb: str) -> None:
    assert refusal(Gateway().client().command(verb)) == "Bad command"


@pytest.mark.parametrize(
    ("asked", "answered", "promised"),
    [
        (None, "0,0", (0, 0)),
        ("0,0", "0,0", (0, 0)),
        ("0,5000", "5000,0", (5, 0)),
        ("5000,0", "0,5000", (0, 5)),
        ("1,1", "1000,1000", (1, 1)),
        ("1999,2500", "2000,1000", (2, 1)),
    ],
)
def test_heart_beats_are_negotiated(asked: str | None, answered: str, promised: tuple[int, int]) -> None:
    client = Gateway().client(**({} if asked is None else {"heart_beat": asked}))
    assert client.welcome["heart-beat"] == answered
    assert (client.machine.handshake.heartbeats.send_s, client.machine.handshake.heartbeats.expect_s) == promised


@pytest.mark.parametrize("asked", ["", "1", "a,b", "-1,0", "1,2,3"])
def test_a_heart_beat_header_without_two_numbers_is_refused(asked: str) -> None:
    assert refusal(Gateway().new_client().connect(heart_beat=asked)) == "Invalid header"


def test_heart_beats_of_the_client_have_no_other_effect() -> None:
    client = Gateway().client()
    assert client.request_frames(b"\n\n\r\n\n") == []
    assert client.machine.state is State.OPEN


def test_a_frame_above_the_limit_before_the_login_ends_the_connection() -> None:
    gateway = Gateway(max_frame_size_unauthenticated=1024)
    connect = frame("CONNECT", {"login": "guest", "passcode": "guest"}, b"x" * 1024)
    assert refusal(gateway.new_client().request_frames(connect)) == "Frame too large"


def test_larger_frames_are_allowed_after_the_login_up_to_a_limit() -> None:
    gateway = Gateway(max_frame_size_unauthenticated=1024, max_frame_size=4096)
    client = gateway.client()
    assert client.publish("/queue/q", b"x" * 3000) == []
    assert refusal(client.publish("/queue/q", b"x" * 4096)) == "Frame too large"


def test_too_many_headers_end_the_connection() -> None:
    client = Gateway(max_headers=10).client()
    assert refusal(client.publish("/queue/q", b"", {str(number): "" for number in range(10)})) == "Invalid frame"


def test_disconnect_is_answered_and_the_connection_ends() -> None:
    client = Gateway().client()
    assert client.command("DISCONNECT", receipt="bye") == [ReceivedFrame("RECEIPT", {"receipt-id": "bye"}), CLOSED]


def test_disconnect_without_a_receipt_ends_the_connection_too() -> None:
    assert Gateway().client().command("DISCONNECT") == [CLOSED]


def test_frames_after_disconnect_are_ignored() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.request_frames(frame("DISCONNECT") + frame("SEND", {"destination": "/queue/q"}, b"late"))
    client.request_frames(frame("SEND", {"destination": "/queue/q"}, b"later"))
    assert "q" not in gateway.vhost.queue_by_name


def test_frames_after_disconnect_are_not_buffered() -> None:
    client = Gateway().client()
    client.machine.receive(frame("SEND", {"destination": "/queue/q", "receipt": "1"}) + frame("DISCONNECT"))
    client.machine.receive(b"x" * 100)
    assert client.machine._decoder.kept == 0


def test_an_operator_can_close_a_connection_with_a_reason() -> None:
    client = Gateway().client()
    client.force_close("because")
    received = client.receive_frames()
    assert refusal(received) == "connection_forced"
    assert received[0].body == b"because"


def test_an_internal_error_does_not_reveal_its_cause() -> None:
    client = Gateway().client()
    client.machine.fault()
    assert refusal(client.receive_frames()) == "Processing error"
