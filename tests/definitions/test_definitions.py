"""Definitions in RabbitMQ's format are applied to a broker."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.access.passwords import hash_password, verify_password
from gateway.access.scram import ScramCredential, scram_credential
from gateway.definitions import apply_definitions, parse_definitions, read_definitions
from gateway.kernel.broker.broker import Broker
from gateway.kernel.clock import Background
from gateway.kernel.errors import ConfigurationError
from gateway.kernel.journal.records.access import PermissionRecord, TopicPermissionRecord
from gateway.kernel.journal.records.topology import ParameterRecord, PolicyRecord
from gateway.kernel.messages.native_header import NATIVE
from gateway.patterns import compile_pattern
from gateway.plugins.registry import load_plugins
from gateway_memory.store import MemoryStore

EXAMPLE = Path(__file__).parents[2] / "etc" / "definitions.json"
MD5, SHA256 = "rabbit_password_hashing_md5", "rabbit_password_hashing_sha256"


class StoppedClock:
    """A clock that never advances and refuses timers."""

    def __init__(self) -> None:
        self.background = Background(self)

    def wall_ms(self) -> int:
        return 0

    def monotonic_s(self) -> float:
        return 0.0

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Any:
        raise AssertionError("unexpected timer")


@pytest.fixture
def broker() -> Broker:
    plugins = load_plugins()
    view = lambda vhost, enabled: plugins.view(vhost, {})  # noqa: E731
    broker = Broker(
        MemoryStore(), StoppedClock(), {NATIVE.name: NATIVE}, view, node="gateway@test", compile_pattern=compile_pattern
    )
    broker.declare_vhost("/")
    return broker


def applied(broker: Broker, **definitions: object) -> Broker:
    apply_definitions(parse_definitions(json.dumps(definitions), "f.json"), broker, "f.json")
    return broker


def error_of(broker: Broker, **definitions: object) -> str:
    with pytest.raises(ConfigurationError) as caught:
        applied(broker, **definitions)
    return str(caught.value)


# Users and permissions


def test_a_user_with_a_password_hash_logs_in_with_that_password(broker: Broker) -> None:
    password_hash = hash_password("secret")
    users = [{"name": "anna", "password_hash": password_hash, "hashing_algorithm": SHA256, "tags": ["monitoring"]}]
    anna = applied(broker, users=users).directory.user("anna")
    assert anna is not None
    assert (anna.password_hash, anna.hashing_algorithm, anna.tags) == (password_hash, SHA256, ["monitoring"])


def test_a_password_in_clear_text_is_hashed(broker: Broker) -> None:
    anna = applied(broker, users=[{"name": "anna", "password": "secret", "tags": ""}]).directory.user("anna")
    assert anna is not None
    assert verify_password("secret", anna.password_hash, anna.hashing_algorithm)


def test_a_user_without_a_password_cannot_log_in_by_password(broker: Broker) -> None:
    anna = applied(broker, users=[{"name": "anna", "tags": []}]).directory.user("anna")
    assert anna is not None
    assert anna.password_hash == ""


def test_a_scram_credential_is_derived_from_a_clear_text_password_but_not_from_a_hash(broker: Broker) -> None:
    users = [{"name": "anna", "password": "secret"}, {"name": "bert", "password_hash": hash_password("secret")}]
    directory = applied(broker, users=users).directory
    anna, bert = directory.user_by_name["anna"], directory.user_by_name["bert"]
    credential = ScramCredential.parse(anna.scram_sha_256)
    assert scram_credential("secret", credential.salt) == credential
    assert bert.scram_sha_256 == ""


def test_a_scram_credential_is_kept_until_the_password_changes(broker: Broker) -> None:
    credential, hashed = str(scram_credential("secret")), hash_password("secret")
    users = [{"name": "anna", "password_hash": hashed, "scram_sha_256": credential}]
    applied(broker, users=users)
    applied(broker, users=[{"name": "anna", "password_hash": hashed, "tags": "a"}])
    anna = broker.directory.user_by_name["anna"]
    assert (anna.tags, anna.scram_sha_256) == (["a"], credential)
    applied(broker, users=[{"name": "anna", "password_hash": hash_password("secret")}])
    assert broker.directory.user_by_name["anna"].scram_sha_256 == ""


NO_CREDENTIALS = [
    ({"scram_sha_256": str(scram_credential("a"))}, "must have a password_hash if it has scram_sha_256"),
    (
        {"password": "a", "scram_sha_256": str(scram_credential("a"))},
        "must have a password_hash if it has scram_sha_256",
    ),
    ({"password_hash": hash_password("a"), "scram_sha_256": "a"}, "not of the form SCRAM-SHA-256$"),
]


@pytest.mark.parametrize(("user", "reason"), NO_CREDENTIALS)
def test_a_malformed_scram_credential_is_refused(broker: Broker, user: dict[str, object], reason: str) -> None:
    assert reason in error_of(broker, users=[{"name": "anna", **user}])


TAGS = [("administrator", ["administrator"]), ("a, b,", ["a", "b"]), ("", []), (["a"], ["a"]), ([], [])]


@pytest.mark.parametrize(("written", "tags"), TAGS)
def test_tags_may_be_a_list_or_a_string_with_commas(broker: Broker, written: object, tags: list[str]) -> None:
    anna = applied(broker, users=[{"name": "anna", "tags": written}]).directory.user("anna")
    assert anna is not None
    assert anna.tags == tags


VERSIONS = [("3.5.7", MD5), ("3.0.4", MD5), ("3.6.0", SHA256), ("3.10.8", SHA256), ("4.2.0", SHA256)]


@pytest.mark.parametrize(("version", "algorithm"), VERSIONS)
def test_an_export_without_the_algorithm_uses_the_default_of_its_version(
    broker: Broker, version: str, algorithm: str
) -> None:
    users = [{"name": "anna", "password_hash": hash_password("secret", algorithm), "tags": ""}]
    anna = applied(broker, rabbit_version=version, users=users).directory.user("anna")
    assert anna is not None
    assert verify_password("secret", anna.password_hash, anna.hashing_algorithm)


def test_permissions_are_set(broker: Broker) -> None:
    applied(
        broker,
        users=[{"name": "anna"}],
        vhosts=[{"name": "shop"}],
        permissions=[{"user": "anna", "vhost": "shop", "configure": "", "write": "^a", "read": ".*"}],
        topic_permissions=[{"user": "anna", "vhost": "shop", "exchange": "amq.topic", "write": "^a", "read": ".*"}],
    )
    assert broker.directory.permission("shop", "anna") == PermissionRecord("shop", "anna", "", "^a", ".*")
    assert broker.directory.topic_permissions_of("shop", "anna") == [
        TopicPermissionRecord("shop", "anna", "amq.topic", "^a", ".*")
    ]


# Virtual hosts


DESCRIBED = [
    pytest.param({"description": "d", "tags": ["t"], "default_queue_type": "quorum"}, id="at the top level"),
    pytest.param({"metadata": {"description": "d", "tags": ["t"], "default_queue_type": "quorum"}}, id="in metadata"),
]


@pytest.mark.parametrize("description", DESCRIBED)
def test_a_virtual_host_gets_its_metadata(broker: Broker, description: dict[str, object]) -> None:
    record = applied(broker, vhosts=[{"name": "shop", **description}]).vhost("shop").record
    assert (record.description, record.tags, record.default_queue_type) == ("d", ["t"], "quorum")


def test_only_the_given_metadata_of_an_existing_virtual_host_is_updated(broker: Broker) -> None:
    broker.describe_vhost("/", "first", ["t"])
    record = applied(broker, vhosts=[{"name": "/", "metadata": {"default_queue_type": "quorum"}}]).vhost("/").record
    assert (record.description, record.tags, record.default_queue_type) == ("first", ["t"], "quorum")


@pytest.mark.parametrize("metadata", [{}, {"default_queue_type": None}, {"default_queue_type": "undefined"}])
def test_a_virtual_host_may_have_no_default_queue_type(broker: Broker, metadata: dict[str, Any]) -> None:
    assert (
        applied(broker, vhosts=[{"name": "shop", "metadata": metadata}]).vhost("shop").record.default_queue_type == ""
    )


def test_an_unsupported_default_queue_type_is_refused(broker: Broker) -> None:
    vhosts = [{"name": "shop", "default_queue_type": "ring"}]
    assert error_of(broker, vhosts=vhosts) == "f.json: vhosts[0]: unsupported default queue type 'ring'"


def test_queues_without_a_type_get_the_default_type_of_their_virtual_host(broker: Broker) -> None:
    vhosts = [{"name": "/", "default_queue_type": "quorum"}]
    queues = [{"name": "q"}, {"name": "passing", "durable": False}]
    vhost = applied(broker, vhosts=vhosts, queues=queues).vhost("/")
    assert vhost.queue("q").arguments == {"x-queue-type": "quorum"}
    assert vhost.queue("passing").arguments == {}


def test_a_virtual_host_can_be_protected_from_deletion(broker: Broker) -> None:
    vhosts = [{"name": "shop", "metadata": {"protected_from_deletion": True}}]
    assert applied(broker, vhosts=vhosts).vhost("shop").record.is_protected


def test_tracing_of_a_virtual_host_is_enabled(broker: Broker) -> None:
    assert applied(broker, vhosts=[{"name": "shop", "tracing": True}]).vhost("shop").tracing


LIMITED: list[Any] = [
    pytest.param({"vhosts": [{"name": "shop", "limits": {"max-queues": 3}}]}, id="at the top level"),
    pytest.param(
        {
            "vhosts": [{"name": "shop"}],
            "parameters": [
                {"vhost": "shop", "component": "vhost-limits", "name": "limits", "value": {"max-queues": 3}}
            ],
        },
        id="as a parameter",
    ),
]


@pytest.mark.parametrize("definitions", LIMITED)
def test_the_limits_of_a_virtual_host_are_set(broker: Broker, definitions: dict[str, Any]) -> None:
    assert applied(broker, **definitions).vhost("shop").record.limits == {"max-queues": 3}
    assert not broker.parameters


# Topology


def test_exchanges_queues_and_bindings_are_declared(broker: Broker) -> None:
    applied(
        broker,
        exchanges=[
            {"name": "x", "vhost": "/", "type": "topic", "durable": True, "auto_delete": False, "arguments": {}},
            {"name": "y", "vhost": "/", "type": "fanout", "durable": False, "auto_delete": True, "internal": True},
        ],
        queues=[{"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {"x-message-ttl": 9}}],
        bindings=[
            {"source": "x", "vhost": "/", "destination": "q", "destination_type": "queue", "routing_key": "a.#"},
            {"source": "x", "vhost": "/", "destination": "y", "destination_type": "exchange", "routing_key": "b",
             "arguments": {"n": 1}},
        ],
    )  # fmt: skip
    vhost = broker.vhost("/")
    x, y, q = vhost.exchange("x"), vhost.exchange("y"), vhost.queue("q")
    assert (x.type_name, x.is_durable, x.is_auto_delete, x.is_internal) == ("topic", True, False, False)
    assert (y.type_name, y.is_durable, y.is_auto_delete, y.is_internal) == ("fanout", False, True, True)
    assert (q.is_durable, q.is_auto_delete, q.arguments) == (True, False, {"x-message-ttl": 9})
    bound = {(b.destination, b.routing_key, b.arguments.get("n")) for b in vhost.bindings.of(x)}
    assert bound == {(q, "a.#", None), (y, "b", 1)}


def test_an_export_of_one_virtual_host_is_applied_to_the_default_virtual_host(broker: Broker) -> None:
    broker.declare_vhost("shop")
    definitions = parse_definitions('{"queues": [{"name": "q", "durable": true, "arguments": []}]}', "f.json")
    apply_definitions(definitions, broker, "f.json", default_vhost="shop")
    assert broker.vhost("shop").queue("q").is_durable


def test_reserved_names_and_incomplete_bindings_are_skipped(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    applied(
        broker,
        exchanges=[{"name": "", "type": "direct"}, {"name": "amq.topic", "type": "topic"}],
        queues=[{"name": "amq.gen-x"}],
        bindings=[
            {"source": "", "destination": "q", "routing_key": "q"},
            {"source": "amq.topic", "destination": "an-exclusive-queue", "routing_key": "a"},
        ],
    )
    assert broker.vhost("/").queue_by_name == {}
    assert "binding skipped" in caplog.text


def test_existing_entities_stay_unchanged(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    applied(broker, queues=[{"name": "q", "durable": True}], exchanges=[{"name": "x", "type": "topic"}])
    applied(broker, queues=[{"name": "q", "durable": False}], exchanges=[{"name": "x", "type": "fanout"}])
    assert broker.vhost("/").queue("q").is_durable
    assert broker.vhost("/").exchange("x").type_name == "topic"
    assert "queue left unchanged" in caplog.text
    assert "exchange left unchanged" in caplog.text


# Policies and parameters


def test_policies_operator_policies_and_parameters_are_set(broker: Broker) -> None:
    rule = {"pattern": "^q", "definition": {"max-length": 9}, "priority": 7, "apply-to": "queues"}
    applied(
        broker,
        policies=[{"vhost": "/", "name": "p", **rule}],
        parameters=[
            {"vhost": "/", "component": "operator_policy", "name": "o", "value": rule},
            {"vhost": "/", "component": "shovel", "name": "s", "value": {"a": 1}},
        ],
        global_parameters=[{"name": "cluster_name", "value": "home"}],
    )
    assert list(broker.policies.values()) == [
        PolicyRecord("/", "p", False, "^q", "queues", 7, {"max-length": 9}),
        PolicyRecord("/", "o", True, "^q", "queues", 7, {"max-length": 9}),
    ]
    assert list(broker.parameters.values()) == [
        ParameterRecord("", "", "cluster_name", "home"),
        ParameterRecord("/", "shovel", "s", {"a": 1}),
    ]


# Files


def test_the_example_can_be_loaded_twice(broker: Broker) -> None:
    for _ in range(2):
        apply_definitions(read_definitions(EXAMPLE), broker, str(EXAMPLE))
    orders = broker.directory.user("orders")
    assert orders is not None
    assert verify_password("orders-demo", orders.password_hash, orders.hashing_algorithm)
    vhost = broker.vhost("shop")
    assert {binding.destination for binding in vhost.bindings.of(vhost.exchange("orders.events"))} == {
        vhost.queue("orders.invoices")
    }
    assert vhost.exchange("orders.events").arguments == {"alternate-exchange": "orders.unrouted"}


def test_an_empty_file_defines_nothing(broker: Broker) -> None:
    apply_definitions(parse_definitions("", "f.json"), broker, "f.json")
    assert list(broker.vhost_by_name) == ["/"]


def test_keys_of_other_versions_are_ignored(broker: Broker) -> None:
    applied(broker, product_name="RabbitMQ", queues=[{"name": "q", "type": "classic", "durable": True}])
    assert list(broker.vhost("/").queue_by_name) == ["q"]


MALFORMED = [
    ("{", "f.json: not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    ("[]", "f.json: the document: must be an object, not []"),
    ('{"users": {}}', "f.json: users: must be an array, not {}"),
    ('{"users": [{}]}', "f.json: users[0].name: is missing"),
    ('{"users": [{"name": ""}]}', 'f.json: users[0].name: must be at least 1 character long, not ""'),
    ('{"users": [{"name": "a", "password": ["s3cret"]}]}',
     "f.json: users[0].password: must be a valid string, not the given value"),
    ('{"users": [{"name": "a", "password": "b", "password_hash": "c"}]}',
     "f.json: users[0]: must have a password or a password_hash, not both"),
    ('{"users": [{"name": "a", "password_hash": "AAAA"}]}',
     "f.json: users[0]: must have as password_hash the base64 of a 4 byte salt and a digest of its algorithm, "
     "or for argon2id $argon2id$v=19$m=...,t=...,p=...$salt$hash with at most 256 MiB, 16 passes and 16 lanes"),
    ('{"policies": [{"name": "p", "pattern": "", "definition": {}, "apply-to": "cats"}]}',
     "f.json: policies[0].apply-to: must be 'all', 'exchanges', 'queues', 'classic_queues', 'quorum_queues' or "
     "'streams', not \"cats\""),
    ('{"parameters": [{"component": "operator_policy", "name": "o", "value": {"pattern": "x"}}]}',
     "f.json: parameters[0].value.definition: is missing"),
    ('{"queues": [{"name": "q", "durable": "yes"}]}', 'f.json: queues[0].durable: must be a valid boolean, not "yes"'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), MALFORMED)
def test_a_malformed_file_is_reported_with_the_place_and_the_allowed_values(text: str, line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_definitions(text, "f.json")
    assert str(caught.value) == line


def test_all_malformed_entries_are_reported() -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_definitions('{"users": [{}], "queues": [{"name": 1}]}', "f.json")
    assert len(str(caught.value).split("\n")) == 2


def test_a_missing_file_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none.json: cannot be read: No such file or directory"):
        read_definitions(tmp_path / "none.json")


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"permissions": [{"user": "absent", "vhost": "/", "configure": "", "write": "", "read": ""}]},
     "f.json: permissions[0]: no user 'absent'"),
    ({"queues": [{"name": "q", "vhost": "elsewhere"}]}, "f.json: queues[0]: vhost elsewhere not found"),
    ({"users": [{"name": "a"}], "permissions": [{"user": "a", "configure": "(", "write": "", "read": ""}]},
     "f.json: permissions[0]: invalid regular expression '(': missing ): ("),
]  # fmt: skip


@pytest.mark.parametrize(("definitions", "line"), REFUSED)
def test_a_refused_entry_is_reported_with_its_place(broker: Broker, definitions: dict[str, object], line: str) -> None:
    assert error_of(broker, **definitions) == line


def test_an_exchange_of_an_unknown_type_is_refused(broker: Broker) -> None:
    assert error_of(broker, exchanges=[{"name": "x", "type": "x-none"}]).startswith("f.json: exchanges[0]: ")
