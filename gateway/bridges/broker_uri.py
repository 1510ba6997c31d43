"""The URI of a broker at one end of a bridge: ``amqp://user:password@host:port/vhost?heartbeat=10``.

RabbitMQ's URI specification: an ``amqp`` URI without a host is this broker itself; the path is one segment, the virtual
host, percent-encoded, and without a path it is the default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from gateway.kernel.messages.message import Value

#: Scheme to port, and whether it uses TLS.
SCHEMES: Final[Mapping[str, tuple[int, bool]]] = {
    "amqp": (5672, False),
    "amqps": (5671, True),
    "mqtt": (1883, False),
    "mqtts": (8883, True),
    "stomp": (61613, False),
    "stomps": (61614, True),
}

#: The options of TLS, and those of AMQP and MQTT connections.
TLS_OPTIONS: Final = frozenset({"cacertfile", "certfile", "keyfile", "verify"})
AMQP_OPTIONS: Final = frozenset({"heartbeat", "connection_timeout", "channel_max", "auth_mechanism"})
MQTT_OPTIONS: Final = frozenset({"version"})

#: Limit of the options that are numbers.
_MOST: Final = 65_535


class InvalidUri(ValueError):
    """A URI that cannot be used; the text is the reason."""


@dataclass(frozen=True, slots=True)
class BrokerUri:
    """A parsed URI. ``vhost`` is ``None`` if the URI names none, ``host`` is empty for this broker itself.

    ``shown`` is the URI without its password and options, for listings and logs.
    """

    scheme: str
    host: str
    port: int
    username: str
    password: str = field(repr=False)
    vhost: str | None
    options: Mapping[str, str]
    shown: str

    @property
    def is_local(self) -> bool:
        """Whether it is this broker itself."""
        return not self.host

    @property
    def has_tls(self) -> bool:
        """Whether the connection uses TLS."""
        return SCHEMES[self.scheme][1]

    def number(self, option: str, default: int) -> int:
        """Return an option that is a number."""
        return int(self.options.get(option, default))


def parse_uri(text: str, *schemes: str) -> BrokerUri:
    """Return a URI with one of these schemes. :raises InvalidUri: with the reason."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InvalidUri(str(error)) from None
    if parts.scheme not in schemes:
        raise InvalidUri(f"unexpected scheme '{parts.scheme}', expected {' or '.join(schemes)}")
    if not parts.hostname and parts.scheme != "amqp":
        raise InvalidUri("it has no host")
    if not parts.hostname and port is not None:
        raise InvalidUri("it has a port and no host")
    path = parts.path[1:]
    if "/" in path:
        raise InvalidUri("a slash in the name of the virtual host must be written as %2F")
    if path and parts.scheme.startswith("mqtt"):
        raise InvalidUri("an MQTT URI has no path")
    if parts.fragment:
        raise InvalidUri("it has a fragment")
    return BrokerUri(
        scheme=parts.scheme,
        host=parts.hostname or "",
        port=port or SCHEMES[parts.scheme][0],
        username=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        vhost=unquote(path) if parts.path else None,
        options=_options(parts),
        shown=without_secrets(text),
    )


def without_secrets(text: str) -> str:
    """Return a URI without user, password and options; a text that is no URI becomes ``(no URI)``."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        return "(no URI)"
    authority, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path.rpartition('@')[2]}"


def _options(parts: SplitResult) -> Mapping[str, str]:
    """Return the options after the question mark. :raises InvalidUri: for an unknown or invalid one.

    An ``amqp`` URI may have those of TLS, without effect: tools set them in the URIs of all bridges.
    """
    of_protocol = {"amqp": AMQP_OPTIONS, "mqtt": MQTT_OPTIONS}.get(parts.scheme.removesuffix("s"), frozenset())
    is_amqp = parts.scheme in ("amqp", "amqps")
    known = of_protocol | (TLS_OPTIONS if is_amqp or SCHEMES[parts.scheme][1] else frozenset())
    if is_amqp:
        known |= {"server_name_indication"}
    try:
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise InvalidUri("its options are not KEY=VALUE pairs") from None
    for name, value in options.items():
        if name not in known:
            raise InvalidUri(f"unknown option '{name}' of {parts.scheme}, expected one of {', '.join(sorted(known))}")
        if name in ("heartbeat", "connection_timeout", "channel_max") and not _is_number(value):
            raise InvalidUri(f"{name} is not a number from 0 to {_MOST}")
        if name == "verify" and value not in ("verify_peer", "verify_none"):
            raise InvalidUri("verify is neither verify_peer nor verify_none")
        if name == "version" and value not in ("3.1.1", "5"):
            raise InvalidUri("version is neither 3.1.1 nor 5")
        if name == "auth_mechanism" and value not in ("plain", "external"):
            raise InvalidUri("auth_mechanism is neither plain nor external")
    if "certfile" in options and "keyfile" not in options:
        raise InvalidUri("certfile requires keyfile")
    return options


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= _MOST


def is_uri(name: str, value: Value, *schemes: str) -> str:
    """Check the value of a key for a URI; return the error text, empty if it is valid."""
    if not isinstance(value, str):
        return f"{name} should be binary, actually was {type(value).__name__}"
    try:
        parse_uri(value, *schemes)
    except InvalidUri as error:
        return f'"{without_secrets(value)}" not a valid URI: {error}'
    return ""
