"""The settings of a running node: as configured, as a reload changed them, and as operators changed them meanwhile."""

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from gateway.config import Configured, Settings
from gateway.config.catalogue import settings_by_key
from gateway.config.live import LIVE, differences, with_live_of
from gateway.config.loading import changed, with_value_of, written_key
from gateway.config.writing import shown
from gateway.kernel.errors import ConfigurationError
from gateway.logs import StructuredLog
from gateway.logs.setup import start_logging
from gateway.net.certificates import TlsContext

_log: Final = StructuredLog("app")

#: Shown as the origin of a value.
RUN_TIME: Final = "run time"
DEFAULT: Final = "default"

#: Settings that change only with the configuration: an operator of the API must not choose files of the machine.
_OF_FILES: Final = frozenset(key for key in LIVE if key.startswith("tls.")) | {"log.file"}


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """The outcome of a reload, as keys of settings.

    ``applied`` changed, ``needs_restart`` are different in the configuration and take effect after a restart, and
    ``kept`` were changed at run time and stay so. ``certificates`` is the number of certificate files read again.
    """

    applied: list[str]
    needs_restart: list[str]
    kept: list[str]
    certificates: int = 0


class LiveSettings:
    """Owns the settings in effect. ``apply`` applies them at their place of use.

    ``read`` reads the configuration again; ``tls_contexts`` are those in use, which may grow. ``on_log_changed`` is
    called after the log was opened again.
    """

    def __init__(
        self,
        configured: Configured,
        read: Callable[[], Configured],
        tls_contexts: Collection[TlsContext],
        apply: Callable[[Settings], None],
    ) -> None:
        self.effective = configured.settings
        self.on_log_changed: Callable[[], None] = lambda: None
        self._configured = configured
        self._read = read
        self._tls_contexts = tls_contexts
        self._apply = apply
        self._base = configured.settings  # without changes at run time
        self._changed_keys: set[str] = set()
        self._waiting: dict[str, object] = {}

    @property
    def files(self) -> list[str]:
        """The configuration files."""
        return [] if self._configured.file is None else [str(self._configured.file)]

    # Changes

    def reload(self) -> ReloadResult:
        """Read the configuration and apply the changes that need no restart; changes at run time are kept.

        :raises GatewayError: if the settings, a certificate or the log file is invalid; then nothing has changed.
        """
        configured = self._read()
        new = configured.settings
        differ = differences(self._base, new)
        has_tls = self._base.tls.certificate is not None and new.tls.certificate is not None
        live = {key for key in LIVE if has_tls or not key.startswith("tls.")}
        base = with_live_of(self._base, new)
        if not has_tls:
            base = base.model_copy(update={"tls": self._base.tls})
        effective = base
        for key in self._changed_keys:
            effective = with_value_of(effective, self.effective, key)
        certificates = self._use(effective, renews_certificates=True)
        self._base, self._configured = base, configured
        self._waiting = {key: _value_of(new, key) for key in differ if key not in live}
        kept = sorted(key for key in differ if key in self._changed_keys)
        applied = [key for key in differ if key in live and key not in self._changed_keys]
        return ReloadResult(applied, list(self._waiting), kept, certificates)

    def change(self, key: str, value: object) -> None:
        """Change a setting until the node stops. :raises ConfigurationError: if it cannot change, or not to this."""
        if key in settings_by_key() and (key not in LIVE or key in _OF_FILES):
            how = "change the configuration and reload it" if key in LIVE else "change the configuration and restart"
            raise ConfigurationError(f"{key}: cannot be changed at run time; {how}")
        self._use(changed(self.effective, key, value))
        self._changed_keys.add(key)

    def restore(self, key: str) -> bool:
        """Restore the configured value of a setting; return whether it had been changed at run time."""
        if key not in self._changed_keys:
            return False
        self._use(with_value_of(self.effective, self._base, key))
        self._changed_keys.discard(key)
        return True

    def _use(self, settings: Settings, *, renews_certificates: bool = False) -> int:
        """Put settings in use; return the number of certificate files read. :raises GatewayError: before any change."""
        contexts = list(self._tls_contexts) if renews_certificates else []
        renewals = [context.renewed(settings.tls) for context in contexts]
        if renews_certificates or settings.log != self.effective.log:
            self._open_log(settings)
        for renew in renewals:
            renew()
        self.effective = settings
        self._apply(settings)
        return len(settings.tls.certificates) if contexts else 0

    def _open_log(self, settings: Settings) -> None:
        try:
            start_logging(settings.log)
        except OSError as error:
            raise ConfigurationError(f"log.file: cannot be opened: {error.strerror}") from error
        self.on_log_changed()

    # Listing

    def rows(self, secrets_of: Callable[[str], Collection[str]]) -> Iterator[dict[str, Any]]:
        """Yield a row for each setting in effect, with its origin; ``configured`` is a value that needs a restart."""
        document = shown(self.effective, secrets_of)
        for key, setting in settings_by_key().items():
            row = {"key": key, "value": _in(document, key), "default": setting.default, "origin": self._origin(key)}
            if key in self._waiting:
                row["configured"] = "(hidden)" if setting.is_secret else self._waiting[key]
                row["needs_restart"] = True
            yield row | {"reloadable": key in LIVE, "changeable": key in LIVE - _OF_FILES}
        for name, table in document.get("vhosts", {}).items():
            key = written_key(("vhosts", name))
            row = {"key": key, "value": table, "default": {}, "origin": self._origin(key)}
            yield row | {"reloadable": False, "changeable": False}

    def _origin(self, key: str) -> str:
        if key in self._changed_keys:
            return RUN_TIME
        return self._configured.origin_by_key.get(key, DEFAULT)


def log_reload(result: ReloadResult, user: str = "") -> None:
    """Log the outcome of a reload; ``user`` asked for it over HTTP."""
    fields = {"kept": ", ".join(result.kept)} if result.kept else {}
    _log.info(
        "reloaded",
        applied=", ".join(result.applied) or "none",
        needs_restart=", ".join(result.needs_restart) or "none",
        **fields,
        **({"user": user} if user else {}),
    )


def log_refused_reload(error: Exception) -> None:
    """Log why a reload changed nothing."""
    for reason in str(error).split("\n"):
        _log.error("reload refused, nothing was changed", reason=reason)


def _value_of(settings: Settings, key: str) -> object:
    return _in(shown(settings), key)


def _in(document: dict[str, Any], key: str) -> Any:
    """Return the value at a dotted key; ``None`` if the document has none."""
    section, _, name = key.rpartition(".")
    with suppress(KeyError, TypeError):
        return document[section][name] if section else document[name]
    return None
