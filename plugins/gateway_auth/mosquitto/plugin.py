"""auth-mosquitto: MQTT logins and topics by Mosquitto's files: password file and ACL file, or dynamic security.

It concerns clients of MQTT alone, since the rules are about topics. It offers them no other exchange and no queue but
those of their own session.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self
from weakref import WeakValueDictionary

from pydantic import Field, model_validator

from gateway.api import (
    Authenticator,
    Authorizer,
    Credentials,
    CtlVerb,
    HttpResource,
    Interceptor,
    Operation,
    Origin,
    PasswordCheck,
    Permissions,
    PluginSettings,
    Principal,
    TracedVhost,
    UiPanel,
    hookimpl,
)
from gateway_auth.mosquitto import report
from gateway_auth.mosquitto.acl_file import parse_acl_file
from gateway_auth.mosquitto.control.control_topic import ControlTopic
from gateway_auth.mosquitto.dynamic_security import DynamicSecurity, parse_dynamic_security
from gateway_auth.mosquitto.password_file import UNKNOWN_USER, PasswordHash, parse_password_file
from gateway_auth.mosquitto.rules import MqttClient, OpenTopics, TopicRules
from gateway_auth.mosquitto.topics import levels_of_key
from gateway_auth.mosquitto.watched_file import WatchedFile

#: The queues of sessions and of shared subscriptions.
_OWN_QUEUE: Final = "mqtt-subscription-{}qos"
_SHARED_QUEUE: Final = "mqtt-shared-"

#: The dynamic security file of each virtual host's authenticator and authorizer, for the hooks that are called later.
_logins: Final[WeakValueDictionary[str, WatchedFile[DynamicSecurity]]] = WeakValueDictionary()
_secured: Final[WeakValueDictionary[str, WatchedFile[DynamicSecurity]]] = WeakValueDictionary()


class MosquittoSettings(PluginSettings):
    """The settings of ``auth-mosquitto``."""

    password_file: str = ""
    """A file of ``mosquitto_passwd``."""

    acl_file: str = ""
    """An ACL file; without it all topics are open to all clients."""

    dynamic_security_file: str = ""
    """The JSON file of the dynamic security plugin, instead of the other two."""

    anonymous_user: str = ""
    """The user name of clients without one, from any address; empty refuses them, as ``allow_anonymous false``."""

    reload_s: float = Field(default=5.0, ge=0.1, le=3600)
    """Interval at which the files are checked for changes."""

    def accepts_as(self, other: "MosquittoSettings") -> bool:
        """Whether other settings have the same clients and rules."""
        return self.model_dump(exclude={"reload_s"}) == other.model_dump(exclude={"reload_s"})

    @model_validator(mode="after")
    def _has_files(self) -> Self:
        if self.dynamic_security_file and (self.password_file or self.acl_file):
            raise ValueError("dynamic_security_file cannot be combined with password_file and acl_file")
        if not (self.dynamic_security_file or self.password_file or self.anonymous_user):
            raise ValueError("one of password_file, dynamic_security_file and anonymous_user is required")
        return self


@dataclass(frozen=True, slots=True)
class MosquittoGrant:
    """The client of a login by this plugin, and the settings of the login."""

    client: MqttClient
    settings: MosquittoSettings


class MosquittoAuthenticator:
    """Authenticates clients of MQTT. ``find`` returns the hash of a user who may log in with a client identifier.

    ``close`` ends the checks of its file.
    """

    def __init__(
        self,
        settings: MosquittoSettings,
        find: Callable[[str, str], PasswordHash | None],
        passwords: PasswordCheck,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._find = find
        self._passwords = passwords
        self.close = close

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer``: at once for other protocols, else after a thread has checked the password."""
        user, client_id = credentials.username, credentials.client_id
        if credentials.mechanism == "CLIENT-ID" and self._settings.anonymous_user:
            answer(self._principal(self._settings.anonymous_user, MqttClient("", client_id)))
            return
        if credentials.mechanism != "PLAIN" or not client_id or not user:
            answer(None)
            return
        found, password = self._find(user, client_id), credentials.password

        def verified(is_right: bool) -> None:
            is_known = found is not None and self._find(user, client_id) == found
            answer(self._principal(user, MqttClient(user, client_id)) if is_right and is_known else None)

        check = found or UNKNOWN_USER
        if not self._passwords.submit(lambda: check.verify(password), verified, lambda: answer(None)):
            answer(None)

    def _principal(self, name: str, client: MqttClient) -> Principal:
        return Principal(name, grant=MosquittoGrant(client, self._settings))


class MosquittoPermissions(Permissions):
    """The permissions of one client of MQTT."""

    __slots__ = ("_client", "_topic_rules")

    def __init__(self, user: str, vhost: str, client: MqttClient, rules: TopicRules) -> None:
        super().__init__(user, vhost, "", "", "")
        self._client = client
        self._topic_rules = rules

    def may(self, operation: Operation, name: str, kind: str = "exchange") -> bool:
        """Whether it is the exchange, whose topics are restricted, or a queue of the client's own session."""
        if kind == "exchange":
            return operation is not Operation.CONFIGURE
        return name.startswith((_OWN_QUEUE.format(self._client.client_id), _SHARED_QUEUE))

    @property
    def restricts_topics(self) -> bool:
        """Whether topics are restricted: always."""
        return True

    def may_use_topic(
        self,
        operation: Operation,
        exchange: str,
        routing_key: str,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> bool:
        """Whether the rules permit a topic or a filter, given as its key."""
        decide = self._topic_rules.may_publish if operation is Operation.WRITE else self._topic_rules.may_subscribe
        return decide(self._client, levels_of_key(routing_key))

    def may_use_every_topic(self, operation: Operation, exchange: str) -> bool:
        """Whether all topics may be used: never."""
        return False


class MosquittoAuthorizer:
    """Authorizes the clients that logged in by this plugin; ``rules`` returns the current rules.

    ``close`` ends the checks of their file. ``admits`` tells whether a client may still be connected.
    """

    def __init__(
        self,
        settings: MosquittoSettings,
        rules: Callable[[], TopicRules],
        close: Callable[[], None] = lambda: None,
        admits: Callable[[MqttClient], bool] = lambda client: True,
    ) -> None:
        self._settings = settings
        self._rules = rules
        self._admits = admits
        self.close = close

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        """Return the permissions; ``None`` for a client that logged in by other means, or was removed since."""
        grant = principal.grant
        if not isinstance(grant, MosquittoGrant) or not self._settings.accepts_as(grant.settings):
            return None
        if not self._admits(grant.client):
            return None
        return MosquittoPermissions(principal.name, vhost, grant.client, self._rules())


def _reactor() -> Any:
    from twisted.internet import reactor  # the broker chooses the reactor before its plugins start

    return reactor


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the settings."""
    return MosquittoSettings


@hookimpl
def gateway_authenticators(
    vhost: str, settings: MosquittoSettings, passwords: PasswordCheck
) -> Sequence[Authenticator]:
    """Offer the authenticator of clients of MQTT."""
    reactor, interval_s = _reactor(), settings.reload_s
    if settings.dynamic_security_file:
        secured = WatchedFile(settings.dynamic_security_file, parse_dynamic_security, interval_s, reactor)
        _logins[vhost] = secured

        def find(user: str, client_id: str) -> PasswordHash | None:
            found = secured.content.client(user, client_id)
            return None if found is None else found.password_hash()

        return [MosquittoAuthenticator(settings, find, passwords, secured.close)]
    if settings.password_file:
        hashes = WatchedFile(settings.password_file, parse_password_file, interval_s, reactor)

        return [MosquittoAuthenticator(settings, lambda user, _: hashes.content.get(user), passwords, hashes.close)]
    return [MosquittoAuthenticator(settings, lambda *_: None, passwords)]


@hookimpl
def gateway_authorizers(
    vhost: str, settings: MosquittoSettings, permissions_changed: Callable[[], None]
) -> Sequence[Authorizer]:
    """Offer the authorizer of their topics."""
    reactor, interval_s = _reactor(), settings.reload_s
    if settings.dynamic_security_file:
        path = settings.dynamic_security_file
        secured: WatchedFile[DynamicSecurity] = WatchedFile(
            path, parse_dynamic_security, interval_s, reactor, permissions_changed
        )
        _secured[vhost] = secured

        def admits(client: MqttClient) -> bool:
            return secured.content.admits(client)

        return [MosquittoAuthorizer(settings, lambda: secured.content, secured.close, admits)]
    if settings.acl_file:
        acl = WatchedFile(settings.acl_file, parse_acl_file, interval_s, reactor, permissions_changed)
        return [MosquittoAuthorizer(settings, lambda: acl.content, acl.close)]
    return [MosquittoAuthorizer(settings, OpenTopics)]


@hookimpl
def gateway_interceptors(vhost: TracedVhost, settings: MosquittoSettings) -> Sequence[Interceptor]:
    """Offer the topic for commands that change a dynamic security file."""
    path = settings.dynamic_security_file
    if not path:
        return []
    logins, secured = _logins[vhost.name], _secured[vhost.name]

    def use(content: DynamicSecurity) -> None:
        logins.replace(content)
        secured.replace(content)

    def client_of(origin: Origin) -> MqttClient | None:
        grant = origin.grant
        return grant.client if isinstance(grant, MosquittoGrant) and settings.accepts_as(grant.settings) else None

    return [ControlTopic(vhost, path, client_of, lambda: secured.content, use, settings.anonymous_user)]


@hookimpl
def gateway_http_resources(vhost: TracedVhost, settings: MosquittoSettings) -> Sequence[HttpResource]:
    """Offer the clients, groups and roles of a dynamic security file."""
    if not settings.dynamic_security_file:
        return []
    secured = _secured[vhost.name]
    return report.resources(lambda: secured.content)


@hookimpl
def gateway_ctl_verbs(settings: MosquittoSettings) -> Sequence[CtlVerb]:
    """Offer them to gatewayctl."""
    return report.verbs() if settings.dynamic_security_file else []


@hookimpl
def gateway_ui_panels(settings: MosquittoSettings) -> Sequence[UiPanel]:
    """Offer tables of them."""
    return report.panels() if settings.dynamic_security_file else []
