"""The plugins of the internal user database and of certificate users."""

import pytest

from gateway.access import Access, CertificateSubject, Credentials, Operation, PasswordVerifier, Principal
from gateway.access.passwords import DEFAULT_ALGORITHM, hash_password
from gateway.kernel.broker.directory import Directory
from gateway.kernel.errors import ConfigurationError, NotAllowed
from gateway.kernel.journal.records.access import PermissionRecord, TopicPermissionRecord, UserRecord
from gateway.patterns import compile_pattern
from gateway.plugins.registry import load_plugins
from gateway_auth import certificate, internal

SUBJECT = CertificateSubject("robot", "CN=robot,O=Example")


@pytest.fixture
def directory() -> Directory:
    directory = Directory(lambda change: None, compile_pattern)
    directory.put_user(UserRecord("anna", hash_password("secret"), DEFAULT_ALGORITHM, ["monitoring"], {}))
    directory.put_user(UserRecord("robot", "", DEFAULT_ALGORITHM, [], {}))
    directory.put_user(UserRecord("CN=robot,O=Example", "", DEFAULT_ALGORITHM, ["dn"], {}))
    directory.put_permission(PermissionRecord("/", "anna", "^a", "^a", "^a"))
    return directory


@pytest.fixture
def access(directory: Directory) -> Access:
    authenticators = [
        *internal.gateway_authenticators(directory, PasswordVerifier()),
        *certificate.gateway_authenticators(directory, certificate.CertificateSettings()),
    ]
    return Access(authenticators, internal.gateway_authorizers(directory))


def principal(access: Access, credentials: Credentials) -> Principal | None:
    answered: list[Principal | None] = []
    access.authenticate(credentials, answered.append)
    (only,) = answered
    return only


def test_a_user_logs_in_by_password_and_gets_its_tags(access: Access) -> None:
    anna = Principal("anna", frozenset({"monitoring"}))
    for mechanism in ("PLAIN", "AMQPLAIN"):
        assert principal(access, Credentials(mechanism, "anna", "secret")) == anna


REFUSED = [
    Credentials("PLAIN", "anna", "wrong"),
    Credentials("PLAIN", "anna", ""),
    Credentials("PLAIN", "unknown", "secret"),
    Credentials("PLAIN", "robot", ""),
    Credentials("EXTERNAL", "anna", "secret"),
    Credentials("EXTERNAL", certificate=CertificateSubject("stranger", "CN=stranger")),
    Credentials("PLAIN", "robot", "x", certificate=SUBJECT),
]


@pytest.mark.parametrize("credentials", REFUSED, ids=repr)
def test_these_logins_are_refused(access: Access, credentials: Credentials) -> None:
    assert principal(access, credentials) is None


def test_permissions_are_cached_until_something_changes(access: Access, directory: Directory) -> None:
    anna = Principal("anna")
    before = access.enter(anna, "/")
    assert access.enter(anna, "/") is before
    directory.put_permission(PermissionRecord("/", "anna", "^b", "^b", "^b"))
    assert access.enter(anna, "/").may(Operation.READ, "b")
    assert not before.may(Operation.READ, "b")


def test_topic_permissions_are_cached_too(access: Access, directory: Directory) -> None:
    directory.put_topic_permission(TopicPermissionRecord("/", "anna", "amq.topic", "^mine", ".*"))
    permissions = access.enter(Principal("anna"), "/")
    assert not permissions.may_use_topic(Operation.WRITE, "amq.topic", "yours")
    directory.remove_topic_permission("/", "anna", "amq.topic")
    assert not access.enter(Principal("anna"), "/").restricts_topics


def test_a_removed_user_has_no_access(access: Access, directory: Directory) -> None:
    access.enter(Principal("anna"), "/")
    directory.remove_user("anna")
    with pytest.raises(NotAllowed):
        access.enter(Principal("anna"), "/")


NAMES = [({}, "CN=robot,O=Example"), ({"login_from": "distinguished_name"}, "CN=robot,O=Example"),
         ({"login_from": "common_name"}, "robot")]  # fmt: skip


@pytest.mark.parametrize(("settings", "name"), NAMES)
def test_the_user_name_is_read_from_the_certificate(directory: Directory, settings: dict[str, str], name: str) -> None:
    access = Access(
        certificate.gateway_authenticators(directory, certificate.CertificateSettings.model_validate(settings)), []
    )
    found = principal(access, Credentials("EXTERNAL", certificate=SUBJECT))
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"login_from": "email"}, "login_from: must be 'common_name' or 'distinguished_name', not 'email'"),
        ({"login_form": "common_name"}, "login_form: no such setting; did you mean login_from?"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_plugins().view("/", {"auth-certificate": dict(settings)})
    assert str(refused.value) == f"virtual host '/': the settings of plugin 'auth-certificate': {reason}"
