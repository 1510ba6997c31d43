"""From CONNECT to who it is and where it goes, or the reason why not; and once more at re-authentication."""

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
from gateway.kernel.journal.records import ParameterRecord, PermissionRecord, UserRecord
from gateway.testing import MemoryBroker
from gateway_auth import certificate, internal
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.packets import Auth, Connect
from gateway_mqtt.codec.properties import PropertyId
from gateway_mqtt.codec.reasons import CONNACK_3, ReasonCode
from gateway_mqtt.handshake.login import Login, LoginRules, TurnedAway, Verdict, Welcome
from gateway_mqtt.handshake.places import Arrival

HERE = Arrival("127.0.0.1", 1883)
AFAR = Arrival("192.0.2.7", 1883)
ROBOT = CertificateSubject("robot", "CN=robot")
STRANGER = CertificateSubject("stranger", "CN=stranger")


class Asks:
    """A method: asks once, and believes whoever answers with a user name. ``later`` is where a slow answer goes."""

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


class Tokens:
    """An authenticator that finds the user's name in the password."""

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        user, _, token = credentials.password.partition("/")
        answer(Principal(user) if token == "token" and not credentials.username else None)


class Credulous:
    """Takes an empty password for an anonymous login, as LDAP servers do, and says yes."""

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        is_blank = credentials.mechanism == "PLAIN" and not credentials.password
        answer(Principal(credentials.username) if is_blank else None)


class Place:
    """A broker with users ``guest``, ``anna``, ``robot`` (by certificate) and ``mute``, who may enter nowhere."""

    def __init__(self) -> None:
        self.broker = MemoryBroker().kernel
        self.broker.declare_vhost("shop")
        for name, password in (("guest", "guest"), ("anna", "secret"), ("CN=robot", ""), ("mute", "secret")):
            hashed = hash_password(password) if password else ""
            self.broker.directory.put_user(UserRecord(name, hashed, DEFAULT_ALGORITHM, ["tag"], {}))
        for vhost, name in (("/", "guest"), ("/", "anna"), ("shop", "anna"), ("/", "CN=robot")):
            self.broker.directory.put_permission(PermissionRecord(vhost, name, ".*", ".*", ".*"))
        directory, self.method = self.broker.directory, Asks()
        self.access = Access(
            [
                *internal.gateway_authenticators(directory, PasswordVerifier()),
                *certificate.gateway_authenticators(directory, {}),
                Tokens(),
                Credulous(),
            ],
            internal.gateway_authorizers(directory),
            methods={"ASKS": self.method},
        )
        self.settings = LoginRules(self.broker, lambda vhost: self.access)

    def login(self, packet: Connect, arrival: Arrival = HERE, **settings: Any) -> Login:
        return Login(replace(self.settings, **settings), arrival, packet, "sensor-1")

    def verdict(self, packet: Connect, arrival: Arrival = HERE, **settings: Any) -> Verdict:
        (verdict,) = heard(self.login(packet, arrival, **settings).begin)
        return verdict


@pytest.fixture
def place() -> Place:
    return Place()


def connect(username: str | None = None, password: bytes | None = None, version: int = 5, **properties: Any) -> Connect:
    """Return a CONNECT; ``method`` and ``data`` are its properties."""
    names = {"method": PropertyId.AUTHENTICATION_METHOD, "data": PropertyId.AUTHENTICATION_DATA}
    given = {names[name]: value for name, value in properties.items()}
    return Connect(version, "MQTT", True, 60, "sensor-1", username, password, None, given)


def auth(reason: ReasonCode, data: bytes = b"", method: str | None = "ASKS") -> Auth:
    properties: dict[PropertyId, Any] = {PropertyId.AUTHENTICATION_DATA: data}
    if method is not None:
        properties[PropertyId.AUTHENTICATION_METHOD] = method
    return Auth(reason, properties)


def heard(judge: Callable[[Callable[[Verdict], None]], None]) -> list[Verdict]:
    verdicts: list[Verdict] = []
    judge(verdicts.append)
    return verdicts


# Without a method

WELCOME = [
    pytest.param(connect("anna", b"secret"), HERE, "/", "anna", id="user name and password"),
    pytest.param(connect("anna", b"secret", 3), AFAR, "/", "anna", id="the same in 3.1"),
    pytest.param(connect("shop:anna", b"secret"), AFAR, "shop", "anna", id="with a virtual host"),
    pytest.param(connect("guest", b"guest"), HERE, "/", "guest", id="guest from this machine"),
    pytest.param(connect(), HERE, "/", "guest", id="anonymous from this machine"),
    pytest.param(connect(version=4), HERE, "/", "guest", id="anonymous in 3.1.1"),
    pytest.param(connect(), replace(AFAR, certificate=ROBOT), "/", "CN=robot", id="by certificate"),
    pytest.param(connect("CN=robot"), replace(AFAR, certificate=ROBOT), "/", "CN=robot", id="certificate and its name"),
    pytest.param(connect("anna", b"secret"), replace(AFAR, certificate=ROBOT), "/", "anna", id="password first"),
    pytest.param(connect(password=b"anna/token"), AFAR, "/", "anna", id="3.1.2.9: a password alone, in 5.0"),
]


@pytest.mark.parametrize(("packet", "arrival", "vhost", "user"), WELCOME)
def test_who_is_welcome(place: Place, packet: Connect, arrival: Arrival, vhost: str, user: str) -> None:
    verdict = place.verdict(packet, arrival)
    assert isinstance(verdict, Welcome), verdict
    assert (verdict.vhost.name, verdict.principal.name, verdict.data) == (vhost, user, b"")
    assert (verdict.permissions.vhost, verdict.permissions.user) == (vhost, user)


BAD, FORBIDDEN = ReasonCode.BAD_USER_NAME_OR_PASSWORD, ReasonCode.NOT_AUTHORIZED
REFUSED = [
    pytest.param(connect("anna", b"wrong"), AFAR, BAD, id="a wrong password"),
    pytest.param(connect("nobody", b"secret"), AFAR, BAD, id="no such user"),
    pytest.param(connect("anna", b""), AFAR, BAD, id="an empty password"),
    pytest.param(connect("CN=robot", b""), AFAR, BAD, id="an empty password of a user without one"),
    pytest.param(connect("anna", b"\xff"), AFAR, BAD, id="a password that is no text"),
    pytest.param(connect("anna"), AFAR, BAD, id="no password"),
    pytest.param(connect("guest"), HERE, BAD, id="no password for the anonymous user"),
    pytest.param(connect(""), HERE, BAD, id="an empty user name"),
    pytest.param(connect(password=b"anna/token", version=3), AFAR, BAD, id="a password alone, in 3.1"),
    pytest.param(connect("guest", b"guest"), AFAR, BAD, id="guest from elsewhere"),
    pytest.param(connect("nowhere:anna", b"secret"), AFAR, BAD, id="no such virtual host"),
    pytest.param(connect("mute", b"secret"), AFAR, FORBIDDEN, id="no permissions"),
    pytest.param(connect("shop:guest", b"guest"), HERE, FORBIDDEN, id="no permissions in this virtual host"),
    pytest.param(connect(), AFAR, FORBIDDEN, id="anonymous from elsewhere"),
    pytest.param(connect(), replace(HERE, certificate=STRANGER), FORBIDDEN, id="a certificate of nobody"),
    pytest.param(connect("anna"), replace(HERE, certificate=ROBOT), FORBIDDEN, id="a certificate of somebody else"),
]


@pytest.mark.parametrize(("packet", "arrival", "reason"), REFUSED)
def test_who_is_turned_away_and_told_late(place: Place, packet: Connect, arrival: Arrival, reason: ReasonCode) -> None:
    verdict = place.verdict(packet, arrival, refusal_delay_s=1.5)
    assert isinstance(verdict, TurnedAway), verdict
    assert (verdict.reason, verdict.delay_s) == (reason, 1.5)
    assert verdict.text in ("bad user name or password", "not authorized")
    assert CONNACK_3[reason] == (4 if reason is BAD else 5)


def test_anonymous_clients_count_as_the_user_of_the_setting(place: Place) -> None:
    verdict = place.verdict(connect(), HERE, anonymous_user="anna")
    assert isinstance(verdict, Welcome)
    assert verdict.principal == Principal("anna")  # without the tags of who proves to be anna


def test_anonymous_clients_come_from_this_machine_unless_a_setting_allows_others(place: Place) -> None:
    refused = TurnedAway(FORBIDDEN, "not authorized", 3.0)
    assert place.verdict(connect(), AFAR, anonymous_user="anna") == refused
    assert isinstance(place.verdict(connect(), AFAR, anonymous_user="anna", anonymous_from_network=True), Welcome)
    assert place.verdict(connect(), AFAR, anonymous_from_network=True) == refused  # guest is a loopback user


def test_anonymous_clients_are_no_web_pages_unless_a_setting_allows_them(place: Place) -> None:
    page = replace(HERE, is_from_page=True)
    assert place.verdict(connect(), page) == TurnedAway(FORBIDDEN, "not authorized", 3.0)
    assert isinstance(place.verdict(connect(), page, anonymous_from_pages=True), Welcome)
    assert isinstance(place.verdict(connect("anna", b"secret"), page), Welcome)


class Knowing:
    """An authenticator that knows user names which are tokens, and one client by its identifier."""

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


@pytest.mark.parametrize("arrival", [HERE, AFAR], ids=["here", "afar"])
def test_a_user_name_without_a_password_reaches_the_authenticators(place: Place, arrival: Arrival) -> None:
    knowing = Knowing()
    place.access = Access([knowing], internal.gateway_authorizers(place.broker.directory))
    verdict = place.verdict(connect("eyJ.token"), arrival)
    assert isinstance(verdict, Welcome)
    assert verdict.principal == Principal("anna")
    assert knowing.asked == [Credentials("USER-NAME", "eyJ.token", peer_host=arrival.peer_host, client_id="sensor-1")]
    assert place.verdict(connect("anna"), arrival) == TurnedAway(BAD, "bad user name or password", 3.0)


def test_the_client_identifier_alone_reaches_the_authenticators(place: Place) -> None:
    knowing = Knowing()
    place.access = Access([knowing], internal.gateway_authorizers(place.broker.directory))
    verdict = place.verdict(connect(), AFAR)
    assert isinstance(verdict, Welcome)
    assert verdict.principal == Principal("anna", frozenset({"device"}))
    assert knowing.asked == [Credentials("CLIENT-ID", peer_host=AFAR.peer_host, client_id="sensor-1")]


def test_authenticators_are_told_the_client_identifier(place: Place) -> None:
    knowing = Knowing()
    place.access = Access([knowing], internal.gateway_authorizers(place.broker.directory))
    place.verdict(connect("anna", b"secret"))
    assert [(asked.mechanism, asked.client_id) for asked in knowing.asked] == [("PLAIN", "sensor-1")]


def test_an_anonymous_login_is_no_failed_attempt(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    assert isinstance(place.verdict(connect()), Welcome)
    assert "refused" not in caplog.text


def test_anonymous_clients_may_be_refused_altogether(place: Place) -> None:
    verdict = place.verdict(connect(), HERE, anonymous_user="")
    assert verdict == TurnedAway(FORBIDDEN, "not authorized", 3.0)


def test_no_client_can_name_itself_anonymous(place: Place) -> None:
    """The user that anonymous clients count as still has a password for whoever comes under its name."""
    assert isinstance(place.verdict(connect("guest", b""), HERE), TurnedAway)
    assert isinstance(place.verdict(connect("guest", b"ANONYMOUS"), HERE), TurnedAway)


def test_certificates_may_count_for_nothing(place: Place) -> None:
    verdict = place.verdict(connect(), replace(HERE, certificate=STRANGER), certificate_login=False)
    assert isinstance(verdict, Welcome)
    assert verdict.principal.name == "guest"


def test_operators_map_ports_to_virtual_hosts(place: Place) -> None:
    place.broker.put_parameter(ParameterRecord("", "", "mqtt_port_to_vhost_mapping", {"1883": "shop"}))
    verdict = place.verdict(connect("anna", b"secret"))
    assert isinstance(verdict, Welcome)
    assert verdict.vhost.name == "shop"


def test_a_limit_of_connections_is_told_at_once(place: Place) -> None:
    place.broker.limit_vhost("/", {"max-connections": 0})
    verdict = place.verdict(connect("anna", b"secret"))
    assert isinstance(verdict, TurnedAway)
    assert (verdict.reason, verdict.delay_s) == (ReasonCode.QUOTA_EXCEEDED, 0.0)
    assert "connection limit (0) is reached" in verdict.text


def test_a_virtual_host_may_go_while_somebody_is_asked(place: Place) -> None:
    login = place.login(connect("shop:anna", method="ASKS", data=b"slow"))
    verdicts = heard(login.begin)
    place.broker.delete_vhost("shop")
    place.method.later[0](Success(Principal("anna")))
    assert verdicts == [TurnedAway(FORBIDDEN, "not authorized", 3.0)]


def test_a_refusal_is_logged_with_what_the_client_is_not_told(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.verdict(connect("nowhere:anna", b"hush"))
    assert caplog.records[-1].__dict__["gateway_fields"] == {
        "peer": "127.0.0.1", "client_id": "sensor-1", "user": "anna", "reason": "no virtual host 'nowhere'",
    }  # fmt: skip
    assert "hush" not in repr([record.__dict__ for record in caplog.records])


# By a method (4.12)


def test_a_method_asks_until_it_knows(place: Place) -> None:
    login = place.login(connect(method="ASKS"), AFAR)
    assert login.method == "ASKS"
    assert heard(login.begin) == [Challenge(b"who?")]
    (welcome,) = heard(lambda answer: login.proceed(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"anna"), answer))
    assert isinstance(welcome, Welcome)
    assert (welcome.principal.name, welcome.vhost.name, welcome.data) == ("anna", "/", b"hello")
    assert place.method.visitors == [Visitor("/", "sensor-1", "192.0.2.7", None)]


def test_a_method_knows_the_virtual_host_of_the_user_name(place: Place) -> None:
    verdict = place.verdict(connect("shop:anna", method="ASKS", data=b"anna"))
    assert isinstance(verdict, Welcome)
    assert verdict.vhost.name == "shop"


BY_METHOD = [
    pytest.param(connect(method="ASKS", data=b"wrong"), FORBIDDEN, 3.0, b"e=wrong", id="a failure"),
    pytest.param(connect(method="ASKS", data=b"mute"), FORBIDDEN, 3.0, b"", id="no permissions"),
    pytest.param(connect(method="ASKS", data=b"guest"), FORBIDDEN, 3.0, b"", id="guest from elsewhere"),
    pytest.param(connect("bert", method="ASKS", data=b"anna"), FORBIDDEN, 3.0, b"", id="another name in CONNECT"),
    pytest.param(connect("bert", b"x", method="ASKS", data=b"anna"), FORBIDDEN, 3.0, b"", id="and with a password"),
    pytest.param(connect(method="OTHER"), ReasonCode.BAD_AUTHENTICATION_METHOD, 0.0, b"", id="MQTT-4.12.0-1: unknown"),
    pytest.param(connect(method=""), ReasonCode.BAD_AUTHENTICATION_METHOD, 0.0, b"", id="a method without a name"),
]


@pytest.mark.parametrize(("packet", "reason", "delay_s", "data"), BY_METHOD)
def test_whom_a_method_turns_away(
    place: Place, packet: Connect, reason: ReasonCode, delay_s: float, data: bytes
) -> None:
    verdict = place.verdict(packet, AFAR)
    assert isinstance(verdict, TurnedAway), verdict
    assert (verdict.reason, verdict.delay_s, verdict.data) == (reason, delay_s, data)


def again(login: Login, data: bytes) -> list[Verdict]:
    return heard(lambda answer: login.proceed(auth(ReasonCode.RE_AUTHENTICATE, data), answer))


@pytest.fixture
def welcomed(place: Place) -> Login:
    login = place.login(connect(method="ASKS", data=b"anna"))
    login.begin(lambda verdict: None)
    return login


def test_a_client_may_authenticate_again(place: Place, welcomed: Login) -> None:
    """4.12.1, in as many turns as before, and with what it may do now."""
    assert again(welcomed, b"") == [Challenge(b"who?")]
    (verdict,) = heard(lambda answer: welcomed.proceed(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"anna"), answer))
    assert isinstance(verdict, Welcome)
    place.broker.limit_vhost("/", {"max-connections": 0})  # it is in already, so this is for others
    (verdict,) = again(welcomed, b"anna")
    assert isinstance(verdict, Welcome)


def test_an_auth_while_the_server_thinks_is_out_of_turn(place: Place, welcomed: Login) -> None:
    for login in (place.login(connect(method="ASKS")), welcomed):
        login.begin(lambda verdict: None) if login is not welcomed else again(login, b"")
        assert heard(lambda answer: login.proceed(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"slow"), answer)) == []  # noqa: B023  # called at once
        with pytest.raises(MqttError, match="unexpected AUTH"):
            login.proceed(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"anna"), lambda verdict: None)


def test_nobody_becomes_somebody_else(welcomed: Login) -> None:
    assert again(welcomed, b"guest") == [TurnedAway(FORBIDDEN, "not authorized")]


def test_a_failed_re_authentication_is_the_end_at_once(welcomed: Login) -> None:
    assert again(welcomed, b"wrong") == [TurnedAway(FORBIDDEN, "not authorized", 0.0, b"e=wrong")]
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
        id="MQTT-4.12.0-3: not yet",
    ),
    pytest.param(
        connect(method="ASKS", data=b"anna"), auth(ReasonCode.CONTINUE_AUTHENTICATION), ReasonCode.PROTOCOL_ERROR,
        id="4.12.1: nothing to continue",
    ),
    pytest.param(
        connect(method="ASKS", data=b"slow"), auth(ReasonCode.CONTINUE_AUTHENTICATION), ReasonCode.PROTOCOL_ERROR,
        id="4.12: the server's turn",
    ),
    pytest.param(
        connect(method="ASKS", data=b"anna"), auth(ReasonCode.SUCCESS), ReasonCode.PROTOCOL_ERROR,
        id="3.15.2.1: the server's",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("packet", "said", "reason"), OUT_OF_TURN)
def test_an_auth_out_of_turn(place: Place, packet: Connect, said: Auth, reason: ReasonCode) -> None:
    login = place.login(packet)
    login.begin(lambda verdict: None)
    with pytest.raises(MqttError) as error:
        login.proceed(said, lambda verdict: None)
    assert error.value.reason is reason
