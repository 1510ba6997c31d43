"""The addresses of the broker's nodes and the user's credentials.

Spark shows options in plans and logs, so the password is read on the driver and sent to the executors inside the
tasks.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gateway_spark.choices import Reader, brokers, duration_s, flag, names, text
from gateway_spark.errors import OptionError
from gateway_spark.given import Given

DEFAULT_URL: Final = "http://127.0.0.1:15672"
DEFAULT_RETRY_S: Final = 60.0

CONNECTION: Final[Mapping[str, Reader]] = {
    "url": text,
    "urls": names,
    "vhost": text,
    "username": text,
    "password": text,
    "passwordFile": text,
    "passwordEnv": text,
    "tls.ca": text,
    "tls.certificate": text,
    "tls.key": text,
    "tls.verify": flag,
    "retryTimeout": duration_s,
}


#: Those of a source, which may read from several brokers.
CONNECTIONS: Final[Mapping[str, Reader]] = {**CONNECTION, "brokers": brokers}

URLS: Final = ("url", "urls")
PASSWORDS: Final = ("password", "passwordFile", "passwordEnv")


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """The trust store for the broker's certificate, and the client's certificate; PEM files."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    is_verified: bool = True


@dataclass(frozen=True, slots=True)
class NodeUrl:
    """The management port of one node."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Address:
    """The management ports of the broker's nodes, and the user. Never shows the password."""

    nodes: tuple[NodeUrl, ...]
    vhost: str
    username: str
    password: str = field(repr=False)
    tls: TlsOptions = TlsOptions()
    retry_s: float = DEFAULT_RETRY_S

    def beginning_at(self, number: int) -> "Address":
        """Return the address with another order of the nodes, so that tasks begin at different ones."""
        first = number % len(self.nodes)
        return replace(self, nodes=self.nodes[first:] + self.nodes[:first])


def addresses_of(given: Given) -> dict[str, Address]:
    """Parse the addresses of all brokers, by their names; without the option ``brokers`` there is one, named ``""``.

    :raises OptionError: in one line, for the first invalid option.
    """
    if given.only_one(*URLS, "brokers") != "brokers":
        return {"": address_of(given)}
    return {name: _address_of_broker(name, own, given) for name, own in given.get("brokers").items()}


def _address_of_broker(name: str, own: Mapping[str, str], common: Given) -> Address:
    """Parse the options of one broker, which apply in place of the common ones."""
    try:
        given = common.within(own, CONNECTION, PASSWORDS)
        if given.only_one(*URLS) is None:
            raise OptionError("one of the options 'url' or 'urls' is required")
        return address_of(given)
    except OptionError as error:
        raise OptionError(f"option 'brokers', broker '{name}': {error}") from None


def address_of(given: Given) -> Address:
    """Parse the address. :raises OptionError: in one line, for the first invalid option."""
    option = given.only_one(*URLS) or "url"
    urls = given.get(option, DEFAULT_URL)
    nodes = tuple(_node(option, url) for url in ([urls] if option == "url" else urls))
    if len({node.scheme for node in nodes}) > 1:
        raise OptionError("option 'urls' must begin all with http or all with https")
    tls_names = ("tls.ca", "tls.certificate", "tls.key", "tls.verify")
    if nodes[0].scheme == "http":
        given.refuse(tls_names, f"needs an '{option}' that begins with https")
    return Address(
        nodes,
        given.get("vhost", "/"),
        given.get("username", "guest"),
        _password(given),
        TlsOptions(
            given.get("tls.ca"), given.get("tls.certificate"), given.get("tls.key"), given.get("tls.verify", True)
        ),
        given.get("retryTimeout", DEFAULT_RETRY_S),
    )


def _node(option: str, text: str) -> NodeUrl:
    what = "the broker's management port" if option == "url" else "the management ports of a cluster's nodes"
    expected = f"option '{option}' must be http://host:port or https://host:port, {what}"
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:  # brackets that do not close, a port that is no number
        raise OptionError(expected) from None
    if url.scheme not in ("http", "https") or not url.hostname or url.path not in ("", "/") or url.username:
        raise OptionError(expected)
    return NodeUrl(url.scheme, url.hostname, port or (15671 if url.scheme == "https" else 15672))


def _password(given: Given) -> str:
    source = given.only_one(*PASSWORDS)
    where = "" if source is None else given.get(source)
    if source == "passwordFile":
        try:
            return Path(where).read_text().rstrip("\n")
        except OSError as error:
            raise OptionError(f"option 'passwordFile': {where} cannot be read: {error.strerror}") from None
    if source == "passwordEnv":
        if where not in os.environ:
            raise OptionError(f"option 'passwordEnv': the environment of the driver's workers has no {where}")
        return os.environ[where]
    return where if source else "guest"
