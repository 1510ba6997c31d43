"""The login of MQTT clients: authentication, virtual host, refusals, and re-authentication."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.access import (
    Access,
    Answer,
    CertificateSubject,
    Challenge,
    Credentials,
    Dialogue,
    Failure,
    PasswordVerifier,
    Principal,
    Success,
    Visitor,
)
from gateway.access.passwords import DEFAULT_ALGORITHM, hash_password
from gateway.kernel.journal.records.access import PermissionRecord, UserRecord
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.testing import MemoryBroker
from gateway_auth import certificate, internal
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.packets import Auth, Connect
from gateway_mqtt.codec.properties import PropertyId
from gateway_mqtt.codec.reasons import CONNACK_3, ReasonCode
from gateway_mqtt.handshake.login import Login, LoginAccepted, LoginRefused, LoginResult, LoginRules
from gateway_mqtt.handshake.vhost_choice import ConnectionSource

LOCAL = ConnectionSource("127.0.0.1", 1883)
REMOTE = ConnectionSource("192.0.2.7", 1883)
ROBOT = CertificateSubject("robot", "CN=robot")
STRANGER = CertificateSubject("stranger", "CN=stranger")


class ChallengeMethod:
    """A method that asks once and accepts any user name. ``later`` is the callback of a delayed answer."""

    def __init__(self) -> None:
        self.visitors: list[Visitor] = []
        self.later: list[Callable[[Answer], None]] = []

    def begin(self, visitor: Visitor) -> Dialogue:
        self.visitors.append(visitor)
        return self

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        if data == b"":
            answer(Challenge(b"who?"))
        elif data == b"slow":
            self.later.append(answer)
        elif data == b"wrong":
            answer(Failure("wrong", b"e=wrong"))
        else:
            answer(Success(Principal(data.decode()), b"hello"))


class TokenAuthenticator:
    """An authenticator that reads the user name from the password."""

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        user, _, token = credentials.password.partition("/")
        answer(Principal(user) if token == "token" and not credentials.username else None)


class EmptyPasswordAuthenticator:
    """An authenticator that accepts an empty password as an anonymous login, as some LDAP servers do."""

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        is_blank = credentials.mechanism == "PLAIN" and not credentials.password
        answer(Principal(credentials.username) if is_blank else None)


class LoginBroker:
    """A broker with users ``guest``, ``anna``, ``robot`` (by certificate) and ``mute``, who has no permissions."""

    def __init__(self) -> None:
        self.broker = MemoryBroker().kernel
        self.broker.declare_vhost("shop")
        for name, password in (("guest", "guest"), ("anna", "secret"), ("CN=robot", ""), ("mute", "secret")):
            hashed = hash_password(password) if password else ""
            self.broker.directory.put_user(UserRecord(name, hashed, DEFAULT_ALGORITHM, ["tag"], {}))
        for vhost, name in (("/", "guest"), ("/", "anna"), ("shop", "anna"), ("/", "CN=robot")):
            self.broker.directory.put_permission(PermissionRecord(vhost, name, ".*", ".*", ".*"))
        directory, self.method = self.broker.directory, ChallengeMethod()
        self.access = Access(
            [
                *internal.gateway_authenticators(directory, PasswordVerifier()),
                *certificate.gateway_authenticators(directory, certificate.CertificateSettings()),
                TokenAuthenticator(),
                EmptyPasswordAuthenticator(),
            ],
            internal.gateway_authorizers(directory),
            methods={"ASKS": self.method},
        )
        self.settings = LoginRules(self.broker, lambda vhost: self.access)

    def login(self, packet: Connect, arrival: ConnectionSource = LOCAL, **settings: Any) -> Login:
        return Login(replace(self.settings, **settings), arrival, packet, "sensor-1")

    def verdict(self, packet: Connect, arrival: ConnectionSource = LOCAL, **settings: Any) -> LoginResult:
        (verdict,) = results(self.login(packet, arrival, **settings).begin)
        return verdict


@pytest.fixture
def login_broker() -> LoginBroker:
    return LoginBroker()


def connect(username: str | None = None, password: bytes | None = None, version: int = 5, **properties: Any) -> Connect:
    """Return a CONNECT; ``method`` and ``data`` are its authentication properties."""
    names = {"method": PropertyId.AUTHENTICATION_METHOD, "data": PropertyId.AUTHENTICATION_DATA}
    given = {names[name]: value for name, value in properties.items()}
    return Connect(version, "MQTT", True, 60, "sensor-1", username, password, None, given)


def auth(reason: ReasonCode, data: bytes = b"", method: str | None = "ASKS") -> Auth:
    properties: dict[PropertyId, Any] = {PropertyId.AUTHENTICATION_DATA: data}
    if method is not None:
        properties[PropertyId.AUTHENTICATION_METHOD] = method
    return Auth(reason, properties)


def results(judge: Callable[[Callable[[LoginResult], None]], None]) -> list[LoginResult]:
    verdicts: list[LoginResult] = []
    judge(verdicts.append)
    return verdicts


# Without an authentication method

WELCOME = [
    pytest.param(connect("anna", b"secret"), LOCAL, "/", "anna", id="user name and password"),
    pytest.param(connect("anna", b"secret", 3), REMOTE, "/", "anna", id="the same in 3.1"),
    pytest.param(connect("shop:anna", b"secret"), REMOTE, "shop", "anna", id="with a virtual host"),
    pytest.param(connect("guest", b"guest"), LOCAL, "/", "guest", id="guest from this machine"),
    pytest.param(connect(), LOCAL, "/", "guest", id="anonymous from this machine"),
    pytest.param(connect(version=4), LOCAL, "/", "guest", id="anonymous in 3.1.1"),
    pytest.param(connect(), REMOTE._replace(certificate=ROBOT), "/", "CN=robot", id="by certificate"),
    pytest.param(
        connect("CN=robot"), REMOTE._replace(certificate=ROBOT), "/", "CN=robot", id="certificate and its name"
    ),
    pytest.param(connect("anna", b"secret"), REMOTE._replace(certificate=ROBOT), "/", "anna", id="password first"),
    pytest.param(connect(password=b"anna/token"), REMOTE, "/", "anna", id="3.1.2.9: a password alone, in 5.0"),
]


@pytest.mark.parametrize(("packet", "arrival", "vhost", "user"), WELCOME)
def test_these_logins_are_accepted(
    login_broker: LoginBroker, packet: Connect, arrival: ConnectionSource, vhost: str, user: str
) -> None:
    verdict = login_broker.verdict(packet, arrival)
    assert isinstance(verdict, LoginAccepted), verdict
    assert (verdict.vhost.name, verdict.principal.name, verdict.data) == (vhost, user, b"")
    assert (verdict.permissions.vhost, verdict.permissions.user) == (vhost, user)


BAD, FORBIDDEN = ReasonCode.BAD_USER_NAME_OR_PASSWORD, ReasonCode.NOT_AUTHORIZED
REFUSED = [
    pytest.param(connect("anna", b"wrong"), REMOTE, BAD, id="a wrong password"),
    pytest.param(connect("unknown", b"secret"), REMOTE, BAD, id="no such user"),
    pytest.param(connect("anna", b""), REMOTE, BAD, id="an empty password"),
    pytest.param(connect("CN=robot", b""), REMOTE, BAD, id="an empty password of a user without one"),
    pytest.param(connect("anna", b"\xff"), REMOTE, BAD, id="a password that is not UTF-8"),
    pytest.param(connect("anna"), REMOTE, BAD, id="no password"),
    pytest.param(connect("guest"), LOCAL, BAD, id="no password for the anonymous user"),
    pytest.param(connect(""), LOCAL, BAD, id="an empty user name"),
    pytest.param(connect(password=b"anna/token", version=3), REMOTE, BAD, id="a password alone, in 3.1"),
    pytest.param(connect("guest", b"guest"), REMOTE, BAD, id="guest from another host"),
    pytest.param(connect("nowhere:anna", b"secret"), REMOTE, BAD, id="no such virtual host"),
    pytest.param(connect("mute", b"secret"), REMOTE, FORBIDDEN, id="no permissions"),
    pytest.param(connect("shop:guest", b"guest"), LOCAL, FORBIDDEN, id="no permissions in this virtual host"),
    pytest.param(connect(), REMOTE, FORBIDDEN, id="anonymous from another host"),
    pytest.param(connect(), LOCAL._replace(certificate=STRANGER), FORBIDDEN, id="a certificate of an unknown user"),
    pytest.param(connect("anna"), LOCAL._replace(certificate=ROBOT), FORBIDDEN, id="a certificate of another user"),
]


@pytest.mark.parametrize(("packet", "arrival", "reason"), REFUSED)
def test_refused_logins_are_answered_with_a_delay(
    login_broker: LoginBroker, packet: Connect, arrival: ConnectionSource, reason: ReasonCode
) -> None:
    verdict = login_broker.verdict(packet, arrival, refusal_delay_s=1.5)
    assert isinstance(verdict, LoginRefused), verdict
    assert (verdict.reason, verdict.delay_s) == (reason, 1.5)
    assert verdict.text in ("bad user name or password", "not authorized")
    assert CONNACK_3[reason] == (4 if reason is BAD else 5)


def test_anonymous_clients_get_the_user_of_the_setting(login_broker: LoginBroker) -> None:
    verdict = login_broker.verdict(connect(), LOCAL, anonymous_user="anna")
    assert isinstance(verdict, LoginAccepted)
    assert verdict.principal == Principal("anna")  # without the tags of the authenticated user anna


def test_anonymous_clients_must_be_local_unless_a_setting_allows_others(login_broker: LoginBroker) -> None:
    refused = LoginRefused(FORBIDDEN, "not authorized", 3.0)
    assert login_broker.verdict(connect(), REMOTE, anonymous_user="anna") == refused
    assert isinstance(
        login_broker.verdict(connect(), REMOTE, anonymous_user="anna", anonymous_from_network=True), LoginAccepted
    )
    assert login_broker.verdict(connect(), REMOTE, anonymous_from_network=True) == refused  # guest is a loopback user


def test_anonymous_clients_of_web_pages_are_refused_unless_a_setting_allows_them(login_broker: LoginBroker) -> None:
    page = LOCAL._replace(is_from_page=True)
    assert login_broker.verdict(connect(), page) == LoginRefused(FORBIDDEN, "not authorized", 3.0)
    assert isinstance(login_broker.verdict(connect(), page, anonymous_from_pages=True), LoginAccepted)
    assert isinstance(login_broker.verdict(connect("anna", b"secret"), page), LoginAccepted)


class KnownClients:
    """An authenticator that accepts tokens as user names, and one client by its identifier."""

    def __init__(self) -> None:
        self.asked: list[Credentials] = []

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        self.asked.append(credentials)
        match credentials.mechanism:
            case "USER-NAME" if credentials.username == "eyJ.token":
                answer(Principal("anna"))
            case "CLIENT-ID" if credentials.client_id == "sensor-1":
                answer(Principal("anna", frozenset({"device"})))
            case _:
                answer(None)


@pytest.mark.parametrize("arrival", [LOCAL, REMOTE], ids=["here", "afar"])
def test_a_user_name_without_a_password_is_passed_to_the_authenticators(
    login_broker: LoginBroker, arrival: ConnectionSource
) -> None:
    knowing = KnownClients()
    login_broker.access = Access([knowing], internal.gateway_authorizers(login_broker.broker.directory))
    verdict = login_broker.verdict(connect("eyJ.token"), arrival)
    assert isinstance(verdict, LoginAccepted)
    assert verdict.principal == Principal("anna")
    assert knowing.asked == [Credentials("USER-NAME", "eyJ.token", peer_host=arrival.peer_host, client_id="sensor-1")]
    assert login_broker.verdict(connect("anna"), arrival) == LoginRefused(BAD, "bad user name or password", 3.0)


def test_a_client_identifier_alone_is_passed_to_the_authenticators(login_broker: LoginBroker) -> None:
    knowing = KnownClients()
    login_broker.access = Access([knowing], internal.gateway_authorizers(login_broker.broker.directory))
    verdict = login_broker.verdict(connect(), REMOTE)
    assert isinstance(verdict, LoginAccepted)
    assert verdict.principal == Principal("anna", frozenset({"device"}))
    assert knowing.asked == [Credentials("CLIENT-ID", peer_host=REMOTE.peer_host, client_id="sensor-1")]


def test_authenticators_get_the_client_identifier(login_broker: LoginBroker) -> None:
    knowing = KnownClients()
    login_broker.access = Access([knowing], internal.gateway_authorizers(login_broker.broker.directory))
    login_broker.verdict(connect("anna", b"secret"))
    assert [(asked.mechanism, asked.client_id) for asked in knowing.asked] == [("PLAIN", "sensor-1")]


def test_an_anonymous_login_is_not_a_failed_attempt(
    login_broker: LoginBroker, caplog: pytest.LogCaptureFixture
) -> None:
    assert isinstance(login_broker.verdict(connect()), LoginAccepted)
    assert "refused" not in caplog.text


def test_anonymous_clients_can_be_refused_by_a_setting(login_broker: LoginBroker) -> None:
    verdict = login_broker.verdict(connect(), LOCAL, anonymous_user="")
    assert verdict == LoginRefused(FORBIDDEN, "not authorized", 3.0)


def test_a_client_cannot_log_in_under_the_name_of_the_anonymous_user_without_its_password(
    login_broker: LoginBroker,
) -> None:
    """The anonymous user still needs a password if a client sends its name."""
    assert isinstance(login_broker.verdict(connect("guest", b""), LOCAL), LoginRefused)
    assert isinstance(login_broker.verdict(connect("guest", b"ANONYMOUS"), LOCAL), LoginRefused)


def test_certificate_login_can_be_disabled(login_broker: LoginBroker) -> None:
    verdict = login_broker.verdict(connect(), LOCAL._replace(certificate=STRANGER), certificate_login=False)
    assert isinstance(verdict, LoginAccepted)
    assert verdict.principal.name == "guest"


def test_the_port_mapping_selects_the_virtual_host(login_broker: LoginBroker) -> None:
    login_broker.broker.parameters.put(ParameterRecord("", "", "mqtt_port_to_vhost_mapping", {"1883": "shop"}))
    verdict = login_broker.verdict(connect("anna", b"secret"))
    assert isinstance(verdict, LoginAccepted)
    assert verdict.vhost.name == "shop"


def test_a_reached_connection_limit_is_reported_without_delay(login_broker: LoginBroker) -> None:
    login_broker.broker.limit_vhost("/", {"max-connections": 0})
    verdict = login_broker.verdict(connect("anna", b"secret"))
    assert isinstance(verdict, LoginRefused)
    assert (verdict.reason, verdict.delay_s) == (ReasonCode.QUOTA_EXCEEDED, 0.0)
    assert "connection limit (0) is reached" in verdict.text


def test_the_virtual_host_may_be_deleted_during_authentication(login_broker: LoginBroker) -> None:
    login = login_broker.login(connect("shop:anna", method="ASKS", data=b"slow"))
    verdicts = results(login.begin)
    login_broker.broker.delete_vhost("shop")
    login_broker.method.later[0](Success(Principal("anna")))
    assert verdicts == [LoginRefused(FORBIDDEN, "not authorized", 3.0)]


def test_the_reason_of_a_refusal_is_logged_and_not_sent(
    login_broker: LoginBroker, caplog: pytest.LogCaptureFixture
) -> None:
    login_broker.verdict(connect("nowhere:anna", b"hush"))
    assert caplog.records[-1].__dict__["gateway_fields"] == {
        "peer": "127.0.0.1", "client_id": "sensor-1", "user": "anna", "reason": "no virtual host 'nowhere'",
    }  # fmt: skip
    assert "hush" not in repr([record.__dict__ for record in caplog.records])


# With an authentication method (4.12)


def test_a_method_challenges_until_it_succeeds(login_broker: LoginBroker) -> None:
    login = login_broker.login(connect(method="ASKS"), REMOTE)
    assert login.method == "ASKS"
    assert results(login.begin) == [Challenge(b"who?")]
    (welcome,) = results(lambda answer: login.proceed(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"anna"), answer))
    assert isinstance(welcome, LoginAccepted)
    assert (welcome.principal.name, welcome.vhost.name, welcome.data) == ("anna", "/", b"hello")
    assert login_broker.method.visitors == [Visitor("/", "sensor-1", "192.0.2.7", None)]


def test_a_method_gets_the_virtual_host_of_the_user_name(login_broker: LoginBroker) -> None:
    verdict = login_broker.verdict(connect("shop:anna", method="ASKS", data=b"anna"))
    assert isinstance(verdict, LoginAccepted)
    assert verdict.vhost.name == "shop"


BY_METHOD = [
    pytest.param(connect(method="ASKS", data=b"wrong"), FORBIDDEN, 3.0, b"e=wrong", id="a failure"),
    pytest.param(connect(method="ASKS", data=b"mute"), FORBIDDEN, 3.0, b"", id="no permissions"),
    pytest.param(connect(method="ASKS", data=b"guest"), FORBIDDEN, 3.0, b"", id="guest from another host"),
    pytest.param(connect("bert", method="ASKS", data=b"anna"), FORBIDDEN, 3.0, b"", id="another name in CONNECT"),
    pytest.param(connect("bert", b"x", method="ASKS", data=b"anna"), FORBIDDEN, 3.0, b"", id="and with a password"),
    pytest.param(connect(method="OTHER"), ReasonCode.BAD_AUTHENTICATION_METHOD, 0.0, b"", id="MQTT-4.12.0-1: unknown"),
    pytest.param(connect(method=""), ReasonCode.BAD_AUTHENTICATION_METHOD, 0.0, b"", id="a method without a name"),
]


@pytest.mark.parametrize(("packet", "reason", "delay_s", "data"), BY_METHOD)
def test_refusals_of_an_authentication_method(
    login_broker: LoginBroker, packet: Connect, reason: ReasonCode, delay_s: float, data: bytes
) -> None:
    verdict = login_broker.verdict(packet, REMOTE)
    assert isinstance(verdict, LoginRefused), verdict
    assert (verdict.reason, verdict.delay_s, verdict.data) == (reason, delay_s, data)


def again(login: Login, data: bytes) -> list[LoginResult]:
    return results(lambda answer: login.proceed(auth(ReasonCode.RE_AUTHENTICATE, data), answer))


@pytest.fixture
def welcomed(login_broker: LoginBroker) -> Login:
    login = login_broker.login(connect(method="ASKS", data=b"anna"))
    login.begin(lambda verdict: None)
    return login


def test_a_client_may_re_authenticate(login_broker: LoginBroker, welcomed: Login) -> None:
    """4.12.1, with the same number of steps as before, and with the current permissions."""
    assert again(welcomed, b"") == [Challenge(b"who?")]
    (verdict,) = results(lambda answer: welcomed.proceed(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"anna"), answer))
    assert isinstance(verdict, LoginAccepted)
    login_broker.broker.limit_vhost("/", {"max-connections": 0})  # applies to new connections only
    (verdict,) = again(welcomed, b"anna")
    assert isinstance(verdict, LoginAccepted)


def test_an_auth_during_authentication_is_a_protocol_error(login_broker: LoginBroker, welcomed: Login) -> None:
    for login in (login_broker.login(connect(method="ASKS")), welcomed):
        login.begin(lambda verdict: None) if login is not welcomed else again(login, b"")
        assert results(lambda answer: login.proceed(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"slow"), answer)) == []  # noqa: B023  # called at once
        with pytest.raises(MqttError, match="unexpected AUTH"):
            login.proceed(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"anna"), lambda verdict: None)


def test_re_authentication_cannot_change_the_user(welcomed: Login) -> None:
    assert again(welcomed, b"guest") == [LoginRefused(FORBIDDEN, "not authorized")]


def test_a_failed_re_authentication_is_refused_without_delay(welcomed: Login) -> None:
    assert again(welcomed, b"wrong") == [LoginRefused(FORBIDDEN, "not authorized", 0.0, b"e=wrong")]
    with pytest.raises(MqttError):
        again(welcomed, b"anna")


OUT_OF_TURN = [
    pytest.param(connect(), auth(ReasonCode.RE_AUTHENTICATE), ReasonCode.PROTOCOL_ERROR, id="MQTT-4.12.0-7: no method"),
    pytest.param(
        connect(method="ASKS", data=b"anna"), auth(ReasonCode.RE_AUTHENTICATE, method=None), ReasonCode.PROTOCOL_ERROR,
        id="3.15.2.2.2: no method in AUTH",
    ),
    pytest.param(
        connect(method="ASKS"), auth(ReasonCode.CONTINUE_AUTHENTICATION, method="OTHER"),
        ReasonCode.BAD_AUTHENTICATION_METHOD, id="MQTT-4.12.0-5: another method",
    ),
    pytest.param(
        connect(method="ASKS"), auth(ReasonCode.RE_AUTHENTICATE), ReasonCode.PROTOCOL_ERROR,
        id="MQTT-4.12.0-3: too early",
    ),
    pytest.param(
        connect(method="ASKS", data=b"anna"), auth(ReasonCode.CONTINUE_AUTHENTICATION), ReasonCode.PROTOCOL_ERROR,
        id="4.12.1: nothing to continue",
    ),
    pytest.param(
        connect(method="ASKS", data=b"slow"), auth(ReasonCode.CONTINUE_AUTHENTICATION), ReasonCode.PROTOCOL_ERROR,
        id="4.12: while the server must answer",
    ),
    pytest.param(
        connect(method="ASKS", data=b"anna"), auth(ReasonCode.SUCCESS), ReasonCode.PROTOCOL_ERROR,
        id="3.15.2.1: a reason of the server",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("packet", "auth_packet", "reason"), OUT_OF_TURN)
def test_an_unexpected_auth_is_refused(
    login_broker: LoginBroker, packet: Connect, auth_packet: Auth, reason: ReasonCode
) -> None:
    login = login_broker.login(packet)
    login.begin(lambda verdict: None)
    with pytest.raises(MqttError) as error:
        login.proceed(auth_packet, lambda verdict: None)
    assert error.value.reason is reason
