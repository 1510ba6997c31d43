"""SIGHUP: reload of certificates, log files and the settings that may change at run time."""

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
class ReloadResult:
    """The settings a reload changed, and those of them that take effect after a restart."""

    settings: Settings
    applied: list[str]
    needs_restart: list[str]


def reload(
    old: Settings, read: Callable[[], Settings], contexts: Iterable[TlsContext], apply: Callable[[Settings], None]
) -> Settings:
    """Read the settings and apply the changes that need no restart; return the effective settings.

    ``contexts`` reload their certificates; ``apply`` applies settings at their place of use. If the settings, a
    certificate or the log file is invalid, nothing changes.
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


def _reload(old: Settings, read: Callable[[], Settings], contexts: list[TlsContext]) -> ReloadResult:
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
    return ReloadResult(settings, [key for key in changed if key in live], [key for key in changed if key not in live])
