"""What is open to clients of this machine, said at the start: a proxy on it makes every client one of these."""

from collections.abc import Iterator
from typing import Final

from gateway.access.passwords import verify_password
from gateway.config import Settings
from gateway.kernel.broker.directory import Directory
from gateway.logs import StructuredLog

_log: Final = StructuredLog("access")

#: The password of the default user that everyone knows.
WELL_KNOWN: Final = "guest"

_ADVICE: Final = "behind a proxy on this machine: login.trust_loopback = false, or proxy_protocol, to know addresses"


def warn_of_open_doors(settings: Settings, directory: Directory) -> None:
    """Write a line for each way in that takes no more than an address of this machine."""
    for reason in open_doors(settings, directory):
        _log.warning("open to clients of this machine", reason=reason, advice=_ADVICE)


def open_doors(settings: Settings, directory: Directory) -> Iterator[str]:
    """Yield each way in that takes no secret: the first user's first password, and MQTT without a name."""
    if not settings.login.trust_loopback:
        return
    name, password = settings.default_user, settings.default_pass.get_secret_value()
    user = directory.user(name) if name in settings.loopback_users else None
    if user is None or password != WELL_KNOWN:
        pass
    elif verify_password(password, user.password_hash, user.hashing_algorithm):
        yield f"the user '{name}' has the well-known password"
    anonymous = settings.mqtt.anonymous_user
    if anonymous and settings.mqtt.port is not None and directory.user(anonymous) is not None:
        yield f"MQTT clients that say nothing of themselves are the user '{anonymous}'"
