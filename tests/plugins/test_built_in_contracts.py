"""The kits of gateway.testing run against every object that a built-in plugin offers, for each of its hooks.

A new built-in, or a new hook of one, has a kit run as soon as the registry lists it; a plugin that needs settings has a
row in ``SETTINGS``. Those that ask servers ask real ones.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from twisted.internet import reactor

from gateway import hookspecs
from gateway.access import Access
from gateway.api import (
    Authenticator,
    CertificateSubject,
    ConfigurationError,
    Credentials,
    Directory,
    NotAllowed,
    Permissions,
    Principal,
    UserRecord,
    hash_password,
)
from gateway.kernel.journal.records.access import PermissionRecord
from gateway.patterns import compile_pattern
from gateway.plugins.registry import BUILT_IN_MODULES, load_plugins
from gateway.plugins.view import PluginView
from gateway.testing import (
    check_access_wrapper,
    check_authentication_method,
    check_authenticator,
    check_authorizer,
    check_ctl_verb,
    check_event_listener,
    check_exchange_type,
    check_http_resource,
    check_interceptor,
    check_metric_source,
    check_queue_feature,
    check_tracer,
    check_ui_panel,
)
from gateway.testing.event_listener import StandInObservedVhost
from tests.auth.access_server import AccessServer, Form
from tests.auth.issuer import Issuer
from tests.auth.open_ldap import BASE, open_ldap
from tests.auth.test_mosquitto_rules import ACL, PASSWORDS
from tests.plugins.validation.test_protobuf import ORDER
from tests.waiting import wait_until

T = TypeVar("T")

SELECTORS = [{"x-jms-selector": "animal = 'dog'"}, {"x-jms-selector": "TRUE"}]

PER = ("user", "client", "vhost")

VHOST = StandInObservedVhost()

ANNA = Credentials("PLAIN", "anna", "secret", client_id="lamp")

#: What settings refer to: ``directory`` has the files of Mosquitto; the others are URLs of servers, and a token.
Place = Mapping[str, Any]

SCHEMA: dict[str, Any] = {"type": "object", "required": ["id"]}


def _with_paths(place: Place) -> dict[str, Any]:
    return {f"{name}_path": f"{place['http']}/{name}" for name in ("user", "vhost", "resource", "topic")}


def _with_queries(place: Place) -> dict[str, Any]:
    return {
        "servers": [place["ldap"]],
        "user_dn_pattern": f"uid=${{username}},ou=people,{BASE}",
        "resource_access_query": "match(${name}, ^q)",
        "topic_access_query": "match(${routing_key}, ^a)",
    }


def _files(place: Place, *names: str, **settings: Any) -> dict[str, Any]:
    """Return settings with the paths of files: ``acl`` is ``acl_file``."""
    return {f"{name}_file": str(place["directory"] / name) for name in names} | settings


#: The settings of the plugins that need some, in the variants that offer other objects.
SETTINGS: Mapping[str, Sequence[Callable[[Place], Mapping[str, Any]]]] = {
    "auth-http": [_with_paths],
    "auth-ldap": [_with_queries],
    "auth-oauth2": [lambda place: {"resource_server_id": "mq", "jwks_url": place["jwks"]}],
    "auth-mosquitto": [
        lambda place: _files(place, "password", "acl"),
        lambda place: _files(place, "dynamic_security"),
        lambda place: {"anonymous_user": "stranger"},
    ],
    "auth-cache": [lambda place: {"plugins": ["auth-http"]}],
    "tracing-json-lines": [lambda place: {"path": str(place["directory"] / "lines")}],
    "interceptor-rewrite": [
        lambda place: {"rules": [{"set": {"a": 1}, "rename": {"text": "b"}, "remove": ["number"]}]}
    ],
    "interceptor-rate-limit": [lambda place, per=per: {"messages_per_s": 1.5, "burst": 2, "per": per} for per in PER],
    "interceptor-json-schema": [lambda place: {"rules": [{"exchange": "source", "schema": SCHEMA}]}],
    "interceptor-avro": [lambda place: {"rules": [{"exchange": "source", "schema": "long", "quarantine": "bad"}]}],
    "interceptor-protobuf": [lambda place: {"rules": [{"exchange": "source", **ORDER}]}],
}

#: Credentials that a plugin with these settings accepts.
ACCEPTED: Mapping[str, Callable[[Place, int], Credentials]] = {
    "auth-internal": lambda place, variant: ANNA,
    "auth-certificate": lambda place, variant: Credentials("EXTERNAL", certificate=CertificateSubject("anna", "anna")),
    "auth-http": lambda place, variant: ANNA,
    "auth-ldap": lambda place, variant: Credentials("PLAIN", "anna", "right"),
    "auth-oauth2": lambda place, variant: Credentials("PLAIN", "", place["token"]),
    "auth-mosquitto": lambda place, variant: ANNA if variant < 2 else Credentials("CLIENT-ID", client_id="lamp"),
}

#: Plugins with settings with which they have neither interceptors nor anything to show to operators.
WITHOUT_OPTIONAL = {("auth-mosquitto", 0), ("auth-mosquitto", 2)}

OPTIONAL = {"gateway_http_resources", "gateway_ctl_verbs", "gateway_ui_panels", "gateway_interceptors"}

#: Each plugin with each of its settings and each of its hooks.
CASES = [
    (plugin, variant, hook)
    for plugin in BUILT_IN_MODULES
    for variant in range(len(SETTINGS.get(plugin, "?")))
    for hook in load_plugins().hooks(plugin)
    if hook not in OPTIONAL or (plugin, variant) not in WITHOUT_OPTIONAL
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("contracts")
    (directory / "password").write_text(PASSWORDS)
    (directory / "acl").write_text(ACL)
    (directory / "dynamic_security").write_text(json.dumps(_dynamic_security()))
    issuer = Issuer()
    with issuer.server.running() as keys, AccessServer(_respond).running() as http, open_ldap(directory / "l") as ldap:
        yield {"directory": directory, "token": issuer.token(), "jwks": keys.url, "http": http.url, "ldap": ldap}


def _dynamic_security() -> dict[str, Any]:
    """Return what Mosquitto's dynamic security plugin stores for one client."""
    salt, iterations = b"salt and pepper!", 101
    digest = hashlib.pbkdf2_hmac("sha512", b"secret", salt, iterations)
    client = {"username": "anna", "iterations": iterations, "roles": [{"rolename": "own"}]}
    client |= {"password": b64encode(digest).decode(), "salt": b64encode(salt).decode()}
    rule = {"acltype": "publishClientSend", "topic": "a/#", "allow": True}
    return {"clients": [client], "roles": [{"rolename": "own", "acls": [rule]}]}


def _respond(path: str, form: Form) -> tuple[int, bytes]:
    """Know Anna, the virtual host "/", and resources that begin with a letter."""
    match path:
        case "/user":
            allows = (form["username"], form["password"]) == ("anna", "secret")
        case "/vhost":
            allows = form["vhost"] == "/"
        case _:
            allows = form["name"].isalpha()
    return 200, b"allow" if allows else b"deny"


def _directory() -> Directory:
    """Return users and permissions: Anna has a password and all permissions of "/"."""
    found = Directory(lambda change: None, compile_pattern)
    found.put_user(UserRecord("anna", hash_password("secret"), "rabbit_password_hashing_sha256", [], {}))
    found.put_permission(PermissionRecord("/", "anna", ".*", ".*", ".*"))
    return found


def _go_on() -> None:
    """Go on with requests to servers, whose answers come by Twisted's reactor."""
    reactor.iterate(0.01)  # type: ignore[attr-defined]


def _each(parts: Sequence[T], check: Callable[[T], None]) -> int:
    """Run a kit for each object; return their number."""
    for part in parts:
        check(part)
    return len(parts)


@dataclass(frozen=True, slots=True)
class Case:
    """A built-in plugin in a virtual host, and the credentials that it accepts.

    Each method runs the kit of one hook, and returns the number of objects that it checked.
    """

    plugin: str
    view: PluginView
    accepted: list[Credentials]
    directory: Directory

    def own(self, parts: Iterable[T]) -> list[T]:
        """Return the objects of the plugin itself."""
        return [part for part in parts if self.view.plugin_of(part) == self.plugin]

    def authenticators(self) -> Sequence[Authenticator]:
        return self.own(self.view.authenticators(self.directory))

    def check_exchange_types(self) -> int:
        names = [name for name in self.view.exchange_types if self.view.plugin_of(name) == self.plugin]
        for name in names:
            arguments: Any = {"binding_arguments": SELECTORS} if name == "x-jms-topic" else {}
            check_exchange_type(self.view.exchange_types[name], **arguments)
        return len(names)

    def check_authenticators(self) -> int:
        found = self.authenticators()
        return _each(found, lambda part: check_authenticator(part, self.accepted, wait=_go_on))

    def check_authorizers(self) -> int:
        (authenticator,) = self.authenticators()
        principals = [_logged_in(authenticator, credentials) for credentials in self.accepted]
        found = self.own(self.view.authorizers(self.directory))
        return _each(found, lambda part: check_authorizer(part, principals, wait=_go_on))

    def check_authentication_methods(self) -> int:
        token = [[b"n,,\x01auth=Bearer %b\x01\x01" % each.password.encode()] for each in self.accepted]
        found = self.own(self.view.authentication_methods(self.directory).values())
        return _each(found, lambda part: check_authentication_method(part, token, _go_on))

    def check_access_wrappers(self) -> int:
        return _each(self.own(self.view._wrappers), lambda part: check_access_wrapper(part, "auth-http"))

    def check_tracers(self) -> int:
        return _each(self.own(self.view.tracers(VHOST)), lambda part: check_tracer(lambda vhost: part))

    def check_interceptors(self) -> int:
        self._make_all()
        return _each(self.own(self.view.interceptors(VHOST)), check_interceptor)

    def check_event_listeners(self) -> int:
        found = self.own(self.view.event_listeners(VHOST))
        return _each(found, lambda part: check_event_listener(lambda vhost: part))

    def check_queue_features(self) -> int:
        found = self.own(self.view.queue_features)
        return _each(found, lambda part: check_queue_feature(part, dict.fromkeys(part.settings, 1)))

    def check_metrics(self) -> int:
        self._make_all()
        return _each(self.own(self.view.metric_sources(VHOST)), check_metric_source)

    def check_http_resources(self) -> int:
        return _each(self._services("resources"), check_http_resource)

    def check_ctl_verbs(self) -> int:
        resources = self._services("resources")
        return _each(self._services("verbs"), lambda part: check_ctl_verb(part, resources))

    def check_ui_panels(self) -> int:
        resources = self._services("resources")
        return _each(self._services("panels"), lambda part: check_ui_panel(part, resources))

    def check_settings_model(self) -> int:
        model = load_plugins().settings_model(self.plugin)
        assert model is not None
        assert all(field.description for field in model.model_fields.values())
        with pytest.raises(ConfigurationError, match="no-such-setting"):
            load_plugins().view("/", {self.plugin: {"no-such-setting": 1}})
        return len(model.model_fields)

    def _make_all(self) -> None:
        """Call the hooks before that of services, as the broker does."""
        self.view.authenticators(self.directory)
        self.view.authorizers(self.directory)
        self.view.interceptors(VHOST)

    def _services(self, kind: str) -> list[Any]:
        self._make_all()
        self.view.offer_services(VHOST)
        return [each.service for each in getattr(self.view.services, kind) if each.plugin == self.plugin]


@pytest.fixture
def case(request: pytest.FixtureRequest, place: Place) -> Iterator[Case]:
    plugin, variant = request.param
    settings = dict(SETTINGS[plugin][variant](place)) if plugin in SETTINGS else {}
    others = {"auth-http": _with_paths(place)} if plugin == "auth-cache" else {}
    view = load_plugins().view("/", {**others, plugin: settings})
    accepted = [ACCEPTED[plugin](place, variant)] if plugin in ACCEPTED else []
    yield Case(plugin, view, accepted, _directory())
    assert list(view.close()) == []


@pytest.mark.parametrize(
    ("case", "hook"),
    [pytest.param((plugin, variant), hook, id=f"{plugin}-{variant}-{hook}") for plugin, variant, hook in CASES],
    indirect=["case"],
)
def test_each_object_of_each_built_in_keeps_its_contract(case: Case, hook: str) -> None:
    check: Callable[[], int] = getattr(case, hook.replace("gateway_", "check_"))
    assert check() > 0, "the plugin offers nothing by this hook"


def test_there_is_a_kit_for_each_hook() -> None:
    hooks = [name for name in vars(hookspecs) if name.startswith("gateway_")]
    assert all(callable(getattr(Case, hook.replace("gateway_", "check_"), None)) for hook in hooks)


def test_a_chain_of_plugins_with_anonymous_access_keeps_the_contracts(place: Place) -> None:
    directory = _directory()
    mosquitto = {**_files(place, "password", "acl"), "anonymous_user": "stranger"}
    view = load_plugins().view("/", {"auth-http": _with_paths(place), "auth-mosquitto": mosquitto})
    access = Access(view.authenticators(directory), view.authorizers(directory), plugin_of=view.plugin_of)
    bert = Credentials("PLAIN", "bert", "secret", client_id="lamp")  # of the password file alone
    anonymous = Credentials("CLIENT-ID", client_id="lamp")
    accepted = [Credentials("PLAIN", "anna", "secret"), bert, anonymous]
    check_authenticator(access, accepted, [Credentials("PLAIN", "bert", "secret")], _go_on)
    check_authorizer(_Entrance(access), [_logged_in(access, each) for each in accepted], wait=_go_on)
    assert list(view.close()) == []


class _Entrance:
    """The permissions of a chain as those of one authorizer."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        try:
            return self._access.enter(principal, vhost)
        except NotAllowed:
            return None


def _logged_in(authenticator: Authenticator, credentials: Credentials) -> Principal:
    """Log in; return the principal."""
    answers: list[Principal | None] = []
    authenticator.authenticate(credentials, answers.append)

    def is_over() -> bool:
        _go_on()
        return bool(answers)

    wait_until(is_over, "the login has no answer")
    assert answers[0] is not None
    return answers[0]
