"""What was seen lately: a bounded memory of keys, to tell a message that was published twice."""

from hashlib import blake2b
from math import inf
from typing import TYPE_CHECKING, Final

from gateway.kernel.message import Arguments, Message, Value
from gateway.kernel.values import dumps_key

if TYPE_CHECKING:
    from gateway.kernel.ports import Clock

#: The header a publisher names a message with.
KEY_HEADER: Final = "x-deduplication-header"

#: How many keys are remembered where nobody says so.
DEFAULT_SIZE: Final = 10_000


def recollection_for(arguments: Arguments, clock: "Clock") -> "Recollection":
    """Return an empty memory of the size and for the time that ``x-cache-size`` and ``x-cache-ttl`` say."""
    return Recollection(
        clock, _positive(arguments.get("x-cache-size")) or DEFAULT_SIZE, _positive(arguments.get("x-cache-ttl"))
    )


class Recollection:
    """Remembers the last ``size`` keys, each for ``ttl_ms`` (``None``: until newer ones push it out).

    In memory alone: a restart forgets. A key seen again is not remembered for longer.
    """

    __slots__ = ("_clock", "_size", "_ttl_ms", "_until_s_by_key")

    def __init__(self, clock: "Clock", size: int = DEFAULT_SIZE, ttl_ms: int | None = None) -> None:
        self._clock = clock
        self._size = size
        self._ttl_ms = ttl_ms
        self._until_s_by_key: dict[bytes, float] = {}

    def __len__(self) -> int:
        return len(self._until_s_by_key)

    def is_repeated(self, message: Message) -> bool:
        """Return whether a message with the same key came lately; if not, remember it. One without a key is new.

        The message may say itself for how long it is to be remembered (``x-cache-ttl``).
        """
        headers = message.headers
        if KEY_HEADER not in headers:
            return False
        key = blake2b(dumps_key([headers[KEY_HEADER]]), digest_size=16).digest()  # what is kept is bounded in size too
        now_s = self._clock.monotonic_s()
        if now_s < self._until_s_by_key.get(key, -inf):
            return True
        ttl_ms = _positive(headers.get("x-cache-ttl")) or self._ttl_ms
        self._remember(key, inf if ttl_ms is None else now_s + ttl_ms / 1000)
        return False

    def take_over(self, earlier: "Recollection") -> None:
        """Go on with what another one remembers, each key for as long as it was to be remembered when it came."""
        self._until_s_by_key = earlier._until_s_by_key
        while len(self._until_s_by_key) > self._size:
            self._forget_oldest()

    def _remember(self, key: bytes, until_s: float) -> None:
        """Remember a key as the youngest; the oldest gives way."""
        self._until_s_by_key.pop(key, None)
        self._until_s_by_key[key] = until_s
        if len(self._until_s_by_key) > self._size:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        del self._until_s_by_key[next(iter(self._until_s_by_key))]


def _positive(value: Value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
