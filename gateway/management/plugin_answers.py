"""Requests to HTTP resources of plugins: measured, bounded in time, and contained if the plugin fails."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from gateway.access import PermissionUnknown
from gateway.kernel.budget import SLOW_S
from gateway.kernel.clock import SLICE_S
from gateway.kernel.errors import Refused
from gateway.kernel.plugin_times import CALL_LIMIT_S, CallTime, Overrun
from gateway.management.context import ApiContext
from gateway.management.http.errors import HttpError, busy
from gateway.management.http.routes import Pieces, Streamed
from gateway.management.plugin_replies import encoded_row, reply_of
from gateway.plugins.services.http_resource import HttpRequest, HttpResource

T = TypeVar("T")

#: The kind of the faults of resources.
FAULT: Final = "plugin http resource"

#: Rows encoded in one step.
_BATCH: Final = 20


class PluginAnswer:
    """The answer of one resource to one request. ``plugin`` offers the resource; ``time`` is that of its calls."""

    def __init__(self, context: ApiContext, vhost: str, plugin: str, resource: HttpResource, time: CallTime) -> None:
        self._context = context
        self._vhost = vhost
        self._plugin = plugin
        self._resource = resource
        self._time = time
        self._where = f"{resource.method} {resource.path}"
        self._monotonic_s = context.broker.clock.monotonic_s

    def to(self, request: HttpRequest) -> object:
        """Call the resource; return a response as any resource of the API does, or a Deferred of one.

        :raises Refused: as the resource does.
        :raises HttpError: 500 if it fails.
        """
        return self._converted(self._guarded(partial(self._resource.answer, request)))

    def _converted(self, answer: object) -> object:
        if isinstance(answer, Deferred):
            return self._awaited(answer)
        if answer is None:
            return None
        if isinstance(answer, list | tuple | Iterator):
            return Streamed(self._rows(iter(answer)))
        return self._guarded(lambda: reply_of(answer))

    # Answers that wait

    def _awaited(self, answer: "Deferred[object]") -> "Deferred[object]":
        """Convert an answer that comes later, within the time limit of the resource."""
        limit_s = self._resource.time_limit_s

        def late(_cancelled: object, _seconds: float) -> object:
            raise busy(f"plugin '{self._plugin}' did not answer within {limit_s:g} s")

        def failed(failure: Failure) -> Failure:
            error = failure.value
            if error is None or isinstance(error, Refused | PermissionUnknown | HttpError | CancelledError):
                return failure
            self._contain(error)
            raise self._failure() from None

        def ended(outcome: object) -> object:
            self._context.touch()
            return outcome

        answer.addTimeout(limit_s, self._context.reactor, late)
        return answer.addErrback(failed).addCallback(self._converted).addBoth(ended)

    # Rows

    def _rows(self, rows: Iterator[object]) -> Pieces:
        """Yield a JSON list in pieces. A row ``None`` ends a step; without a row in the time limit the answer fails."""
        start, is_done = b"[", False
        deadline_s = self._monotonic_s() + self._resource.time_limit_s
        try:
            while not is_done:
                encoded, is_done = self._guarded(partial(self._batch, rows))
                if encoded:
                    deadline_s = self._monotonic_s() + self._resource.time_limit_s
                    yield start + b",".join(encoded)
                    start = b","
                elif not is_done and self._monotonic_s() > deadline_s:
                    raise busy(f"plugin '{self._plugin}' found no row within {self._resource.time_limit_s:g} s")
                else:
                    yield b""
            yield b"]" if start == b"," else b"[]"
        finally:
            self._close(rows)

    def _batch(self, rows: Iterator[object]) -> tuple[list[bytes], bool]:
        """Return the next rows, encoded, and whether they are the last."""
        encoded: list[bytes] = []
        ends_s = self._monotonic_s() + SLICE_S / 2
        for row in rows:
            if row is None:
                return encoded, False
            encoded.append(encoded_row(row))
            if len(encoded) == _BATCH or self._monotonic_s() >= ends_s:
                return encoded, False
        return encoded, True

    def _close(self, rows: object) -> None:
        try:
            if callable(close := getattr(rows, "close", None)):
                close()
        except BaseException as error:  # a plugin's generator may raise anything when it is closed
            self._contain(error)

    # Containment

    def _guarded(self, call: Callable[[], T]) -> T:
        """Call the plugin; measure the call. :raises HttpError: 500 for any exception but a refusal."""
        fault: BaseException | None = None
        starts_s = self._monotonic_s()
        try:
            return call()
        except (Refused, PermissionUnknown):
            raise
        except BaseException as error:  # a plugin may raise anything; it must not affect other requests
            fault = error
            raise self._failure() from None
        finally:
            seconds = self._monotonic_s() - starts_s
            self._time.add(seconds)
            if fault is not None:  # event listeners may take long with the report, which is not the plugin's time
                self._contain(fault)
            if seconds > SLOW_S:
                self._report_slow(seconds)

    def _report_slow(self, seconds: float) -> None:
        """Name the plugin as the cause of a long turn; a very slow call is a fault."""
        broker = self._context.broker
        broker.journal.budget.on_slow(broker.faults.cause(self._where, self._vhost, self._resource), seconds)
        if seconds > CALL_LIMIT_S:
            self._contain(Overrun(seconds))

    def _contain(self, error: BaseException) -> None:
        resource, faults = self._resource, self._context.broker.faults
        faults.contain_in_part(FAULT, error, self._vhost, resource, self._where, self._where, resource.answer)

    def _failure(self) -> HttpError:
        return HttpError(500, "plugin_failed", f"plugin '{self._plugin}' failed, see the log of the gateway")
