"""Recording of requests that change something, once they succeed."""

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from twisted.internet.defer import Deferred

from gateway.kernel.acting import Actor
from gateway.management.auditing.actions import AUDITED, NOT_AUDITED, AuditedAction
from gateway.management.auditing.masking import masked
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError
from gateway.management.http.routes import Endpoint, Fields, LongTask, Reply, Streamed

R = TypeVar("R")

#: The user agent of ``gatewayctl``; clients may claim any.
_CLI_AGENT: Final = "gatewayctl/"

#: The longest body that is kept, in bytes.
_LONGEST_BODY: Final = 8 * 1024

_FAILED: Final = 400


def perform(route: Endpoint, call: Call, names: Mapping[str, str]) -> object:
    """Call the resource of a route, record its changes, and return its result."""
    key = f"{route.method} {route.path}"
    if route.method == "GET" or key in NOT_AUDITED:
        return route.resource(call, **names)
    action = AUDITED.get(key) or _unlisted(route)
    recording = Recording(call, action, names, is_deletion=route.method == "DELETE")
    call.record_by(recording.finish)
    result = route.resource(call, **names)
    if isinstance(result, Deferred):
        return result.addCallback(recording.passing)
    if isinstance(result, LongTask):
        return replace(result, steps=recording.following(result.steps))
    return result if isinstance(result, Streamed) else recording.passing(result)


def actor_of(call: Call) -> Actor:
    """Return the origin of a request."""
    is_cli = call.headers.get("user-agent", "").startswith(_CLI_AGENT)
    return Actor(call.principal.name, call.peer_host, "CLI" if is_cli else "HTTP")


class Recording:
    """The entry of one request, with the state before it; recorded once, however often the request finishes."""

    def __init__(self, call: Call, action: AuditedAction, names: Mapping[str, str], *, is_deletion: bool) -> None:
        self._call = call
        self._action = action
        self._names = names
        self._is_deletion = is_deletion and "." not in action.action
        self._before = self._state()
        self._is_done = False

    def passing(self, result: R) -> R:
        """Record the request unless its result is a refusal; return the result."""
        if not (isinstance(result, Reply) and result.status >= _FAILED):
            self.finish()
        return result

    def following(self, steps: "Generator[Any, None, object]") -> "Generator[Any, None, object]":
        """Return the steps of a long task that record the request at their end."""
        result = yield from steps
        return self.passing(result)

    def finish(self) -> None:
        """Record the request."""
        if self._is_done:
            return
        self._is_done = True
        after = None if self._is_deletion else self._state()
        details = self._details()
        if self._action.snapshot is not None and self._before == after and not details:
            return
        before, now = masked(self._before), masked(after)
        if before == now and self._before != after:
            details["secrets_changed"] = True
        self._call.broker.audit.record(
            actor_of(self._call), self._name(after), self._vhost, self._subject,
            before=_state(before), after=_state(now), details=details,
        )  # fmt: skip

    def _state(self) -> Fields | None:
        snapshot = self._action.snapshot
        return None if snapshot is None else snapshot(self._call, **self._names)

    def _name(self, after: Fields | None) -> str:
        action = self._action.action
        if "." in action:
            return action
        return f"{action}.{'deleted' if after is None else 'created' if self._before is None else 'changed'}"

    @property
    def _vhost(self) -> str:
        return self._names.get(self._action.vhost_in, "")

    @property
    def _subject(self) -> str:
        names = [name for key, name in self._names.items() if key != self._action.vhost_in]
        return " ".join(names) if names else self._vhost

    def _details(self) -> Fields:
        details = dict(self._call.audit_details)
        if reason := self._call.headers.get("x-reason"):
            details["reason"] = reason
        if self._action.has_body and self._call.content.strip():
            details["request"] = self._body()
        return details

    def _body(self) -> object:
        """Return the body of the request without secrets, or its size if it is long or not JSON."""
        if len(self._call.content) > _LONGEST_BODY:
            return {"bytes": len(self._call.content)}
        try:
            return masked(self._call.fields)
        except HttpError:
            return {"bytes": len(self._call.content)}


def _state(state: object) -> Fields | None:
    return state if isinstance(state, dict) else None


def _unlisted(route: Endpoint) -> AuditedAction:
    """Return the action of a route without an entry in the table."""
    noun = route.path.strip("/").partition("/")[0].replace("-", "_")
    return AuditedAction(f"{noun}.{route.method.lower()}", has_body=True)
