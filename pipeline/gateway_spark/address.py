"""The broker's address and the user's credentials.

Spark shows options in plans and logs, so the password is read on the driver and sent to the executors inside the
tasks.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gateway_spark.choices import Reader, duration_s, flag, text
from gateway_spark.errors import OptionError
from gateway_spark.given import Given

DEFAULT_URL: Final = "http://127.0.0.1:15672"
DEFAULT_RETRY_S: Final = 60.0

CONNECTION: Final[Mapping[str, Reader]] = {
    "url": text,
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


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """The trust store for the broker's certificate, and the client's certificate; PEM files."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    is_verified: bool = True


@dataclass(frozen=True, slots=True)
class Address:
    """The broker's management port and the user. Never shows the password."""

    scheme: str
    host: str
    port: int
    vhost: str
    username: str
    password: str = field(repr=False)
    tls: TlsOptions = TlsOptions()
    retry_s: float = DEFAULT_RETRY_S


def address_of(given: Given) -> Address:
    """Parse the address. :raises OptionError: in one line, for the first invalid option."""
    url = urlsplit(given.get("url", DEFAULT_URL))
    if url.scheme not in ("http", "https") or not url.hostname or url.path not in ("", "/") or url.username:
        raise OptionError("option 'url' must be http://host:port or https://host:port, the broker's management port")
    tls_names = ("tls.ca", "tls.certificate", "tls.key", "tls.verify")
    if url.scheme == "http":
        given.refuse(tls_names, "needs an 'url' that begins with https")
    return Address(
        url.scheme,
        url.hostname,
        url.port or (15671 if url.scheme == "https" else 15672),
        given.get("vhost", "/"),
        given.get("username", "guest"),
        _password(given),
        TlsOptions(
            given.get("tls.ca"), given.get("tls.certificate"), given.get("tls.key"), given.get("tls.verify", True)
        ),
        given.get("retryTimeout", DEFAULT_RETRY_S),
    )


def _password(given: Given) -> str:
    source = given.only_one("password", "passwordFile", "passwordEnv")
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
