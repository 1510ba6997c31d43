"""Decoders of logins and of access rules: SCRAM, tokens, scopes, hashes, LDAP queries, Mosquitto's files, answers."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Any, Final

import jwt

from gateway.access.methods import Answer, Challenge, Failure, Success
from gateway.access.passwords import algorithm_of, hash_password, is_password_hash
from gateway.access.scram import ScramCredential, scram_credential
from gateway.api import ConfigurationError, Principal
from gateway_auth.http import backend
from gateway_auth.ldap.queries import VARIABLES, parse_query
from gateway_auth.mosquitto.acl_file import parse_acl_file
from gateway_auth.mosquitto.control.commands import parse_batch, perform_batch
from gateway_auth.mosquitto.control.document import Document
from gateway_auth.mosquitto.dynamic_security import parse_dynamic_security
from gateway_auth.mosquitto.password_file import parse_hash, parse_password_file
from gateway_auth.mosquitto.rules import MqttClient
from gateway_auth.mosquitto.topics import levels_of
from gateway_auth.oauth.keys import KeySet
from gateway_auth.oauth.plugin import TokenDialogue
from gateway_auth.oauth.scopes import Scope, Scopes
from gateway_auth.oauth.settings import OAuthSettings
from gateway_auth.oauth.tokens import TokenVerifier
from gateway_auth.scram import FirstMessage, Scram, Unproven
from tests.fuzz.decoders.laws import attempt, refused, require, require_same, text_of
from tests.fuzz.decoders.target import Target

_SECRET: Final = "a secret of thirty-two characters"
_CREDENTIAL: Final = scram_credential("guest", b"salt" * 4)


class _Directory:
    """A user directory with one user."""

    def user(self, name: str) -> Any:
        return None

    def secret(self, name: str) -> bytes:
        return b"secret"


def _scram(data: bytes) -> None:
    """A dialogue of SCRAM answers each message; a first message is decoded or refused."""
    attempt(Unproven, FirstMessage.parse, data)
    dialogue = Scram(_Directory(), lambda: "nonce").begin(None)  # type: ignore[arg-type]  # the visitor is not used
    answers: list[Answer] = []
    for message in data.split(b"\n")[:3]:
        dialogue.step(message, answers.append)
        require(isinstance(answers[-1], Challenge | Success | Failure), "a message is answered")
        if not isinstance(answers[-1], Challenge):
            break
    stored = attempt(ValueError, ScramCredential.parse, text_of(data))
    if not refused(stored):
        require_same("a credential is written as it was parsed", ScramCredential.parse(str(stored)), stored)


def _hashes(data: bytes) -> None:
    """Hashes of passwords are recognised or not; those of Mosquitto are parsed or refused."""
    text = text_of(data)
    for algorithm in (
        "rabbit_password_hashing_sha256",
        "rabbit_password_hashing_sha512",
        "rabbit_password_hashing_md5",
        "argon2id",
    ):
        is_password_hash(text, algorithm)
    algorithm_of(text)
    attempt(ValueError, parse_hash, text)
    attempt(ConfigurationError, parse_password_file, text)


class _Client:
    """An HTTP client whose answer is the input."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def request(self, method: str, url: str, body: bytes, answer: Any) -> None:
        answer(self._body)

    def close(self) -> None:
        pass


_SETTINGS: Final = OAuthSettings.model_validate(
    {
        "resource_server_id": "mq",
        "hmac_keys": {"k": _SECRET},
        "algorithms": ["HS256", "RS256", "ES256"],
        "jwks_url": "http://127.0.0.1/keys",
        "additional_scopes_key": "realm.roles",
        "resource_server_type": "rabbitmq",
    }
)


def _tokens(data: bytes) -> None:
    """A token, its claims and a key set are understood or refused."""
    head, _, rest = data.partition(b"\n")
    keys = KeySet(_SETTINGS, _Client(rest), lambda: 1_700_000_000.0)  # type: ignore[arg-type]  # what it uses
    verifier = TokenVerifier(_SETTINGS, keys)
    answers: list[object] = []
    TokenDialogue(verifier).step(head, answers.append)
    require(len(answers) == 1, "a token is answered once", answers)
    claims = attempt((ValueError, RecursionError), json.loads, head)
    if isinstance(claims, dict):
        principal = verifier._principal_of(claims)
        require(principal is None or isinstance(principal, Principal), "claims make a principal or none")


def _scopes(data: bytes) -> None:
    """Scopes become permissions, or are ignored."""
    text = text_of(data)
    Scope.parse(text)
    scopes = Scopes.parse(text.split(" "), "mq.", {"sub": "anna"})
    for scope in scopes.in_vhost("/"):
        require(scope.expanded({}) is not None or "{" in text, "an expanded scope has no variables left")


_VARIABLES: Final = dict.fromkeys(VARIABLES, "a,b")


class _View:
    """A directory of LDAP that agrees."""

    def is_in_group(self, group: str, user_dn: str) -> bool:
        return True

    def has_value(self, dn: str, attribute: str, value: str) -> bool:
        return True


def _ldap(data: bytes) -> None:
    """A query is true or false, or is refused with the reason."""
    query = attempt(ValueError, parse_query, text_of(data))
    if not refused(query):
        require(isinstance(query.holds(_View(), _VARIABLES), bool), "a query holds or does not")


_MQTT_CLIENT: Final = MqttClient("anna", "client")


#: Commands of Mosquitto's dynamic security, those of one message together.
_COMMANDS: Final = (
    [
        {"command": "createClient", "username": "c", "groups": [{"groupname": "g", "priority": 1}]},
        {"command": "setClientPassword", "username": "c", "password": "p"},
        {"command": "modifyClient", "username": "c", "roles": [{"rolename": "r"}], "clientid": "i"},
        {"command": "deleteClient", "username": "c", "correlationData": "1"},
    ],
    [
        {"command": "createRole", "rolename": "q", "acls": [{"acltype": "subscribePattern", "topic": "a/#"}]},
        {"command": "addRoleACL", "rolename": "q", "acltype": "subscribeLiteral", "topic": "b", "priority": 3},
        {"command": "listRoles", "verbose": True, "count": 1, "offset": 1},
    ],
    [
        {"command": "modifyGroup", "groupname": "g", "clients": [{"username": "c"}], "textname": "t"},
        {"command": "setDefaultACLAccess", "acls": [{"acltype": "subscribe", "allow": True}]},
        {"command": "setAnonymousGroup", "groupname": "g"},
    ],
)


def _mosquitto_commands(data: bytes) -> None:
    """Commands are performed or refused, and the file stays valid."""
    document = Document(
        {
            "groups": [{"groupname": "g", "clients": [{"username": "c"}]}],
            "roles": [{"rolename": "r"}],
            "clients": [{"username": "c"}],
        }
    )
    batch = parse_batch(data)
    responses = perform_batch(document, batch)
    require(len(responses) == (1 if batch.error else len(batch.commands)), "each command has a response")
    json.dumps(responses).encode()
    parse_dynamic_security(document.text())


def _mosquitto(data: bytes) -> None:
    """Files of Mosquitto permit or deny, or are refused with the place."""
    text = text_of(data)
    topics = [levels_of(each) for each in ("a/b", "#", "a/+", "$SYS/x")]
    for rules in (
        attempt(ConfigurationError, parse_acl_file, text),
        attempt(ConfigurationError, parse_dynamic_security, text),
    ):
        if not refused(rules):
            for topic in topics:
                require(isinstance(rules.may_publish(_MQTT_CLIENT, topic), bool), "a rule permits or does not")
                require(isinstance(rules.may_subscribe(_MQTT_CLIENT, topic), bool), "a rule permits or does not")


def _answers(data: bytes) -> None:
    """The answer of an access server is a verdict, or none."""
    verdict = backend._is_allowed(data)
    require((backend._tags_of(data) is not None) is (verdict is True), "tags come with a permission", verdict)


def _token(head: dict[str, Any], claims: Any) -> bytes:
    return jwt.encode(claims, _SECRET, "HS256", head).encode() if isinstance(claims, dict) else b"a.b.c"


def _token_seeds() -> Iterable[bytes]:
    claims = {"sub": "anna", "aud": ["mq"], "exp": 4e9, "scope": "mq.read:*/* mq.tag:monitoring"}
    yield _token({"kid": "k"}, claims)
    yield b"n,,\x01auth=Bearer " + _token({"kid": "k"}, claims) + b"\x01\x01"
    unsigned = urlsafe_b64encode(b'{"alg":"HS256","kid":{"a":1}}').rstrip(b"=")
    yield unsigned + b"." + urlsafe_b64encode(b"{}").rstrip(b"=") + b"."
    yield json.dumps(
        {
            **claims,
            "realm": {"roles": ["mq.write:*/*"]},
            "authorization": {"permissions": [{"scopes": ["mq.read:a/b"]}]},
            "authorization_details": [
                {"type": "rabbitmq", "locations": ["cluster:mq/vhost:a/queue:b"], "actions": ["read"]}
            ],
        }
    ).encode()
    yield (
        _token({"kid": "x"}, claims)
        + b'\n{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"x","use":"sig"}]}'
    )
    yield _token({"kid": "x"}, claims) + b'\n{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"x","alg":"RS256"}]}'
    yield _token({"kid": "x"}, claims) + b'\n{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA","kid":"x"}]}'


_DYNAMIC: Final = {
    "defaultACLAccess": {"publishClientSend": True, "subscribe": True},
    "clients": [
        {
            "username": "anna",
            "password": b64encode(b"x" * 64).decode(),
            "salt": b64encode(b"salt").decode(),
            "iterations": 101,
            "roles": [{"rolename": "r"}],
            "groups": [{"groupname": "g", "priority": 1}],
        }
    ],
    "groups": [{"groupname": "g", "roles": [{"rolename": "r"}]}],
    "roles": [
        {
            "rolename": "r",
            "acls": [
                {"acltype": "publishClientSend", "topic": "a/#", "allow": True},
                {"acltype": "subscribePattern", "topic": "%u/+", "allow": False, "priority": 3},
            ],
        }
    ],
}

TARGETS: Final = (
    Target(
        "access-scram",
        _scram,
        (
            "gateway_auth.scram:FirstMessage.parse",
            "gateway_auth.scram:ScramDialogue.step",
            "gateway_auth.scram:Challenged.signature",
            "gateway.access.scram:ScramCredential.parse",
        ),
        lambda: (
            b"n,,n=anna,r=abc",
            b"n,a=anna,n=anna,r=abc\nc=biws,r=abcnonce,p=AAAA",
            b"\nn,,n=a=2Cb=3D,r=x",
            b"p=tls-unique,,n=anna,r=abc",
            b"y,,n=anna,r=abc,x=1",
            str(_CREDENTIAL).encode(),
        ),
        (b"n,,", b"y,,", b"p=", b",r=", b"n=", b"=2C", b"=3D", b"c=biws", b",p=", b"SCRAM-SHA-256$4096:"),
    ),
    Target(
        "access-hashes",
        _hashes,
        (
            "gateway_auth.mosquitto.password_file:parse_hash",
            "gateway_auth.mosquitto.password_file:parse_password_file",
            "gateway.access.passwords:is_password_hash",
        ),
        lambda: (
            b"anna:$7$101$c2FsdA==$aGFzaA==\nbob:$6$c2FsdA==$aGFzaA==\n# c",
            b"$7$101$c2FsdA==$aGFzaA==",
            hash_password("guest", salt=b"salt").encode(),
            b"$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaGhhc2g",
        ),
        (b"$6$", b"$7$", b":", b"=", b"$argon2id$", b"v=19", b"m=", b"\n"),
    ),
    Target(
        "access-tokens",
        _tokens,
        (
            "gateway_auth.oauth.plugin:TokenDialogue.step",
            "gateway_auth.oauth.keys:KeySet._received",
            "gateway_auth.oauth.tokens:TokenVerifier.verify",
        ),
        _token_seeds,
        (
            b"auth=Bearer ",
            b"\x01",
            b".",
            b'"kid":',
            b'"alg":"HS256"',
            b'"exp":',
            b'"scope":',
            b'"keys":',
            b'"kty":',
            b"eyJ",
            b"null",
        ),
    ),
    Target(
        "access-scopes",
        _scopes,
        ("gateway_auth.oauth.scopes:Scope.parse", "gateway_auth.oauth.scopes:Scopes.parse"),
        lambda: (b"read:*/*/a", b"mq.write:%2F/q-* mq.tag:administrator", b"mq.configure:{vhost}/{sub}-*/{x}"),
        (b"read:", b"write:", b"configure:", b"tag:", b"*", b"/", b"%2F", b"{vhost}", b"{sub}", b"{", b"}", b"mq."),
    ),
    Target(
        "access-ldap-queries",
        _ldap,
        ("gateway_auth.ldap.queries:parse_query",),
        lambda: (
            b'and(in_group("cn=a,dc=b"), not(match(${name}, ^x)), or(true, equals(${vhost}, /)))',
            b"for(resource=queue: true, resource=topic: attribute(mail, ${username}))",
            b"false",
        ),
        (
            b"and(",
            b"or(",
            b"not(",
            b"for(",
            b"match(",
            b"equals(",
            b"in_group(",
            b"attribute(",
            b"${",
            b"}",
            b'"',
            b":",
            b"true",
        ),
    ),
    Target(
        "access-mosquitto-commands",
        _mosquitto_commands,
        ("gateway_auth.mosquitto.control.commands:parse_batch",),
        lambda: tuple(json.dumps({"commands": commands}).encode() for commands in _COMMANDS),
        (
            b'"commands":',
            b'"command":',
            b'"username":',
            b'"groupname":',
            b'"rolename":',
            b'"priority":',
            b'"acls":',
            b'"acltype":',
            b'"topic":',
            b'"clients":',
        ),
    ),
    Target(
        "access-mosquitto-files",
        _mosquitto,
        (
            "gateway_auth.mosquitto.acl_file:parse_acl_file",
            "gateway_auth.mosquitto.dynamic_security:parse_dynamic_security",
        ),
        lambda: (b"user anna\ntopic readwrite a/#\npattern read %u/+\ntopic deny a/b\n", json.dumps(_DYNAMIC).encode()),
        (
            b"user ",
            b"topic ",
            b"pattern ",
            b"read ",
            b"deny ",
            b"%u",
            b"%c",
            b"#",
            b"+",
            b'"roles":',
            b'"acls":',
            b'"priority":',
        ),
    ),
    Target(
        "access-answers",
        _answers,
        ("gateway_auth.http.backend:_is_allowed", "gateway_auth.http.backend:_tags_of"),
        lambda: (b"allow administrator monitoring", b"deny", b"", b"ALLOW"),
        (b"allow", b"deny", b" ", b"\n"),
    ),
)
