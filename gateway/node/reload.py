"""SIGHUP: certificates and log files are read anew, and settings that can change at run time take effect."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from gateway.config import Settings
from gateway.config.live import LIVE, differences, with_live_of
from gateway.kernel.errors import ConfigurationError, GatewayError
from gateway.logs import StructuredLog
from gateway.logs.setup import start_logging
from gateway.net.certificates import TlsContext

_log: Final = StructuredLog("app")


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What a reload changed, and which of the changed settings wait for a restart."""

    settings: Settings
    applied: list[str]
    needs_restart: list[str]


def reload(
    old: Settings, read: Callable[[], Settings], contexts: Iterable[TlsContext], apply: Callable[[Settings], None]
) -> Settings:
    """Read the settings anew and apply those that are live; return the settings that hold from now on.

    ``contexts`` get their certificates anew, ``apply`` takes the settings to where they are used. When anything is
    wrong with the settings, a certificate or the log file, nothing changes.
    """
    try:
        reloaded = _reload(old, read, list(contexts))
    except GatewayError as error:
        for reason in str(error).split("\n"):
            _log.error("reload refused, nothing was changed", reason=reason)
        return old
    apply(reloaded.settings)
    _log.info(
        "reloaded",
        applied=", ".join(reloaded.applied) or "none",
        needs_restart=", ".join(reloaded.needs_restart) or "none",
    )
    return reloaded.settings


def _reload(old: Settings, read: Callable[[], Settings], contexts: list[TlsContext]) -> Reloaded:
    """Check everything, then change the log and the certificates. :raises GatewayError: before anything changed."""
    new = read()
    changed = differences(old, new)
    has_tls = old.tls.certificate is not None and new.tls.certificate is not None
    live = {key for key in LIVE if has_tls or not key.startswith("tls.")}
    settings = with_live_of(old, new)
    if not has_tls:
        settings = settings.model_copy(update={"tls": old.tls})
    renewals = [context.renewed(settings.tls) for context in contexts]
    try:
        start_logging(settings.log)
    except OSError as error:
        raise ConfigurationError(f"log.file: cannot be opened: {error.strerror}") from error
    for renew in renewals:
        renew()
    return Reloaded(settings, [key for key in changed if key in live], [key for key in changed if key not in live])
