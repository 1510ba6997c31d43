"""Replacement of parts of bodies before they are written to an archive."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from gateway.columnar.encoding.pieces import Piece
from gateway.kernel.messages.json_path import REDACTED, JsonPath

_WHOLE: Final = REDACTED.encode()


class BodyRedaction:
    """Rules for the bodies of one archive: pairs of a pattern of routing keys, in which ``*`` is any text, and a path.

    A body that is not JSON, or names a member twice, is replaced as a whole, because a part of it cannot be found.
    """

    def __init__(self, rules: Iterable[tuple[str, str]]) -> None:
        self._rules = [(_pattern(key), JsonPath.parse(path)) for key, path in rules]

    def pieces(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Yield pieces of messages with redacted bodies."""
        for piece in pieces:
            yield piece._replace(batch=self._redacted(piece.batch)) if self._rules else piece

    def _redacted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        keys = batch.column("routing_key").to_pylist()
        paths_of = {key: self._paths(key or "") for key in set(keys)}
        if not any(paths_of.values()):
            return batch
        bodies = [
            _redacted_body(body, paths_of[key]) if paths_of[key] else body
            for key, body in zip(keys, batch.column("body").to_pylist(), strict=True)
        ]
        return batch.set_column(batch.schema.get_field_index("body"), "body", pa.array(bodies, pa.binary()))

    def _paths(self, key: str) -> list[JsonPath]:
        return [path for pattern, path in self._rules if pattern.fullmatch(key)]


def _redacted_body(body: bytes, paths: list[JsonPath]) -> bytes:
    """Return a body with the parts of all paths replaced, as JSON without spaces; the body itself if it has none.

    An empty body has nothing to hide, and means that a retained message is cleared.
    """
    if not body:
        return body
    if any(not path.steps for path in paths):
        return _WHOLE
    try:
        value = found = json.loads(body, object_pairs_hook=_object)
        for path in paths:
            found = path.redact(found)
        return body if found is value else json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return _WHOLE


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. :raises ValueError: if a member is there twice, of which a path would find one."""
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a member is there twice")
    return found


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
