"""The API of JetStream: JSON requests, and its errors as exceptions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway_jetstream.client.client import NatsClient
from gateway_jetstream.codec.frames import Delivered
from gateway_jetstream.errors import (
    ApiError,
    AppendInFlight,
    MessageNotFound,
    NatsProtocolError,
    NoPeers,
    StreamNotFound,
    WrongLastSequence,
)

_PREFIX: Final = "$JS.API."

#: Errors by ``err_code``. 10164 is "wrong last sequence" while the append that decides is in flight.
_ERRORS: Final[dict[int, type[ApiError]]] = {
    10005: NoPeers,
    10008: NoPeers,
    10037: MessageNotFound,
    10059: StreamNotFound,
    10071: WrongLastSequence,
    10164: AppendInFlight,
}


@dataclass(frozen=True, slots=True)
class StreamState:
    """The answer to STREAM.INFO. ``leader`` and ``replicas`` are names of servers; empty in a single server."""

    config: Mapping[str, Any]  # Any: values of JSON
    messages: int
    first_sequence: int
    last_sequence: int
    leader: str
    replicas: tuple[str, ...]


class JetStreamApi:
    """Calls the API over a client. Each call raises a :class:`NatsError`, and an :class:`ApiError` if it is refused."""

    def __init__(self, client: NatsClient) -> None:
        self.client = client

    async def call(
        self, subject: str, body: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> dict[str, Any]:
        """Return the answer to a request; ``subject`` is what follows ``$JS.API.``."""
        payload = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        answer = await self.client.request(f"{_PREFIX}{subject}", payload, timeout_s=timeout_s)
        return decode_answer(answer, self.client.server, f"{_PREFIX}{subject}")

    async def create_stream(self, config: Mapping[str, Any]) -> StreamState:
        """Create a stream; nothing happens if there is one with the same configuration."""
        return _state(await self.call(f"STREAM.CREATE.{config['name']}", config))

    async def update_stream(self, config: Mapping[str, Any]) -> StreamState:
        """Change the configuration of a stream."""
        return _state(await self.call(f"STREAM.UPDATE.{config['name']}", config))

    async def stream(self, name: str, timeout_s: float | None = None) -> StreamState:
        """Return the state of a stream. :raises StreamNotFound: if there is none."""
        return _state(await self.call(f"STREAM.INFO.{name}", timeout_s=timeout_s))

    async def delete_stream(self, name: str) -> None:
        """Delete a stream."""
        await self.call(f"STREAM.DELETE.{name}")

    async def purge(self, stream: str, subject: str = "", *, below: int | None = None, keep: int | None = None) -> int:
        """Remove messages, of a subject only if there is one: those below a sequence, or all but the last ones.

        :returns: their number.
        """
        body: dict[str, Any] = {}
        if subject:
            body["filter"] = subject
        if below is not None:
            body["seq"] = below
        if keep is not None:
            body["keep"] = keep
        return _number(await self.call(f"STREAM.PURGE.{stream}", body), "purged")

    async def step_down(self, stream: str, preferred: str = "", timeout_s: float | None = None) -> None:
        """Make another server the leader of a stream, the preferred one if it can be."""
        body = {"placement": {"preferred": preferred}} if preferred else {}
        await self.call(f"STREAM.LEADER.STEPDOWN.{stream}", body, timeout_s)


def decode_answer(answer: Delivered, server: str, subject: str) -> dict[str, Any]:
    """Return the JSON of an answer. :raises ApiError: if it is an error, by its code."""
    try:
        fields = json.loads(answer.payload)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise NatsProtocolError("the answer is not a JSON object", server=server, subject=subject)
    error = fields.get("error")
    if isinstance(error, dict):
        code = _number(error, "err_code")
        reason = str(error.get("description") or "JetStream refuses the request")
        raise _ERRORS.get(code, ApiError)(reason, server=server, subject=subject, code=code)
    return fields


def _state(fields: Mapping[str, Any]) -> StreamState:
    state, cluster = _object(fields, "state"), _object(fields, "cluster")
    replicas = cluster.get("replicas")
    names = (
        [str(each.get("name", "")) for each in replicas if isinstance(each, dict)] if isinstance(replicas, list) else []
    )
    return StreamState(
        _object(fields, "config"),
        _number(state, "messages"),
        _number(state, "first_seq"),
        _number(state, "last_seq"),
        str(cluster.get("leader", "")),
        tuple(names),
    )


def _object(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _number(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    return value if type(value) is int else 0
