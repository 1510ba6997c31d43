"""A file that is read at the start, and again in a thread when it has changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from twisted.internet.threads import deferToThread

from gateway.api import ConfigurationError, StructuredLog

_log: Final = StructuredLog("access")

T = TypeVar("T")


class WatchedFile(Generic[T]):
    """The parsed ``content`` of a file. A changed file that is invalid is logged, and its old content stays in use.

    It is checked every ``interval_s`` until ``close``; ``changed`` is called after a change.
    """

    def __init__(
        self,
        path: str,
        parse: Callable[[str], T],
        interval_s: float,
        reactor: Any,  # Any: Twisted's reactors have no common type
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """:raises ConfigurationError: if the file cannot be read or is invalid."""
        self._path = path
        self._parse = parse
        self._interval_s = interval_s
        self._reactor = reactor
        self._changed = changed
        self._state, self.content = self._read()
        self._is_closed = False
        self._replacements = 0
        self._next_check: Any = reactor.callLater(interval_s, self.check)

    def check(self) -> None:
        """Read the file in a thread, if it has changed, then schedule the next check."""
        number = self._replacements
        done: Any = deferToThread(self._read_if_changed)
        done.addCallbacks(lambda read: self._take(read, number), self._log_error)
        done.addBoth(lambda _: self._check_later())

    def replace(self, content: T) -> None:
        """Use this content, which was written to the file; a check that is under way may have read the old one."""
        self._replacements += 1
        self.content = content
        self._changed()

    def close(self) -> None:
        """Check no more."""
        self._is_closed = True
        if self._next_check.active():
            self._next_check.cancel()

    def _read(self) -> tuple[tuple[int, int], T]:
        try:
            found = Path(self._path).stat()
            return (found.st_mtime_ns, found.st_size), self._parse(Path(self._path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"cannot read {self._path}: {error}") from None
        except ConfigurationError as error:
            raise ConfigurationError(f"{self._path}: {error}") from None

    def _read_if_changed(self) -> tuple[tuple[int, int], T] | None:
        try:
            found = Path(self._path).stat()
        except OSError as error:
            raise ConfigurationError(f"cannot read {self._path}: {error}") from None
        return None if (found.st_mtime_ns, found.st_size) == self._state else self._read()

    def _take(self, read: tuple[tuple[int, int], T] | None, number: int) -> None:
        if read is not None and not self._is_closed and number == self._replacements:
            self._state, self.content = read
            self._changed()

    def _log_error(self, failure: Any) -> None:
        _log.error("file not read again", reason=str(failure.value))

    def _check_later(self) -> None:
        if not self._is_closed:
            self._next_check = self._reactor.callLater(self._interval_s, self.check)
