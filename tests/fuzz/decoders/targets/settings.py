"""Decoders of what operators write: settings, foreign configuration, definitions, patterns, selectors, URIs."""

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from gateway.bridges.broker_uri import SCHEMES, InvalidUri, is_uri, parse_uri, without_secrets
from gateway.bridges.mqtt_bridge_rules import parse_rule
from gateway.cli.ctl.address import ApiAddress
from gateway.cli.ctl.errors import Declined, WrongUsage
from gateway.cli.ctl.observe.keys import first_key
from gateway.cli.ctl.values import parse_json, parse_object
from gateway.cli.migrate.advanced import AdvancedFile
from gateway.cli.migrate.erlang_terms import NotATerm, read_term, written
from gateway.cli.migrate.mosquitto import MosquittoFile
from gateway.cli.migrate.rabbitmq import RabbitmqFile
from gateway.cli.migrate.target import Target as Migrated
from gateway.config import kinds, loading
from gateway.definitions.model import split_tags
from gateway.definitions.reading import parse_definitions
from gateway.definitions.scanning import scan
from gateway.kernel.errors import ConfigurationError, PreconditionFailed
from gateway.kernel.messages.message import Properties
from gateway.kernel.settings.max_age import age_ms
from gateway.patterns.engine import compile_pattern, compile_pattern_caseless
from gateway.selectors.errors import SelectorError
from gateway.selectors.selector import Selector
from tests.fuzz.decoders.corpus import frames_of
from tests.fuzz.decoders.json_tokens import JSON_TOKENS
from tests.fuzz.decoders.laws import attempt, refused, require, require_same, text_of
from tests.fuzz.decoders.target import Target

_OF_RABBITMQ: Final = (
    b"listeners.tcp.default = 5672\n", b"default_user = guest\n", b"vm_memory_high_watermark.relative = 0.4\n",
    b"disk_free_limit.absolute = 50MB\n", b"auth_backends.1 = ldap\n", b"ssl_options.verify = verify_peer\n",
    b"heartbeat = 60\n", b"loopback_users.guest = false\n",
    b"auth_ldap.queries.vhost_access = {in_group, \"cn=a\"}\n",
    b"auth_ldap.queries.tags = '''[{policymaker, {constant, true}}].'''\n",
    b"= '", b"# ", b"\n", b"\"",
)  # fmt: skip
_OF_MOSQUITTO: Final = (
    b"listener 1883\n", b"protocol websockets\n", b"allow_anonymous true\n", b"password_file /p\n", b"acl_file /a\n",
    b"persistent_client_expiration 2h\n", b"connection b\n", b"topic # both 1 a/ b/\n", b"address h:1883\n",
    b"cafile /c\n",
    b"require_certificate true\n", b"max_packet_size 100\n", b"\n",
)  # fmt: skip
_DEFINITION: Final = (
    b'"users":', b'"vhosts":', b'"permissions":', b'"queues":', b'"exchanges":', b'"bindings":', b'"policies":',
    b'"parameters":', b'"name":', b'"vhost":"/"', b'"arguments":{}', b'"password_hash":', b'"tags":', b'"durable":true',
)  # fmt: skip
_PATTERN: Final = (
    b"^", b"$", b".*", b"(?!", b"(?=", b"(?<!", b"(?<=", b"(?i)", b"\\p{L}", b"[^a-z]", b"{3,5}", b"(a|b)", b"\\1",
    b"+?",
)  # fmt: skip
_SELECTOR: Final = (
    b" AND ", b" OR ", b"NOT ", b" BETWEEN ", b" IN (", b" LIKE '", b" ESCAPE '", b" IS NULL", b"JMSPriority",
    b"TRUE", b"0x1F", b"1e9",
    b"'a''b'", b"<>", b"<=", b"(", b")", b"-", b"convert_string_expressions:", b"hyphenated_props:", b"{'=',",
    b"{'ident',<<\"a\">>}",
)  # fmt: skip

#: Headers of the message that selectors are tried on.
_PROPERTIES: Final = Properties(headers={"a": 1, "b": "text", "c": 0.5, "d": True, "e": None}, priority=5)


def _setting_values(data: bytes) -> None:
    """A value of a setting is parsed, or refused; sizes and watermarks are written as they were parsed."""
    text = text_of(data)
    given: list[object] = [text]
    number = attempt(ValueError, json.loads, text) if data[:1] in b"-0123456789.tfn" else None
    if isinstance(number, int | float):
        given.append(number)
    for value in given:
        size = attempt(ValueError, kinds.parse_size, value)
        if not refused(size):
            require_same("a size is written as it was parsed", kinds.parse_size(kinds.write_size(size)), size)
        watermark = attempt(ValueError, kinds.parse_watermark, value)
        if not refused(watermark):
            again = kinds.parse_watermark(kinds.write_watermark(watermark))
            require_same("a watermark is written as it was parsed", again, watermark)
        for parse in (kinds.parse_listener_port, kinds.parse_address, kinds.parse_path, kinds.parse_directory):
            attempt(ValueError, parse, value)
        split_tags(value)
    age_ms(text)


def _override(data: bytes) -> None:
    """A setting of the command line, and a whole file, are understood or refused by name."""
    text = text_of(data)
    attempt(ConfigurationError, loading.parse_override, text)
    attempt(ConfigurationError, loading.load, None, [text])
    document = attempt(ConfigurationError, loading.document_of, text, "gateway.toml")
    if not refused(document):
        attempt(ConfigurationError, loading._validated, document, None, {})


def _converted(convert: Callable[[Migrated], Any], data: bytes) -> None:
    """Each line of a file becomes a setting or a comment; the result is TOML."""
    target = Migrated()
    convert(target).convert(text_of(data))
    document = attempt(ConfigurationError, loading.document_of, target.text(), "gateway.toml")
    require(not refused(document), "a converted file is TOML", document, target.text())


def _advanced(data: bytes) -> None:
    """A file of Erlang terms is read or refused; its settings become TOML or comments."""
    term = attempt(NotATerm, read_term, text_of(data))
    if not refused(term):
        require(isinstance(written(term), str), "a term is shown")
    _converted(AdvancedFile, data)


def _advanced_seeds() -> Iterable[bytes]:
    yield b"""%% a comment
[{rabbit, [{tcp_listeners, [5672, {"127.0.0.1", 5673}]}, {heartbeat, 60}, {vm_memory_high_watermark, 0.4},
  {default_user, <<"guest"/utf8>>}, {default_permissions, [<<".*">>, <<".*">>, <<".*">>]}, {log, #{level => info}},
  {ssl_options, [{cacertfile, "/ca.pem"}, {verify, verify_peer}, {fail_if_no_peer_cert, true}]},
  {auth_backends, [rabbit_auth_backend_ldap, {rabbit_auth_backend_http, rabbit_auth_backend_internal}]}]},
 {rabbitmq_mqtt, [{vhost, <<"/">>}, {'max-x', 16#ff}, {n, -1.5e3}]}, {rabbitmq_auth_backend_ldap, [{servers, ["a"]}]}].
"""
    yield b"[]."


def _definitions(data: bytes) -> None:
    """Definitions are decoded in steps as at once, then checked or refused line by line."""
    text = text_of(data)
    whole = attempt((ValueError, RecursionError), json.loads, text)
    stepped = attempt((ValueError, RecursionError), _stepped, text)
    require(refused(whole) == refused(stepped), "JSON in steps is JSON", whole, stepped)
    if not refused(whole):
        require_same("decoding in steps has the same result", stepped, whole)
    attempt(ConfigurationError, parse_definitions, text, "definitions.json")


def _stepped(text: str) -> object:
    steps = scan(text)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def _pattern(data: bytes) -> None:
    """A pattern matches texts, or is refused."""
    pattern, _, text = text_of(data).partition("\n")
    for compiled in (
        attempt(PreconditionFailed, compile_pattern.__wrapped__, pattern),
        attempt(PreconditionFailed, compile_pattern_caseless, pattern),
    ):
        if not refused(compiled):
            for each in (text, "", "amq.topic", "orders.eu"):
                require(isinstance(compiled.matches(each), bool), "a pattern matches or does not")


def _selector(data: bytes) -> None:
    """A selector is true or false for a message, or is refused with a position."""
    text = text_of(data)
    for parse in (Selector.parse, partial(Selector.parse, converts_text=True), Selector.parse_term):
        selector = attempt(SelectorError, parse, text)
        if not refused(selector):
            require(isinstance(selector.matches(_PROPERTIES, 1, False), bool), "a selector matches or does not")


def _uri(data: bytes) -> None:
    """A URI is understood or refused; what is shown of it has no password."""
    text = text_of(data)
    found = attempt(InvalidUri, parse_uri, text, *SCHEMES)
    is_uri("uri", text, *SCHEMES)
    if not refused(found) and len(found.password) > 8:
        require(found.password not in found.shown, "what is shown has no password", found.shown)
    without_secrets(text)
    attempt(ValueError, parse_rule, text)
    attempt(WrongUsage, ApiAddress.parse, text)


def _command_line(data: bytes) -> None:
    """Arguments of gatewayctl are JSON or are declined; keys of a terminal are taken one by one."""
    text = text_of(data)
    attempt(Declined, parse_json, text)
    attempt(Declined, parse_object, text, "the value")
    rest = data[:200]
    while rest:
        _, left = first_key(rest)
        require(len(left) < len(rest), "a key is taken", rest, left)
        rest = left


def _file_seeds(protocol: str) -> Callable[[], Iterable[bytes]]:
    return lambda: (b"".join(_OF_MOSQUITTO) if protocol == "mosquitto" else b"".join(_OF_RABBITMQ), b"a = b\n# c\n")


def _definition_seeds() -> Iterable[bytes]:
    yield from (frame.partition(b"\r\n\r\n")[2] for frame in frames_of("http", ">") if b"/api/definitions" in frame)
    yield json.dumps(
        {
            "rabbit_version": "4.0", "users": [{"name": "u", "password_hash": "abc=", "tags": "administrator"}],
            "vhosts": [{"name": "/"}], "queues": [{"name": "q", "vhost": "/", "durable": True,
            "auto_delete": False, "arguments": {"x-max-length": 5}}],
            "permissions": [{"user": "u", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
            "policies": [{"vhost": "/", "name": "p", "pattern": ".*", "definition": {"max-length": 5},
            "priority": 0, "apply-to": "queues"}],
            "parameters": [{"component": "shovel", "vhost": "/", "name": "s", "value": {"src-uri": "amqp://"}}],
            "bindings": [{"source": "amq.topic", "vhost": "/", "destination": "q", "destination_type": "queue",
            "routing_key": "k", "arguments": {}}],
        }
    ).encode()  # fmt: skip


def _override_seeds() -> Iterable[bytes]:
    yield from (b"amqp.port=5673", b'vhosts."/".tracing=true', b"data=/tmp/x", b"memory_high_watermark=0.4",
                b'disk_free_limit="50MB"', b"[amqp]\nport = 0\n[vhosts.\"/\".plugins.tracing-firehose]\n")  # fmt: skip


TARGETS: Final = (
    Target(
        "settings-values",
        _setting_values,
        (
            "gateway.config.kinds:parse_size",
            "gateway.config.kinds:parse_watermark",
            "gateway.config.kinds:parse_listener_port",
            "gateway.config.kinds:parse_address",
            "gateway.config.kinds:parse_path",
            "gateway.config.kinds:parse_directory",
            "gateway.definitions.model:split_tags",
            "gateway.kernel.settings.max_age:age_ms",
        ),
        lambda: (b"50MB", b"2GiB", b"0.4", b"1048576", b"5m", b"30D", b"127.0.0.1", b"::1", b"off", b"5672"),
        (b"kB", b"MiB", b"TB", b".5", b"1Y", b"h", b"e9", b"99999999999"),
    ),
    Target(
        "settings-file",
        _override,
        ("gateway.config.loading:parse_override", "gateway.config.loading:document_of"),
        _override_seeds,
        (b"=", b"[", b"]", b'"""', b"'''", b"amqp.", b"mqtt.", b"{a=1}", b"1979-05-27T07:32:00Z", b"0x", b"inf", b"\n"),
    ),
    Target(
        "settings-rabbitmq-conf",
        partial(_converted, RabbitmqFile),
        ("gateway.cli.migrate.rabbitmq:RabbitmqFile.convert",),
        _file_seeds("rabbitmq"),
        _OF_RABBITMQ,
    ),
    Target(
        "settings-advanced-config",
        _advanced,
        ("gateway.cli.migrate.advanced:AdvancedFile.convert", "gateway.cli.migrate.erlang_terms:read_term"),
        _advanced_seeds,
        (
            b"[",
            b"]",
            b"{",
            b"}",
            b"<<",
            b">>",
            b"#{",
            b"=>",
            b",",
            b".",
            b"'",
            b"99#zz",
            b"1.0e999",
            b"%",
            b'"\\x"',
            b"/utf8",
        ),
    ),
    Target(
        "settings-mosquitto-conf",
        partial(_converted, MosquittoFile),
        ("gateway.cli.migrate.mosquitto:MosquittoFile.convert",),
        _file_seeds("mosquitto"),
        _OF_MOSQUITTO,
    ),
    Target(
        "definitions",
        _definitions,
        ("gateway.definitions.scanning:scan", "gateway.definitions.reading:parse_definitions"),
        _definition_seeds,
        (*JSON_TOKENS, *_DEFINITION),
    ),
    Target(
        "patterns",
        _pattern,
        ("gateway.patterns.engine:compile_pattern", "gateway.patterns.engine:compile_pattern_caseless"),
        lambda: (b"^orders\\.", b"(?!amq\\.).*", b"a{2,3}|b\nabab", b".*", b"(?<=a)b$"),
        _PATTERN,
    ),
    Target(
        "selectors",
        _selector,
        ("gateway.selectors.selector:Selector.parse", "gateway.selectors.selector:Selector.parse_term"),
        lambda: (
            b"a = 1 AND b LIKE 't%' ESCAPE '!'",
            b"NOT (c BETWEEN 0.1 AND 1e3) OR d IS NOT NULL",
            b"b IN ('x', 'text')",
            b"JMSPriority > 4 AND a + 1 * -2 / 3 <> 5",
            b"convert_string_expressions:b = 'x'",
            b"{'and',{'=',{'ident',<<\"b\">>},<<\"text\">>},{'>',{'ident',<<\"a\">>},2500}}.",
            b"{'between',{'ident',<<\"a\">>},{'range',1,2}}.",
            b"{'not',{'like',{'ident',<<\"b\">>},{<<\"t_\">>,'no_escape'}}}",
        ),
        _SELECTOR,
    ),
    Target(
        "settings-uris",
        _uri,
        (
            "gateway.bridges.broker_uri:parse_uri",
            "gateway.bridges.mqtt_bridge_rules:parse_rule",
            "gateway.cli.ctl.address:ApiAddress.parse",
        ),
        lambda: (
            b"amqps://user:secret-password@host:5671/%2F?heartbeat=5&verify=verify_peer",
            b"amqp://",
            b"mqtt://h?version=5",
            b"stomp://h:61613",
            b"http://guest:guest@[::1]:15672/prefix",
            b"a/# both 1 local/ remote/",
            b'"" in 2 a b',
        ),
        (b"amqp://", b"mqtts://", b"@", b"%2F", b"[::1]", b"?", b"&", b"verify=", b"certfile=", b" out ", b" in "),
    ),
    Target(
        "command-line",
        _command_line,
        (
            "gateway.cli.ctl.values:parse_json",
            "gateway.cli.ctl.values:parse_object",
            "gateway.cli.ctl.observe.keys:first_key",
        ),
        lambda: (b'{"a": [1, 2.5, null]}', b"\x1b[Aq\t\x1b[5~\x1bOH"),
        (*JSON_TOKENS, b"\x1b[", b"\x1bO"),
    ),
)
