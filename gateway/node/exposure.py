"""A warning at the start about logins without a secret from this machine: behind a local proxy every client is
local.
"""

from collections.abc import Iterator
from typing import Final

from gateway.access.passwords import verify_password
from gateway.config import Settings
from gateway.kernel.broker.directory import Directory
from gateway.logs import StructuredLog

_log: Final = StructuredLog("access")

#: The well-known password of the default user.
WELL_KNOWN: Final = "guest"

_ADVICE: Final = "behind a proxy on this machine: login.trust_loopback = false, or proxy_protocol, to know addresses"


def warn_of_logins_without_secret(settings: Settings, directory: Directory) -> None:
    """Log each login that requires only an address on this machine."""
    for reason in logins_without_secret(settings, directory):
        _log.warning("open to clients of this machine", reason=reason, advice=_ADVICE)


def logins_without_secret(settings: Settings, directory: Directory) -> Iterator[str]:
    """Yield each login without a secret: the default user's initial password, and anonymous MQTT."""
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
        yield f"MQTT clients without credentials log in as the user '{anonymous}'"
