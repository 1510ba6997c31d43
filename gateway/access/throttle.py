"""How fast logins may be tried: the more attempts failed, the longer the next one waits before it is judged.

Failures are counted for three keys. For an address and a user together the first few are free, then each attempt
waits longer than the last, up to ``max_delay_s``. For an address alone many more are free and the delay stays below a
fifth of that; a user who logged in from there before is exempt. For a user alone nothing is delayed, but once there
were many failures from anywhere, an address that is new to the user has one free attempt only. So a correct login
from another address is never delayed by an attack on its user.

A success clears the failures of its address and user. Attempts with the same password that are made at the same time
are one attempt: a thousand clients that start together share it. Attempts with different passwords are only so many at
a time, since none of them has failed yet.
"""

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final, Generic, TypeVar

from gateway.access.once import tell_each
from gateway.access.principals import Credentials
from gateway.logs import StructuredLog, masked

_log: Final = StructuredLog("access")

#: The first delay for an address and a user, and for an address alone. It doubles with each further failure.
_FIRST_DELAY_S: Final = 0.25
_FIRST_ADDRESS_DELAY_S: Final = 0.05
_ADDRESS_SHARE: Final = 5
_MOST_DOUBLINGS: Final = 16

#: User names up to this many characters are kept as they are.
LONGEST_NAME: Final = 128

#: How long refusals of one address are only counted after one of them was logged.
_LOG_INTERVAL_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class ThrottleRules:
    """What the operator decided. ``max_delay_s`` 0 turns the throttle off."""

    free_attempts: int = 5
    free_attempts_per_address: int = 50
    free_attempts_per_user: int = 100
    max_delay_s: float = 5.0
    forget_after_s: float = 300.0
    max_waiting: int = 1000
    max_parallel: int = 100
    table_size: int = 10_000


@dataclass(slots=True)
class FailureCount:
    """The failures of one key. The next attempt may begin at ``ready_at``."""

    failures: int = 0
    ready_at: float = 0.0
    last_at: float = 0.0
    parallel: int = 0
    is_known: bool = False
    logged_at: float = -_LOG_INTERVAL_S
    unlogged: int = 0


T = TypeVar("T")


class TallyTable(Generic[T]):
    """Tallies by key, bounded: the one that was not used for the longest time makes room for a new one."""

    def __init__(self, size: int, forget_after_s: float) -> None:
        self._size = size
        self.forget_after_s = forget_after_s
        self._tally_by_key: OrderedDict[T, FailureCount] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tally_by_key)

    def find(self, key: T, now: float) -> FailureCount | None:
        """Return the tally of a key; ``None`` when there is none, or it is old enough to be forgotten."""
        tally = self._tally_by_key.get(key)
        if tally is not None and now - tally.last_at > self.forget_after_s:
            del self._tally_by_key[key]
            return None
        return tally

    def use(self, key: T, now: float) -> FailureCount:
        """Return the tally of a key, a new one where there is none."""
        tally = self.find(key, now)
        if tally is None:
            tally = self._tally_by_key[key] = FailureCount()
            if len(self._tally_by_key) > self._size:
                self._tally_by_key.popitem(last=False)
        self._tally_by_key.move_to_end(key)
        tally.last_at = max(now, tally.ready_at)
        return tally

    def clear(self) -> None:
        """Forget everything."""
        self._tally_by_key.clear()


Key = tuple[str, str]
Guess = bytes
Admission = Callable[[bool], None]


@dataclass(slots=True)
class LoginAttempt:
    """One guess of a password that was admitted or waits to be, and how many logins share it."""

    key: Key
    guess: Guess
    is_waiting: bool = False
    has_failed: bool = False
    shared_by: int = 0
    waiting: list[Admission] = field(default_factory=list)


class LoginThrottle:
    """Counts failed logins and delays the next ones. One for all protocols and virtual hosts of a node.

    ``delayed`` and ``refused`` count attempts since the start. ``call_later`` calls back on the kernel's thread.
    """

    def __init__(
        self, rules: ThrottleRules, now: Callable[[], float], call_later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._rules = rules
        self._now = now
        self._call_later = call_later
        self._pairs: TallyTable[Key] = TallyTable(rules.table_size, rules.forget_after_s)
        self._addresses: TallyTable[str] = TallyTable(rules.table_size, rules.forget_after_s)
        self._users: TallyTable[str] = TallyTable(rules.table_size, rules.forget_after_s)
        self._attempts: dict[tuple[Key, Guess], LoginAttempt] = {}
        self._secret = secrets.token_bytes(32)
        self.waiting = 0
        self.delayed = 0
        self.refused = 0

    @property
    def rules(self) -> ThrottleRules:
        """What the operator decided; the size of the tables stays what it was at the start."""
        return self._rules

    @rules.setter
    def rules(self, rules: ThrottleRules) -> None:
        self._rules = rules
        self._pairs.forget_after_s = self._addresses.forget_after_s = self._users.forget_after_s = rules.forget_after_s

    # Asked by those who judge logins

    def attempt_of(self, credentials: Credentials) -> LoginAttempt:
        """Return the attempt that credentials are part of: a new one, or the one with the same password."""
        key = address_of(credentials.peer_host), short(credentials.username)
        text = f"{credentials.mechanism}\0{credentials.password}"
        guess = hmac.digest(self._secret, text.encode(errors="surrogatepass"), "sha256")
        return self._attempts.get((key, guess)) or LoginAttempt(key, guess)

    def unshared(self, peer_host: str, user: str) -> LoginAttempt:
        """Return an attempt of its own, for methods that prove a password without sending it."""
        return LoginAttempt((address_of(peer_host), short(user)), secrets.token_bytes(16))

    def wait_s(self, attempt: LoginAttempt) -> float:
        """Return how long an attempt would wait now; one that shares another's does not wait by itself."""
        if self.rules.max_delay_s <= 0 or (attempt.key, attempt.guess) in self._attempts:
            return 0.0
        now = self._now()
        pair, address = self._pairs.find(attempt.key, now), self._addresses.find(attempt.key[0], now)
        wait = pair.ready_at - now if pair is not None else 0.0
        if address is not None and not (pair is not None and pair.is_known):
            wait = max(wait, address.ready_at - now)
        return max(wait, 0.0)

    def admit(self, attempt: LoginAttempt, answer: Admission) -> None:
        """Call ``answer`` once, now or later: whether the attempt may be judged. Then ``ended`` has to be called."""
        if self.rules.max_delay_s <= 0:
            answer(True)
            return
        shared = self._attempts.get((attempt.key, attempt.guess))
        if shared is not None:
            self._join(shared, answer)
            return
        wait = self.wait_s(attempt)
        if not self._has_room(attempt.key, wait):
            self._refuse(attempt)
            answer(False)
            return
        self._reserve(attempt.key, wait)
        self._attempts[attempt.key, attempt.guess] = attempt
        attempt.is_waiting = wait > 0
        self._join(attempt, answer)
        if wait > 0:
            self._call_later(wait, lambda: self._waited(attempt))

    def ended(self, attempt: LoginAttempt, has_succeeded: bool) -> None:
        """Take note of how an admitted attempt ended: a failure counts, a success clears those of address and user."""
        attempt.shared_by -= 1
        if attempt.shared_by <= 0 and self._attempts.pop((attempt.key, attempt.guess), None) is not None:
            tally = self._pairs.use(attempt.key, self._now())
            tally.parallel = max(tally.parallel - 1, 0)
        if self.rules.max_delay_s <= 0:
            return
        if has_succeeded:
            self._forgive(attempt.key)
        elif not attempt.has_failed:
            attempt.has_failed = True
            self._count(attempt.key)

    # Waiting

    def _join(self, attempt: LoginAttempt, answer: Admission) -> None:
        if not attempt.is_waiting:
            attempt.shared_by += 1
            answer(True)
        elif self.waiting >= self.rules.max_waiting:
            self._refuse(attempt)
            answer(False)
        else:
            attempt.shared_by += 1
            attempt.waiting.append(answer)
            self.waiting += 1
            self.delayed += 1

    def _waited(self, attempt: LoginAttempt) -> None:
        attempt.is_waiting = False
        waiting, attempt.waiting = attempt.waiting, []
        self.waiting -= len(waiting)
        tell_each(waiting, True)

    # Counting

    def _has_room(self, key: Key, wait: float) -> bool:
        """Whether one more attempt may be judged, or may wait until it is."""
        if wait > 0:
            return wait <= self.rules.max_delay_s and self.waiting < self.rules.max_waiting
        pair = self._pairs.find(key, self._now())
        return pair is None or pair.parallel < self.rules.max_parallel

    def _reserve(self, key: Key, wait: float) -> None:
        """Let the next attempt of a key that is delayed begin one delay after this one."""
        now = self._now()
        pair, address = self._pairs.use(key, now), self._addresses.find(key[0], now)
        pair.parallel += 1
        if pair.ready_at:
            pair.ready_at = now + wait + self._pair_delay_s(pair, key)
        if address is not None and address.ready_at:
            address.ready_at = now + wait + self._address_delay_s(address)

    def _count(self, key: Key) -> None:
        """Count a failure, and set when the next attempt may begin."""
        now = self._now()
        pair, address, user = self._used(key, now)
        for tally in (pair, address, user):
            tally.failures += 1
        pair.ready_at = _later(pair.ready_at, now, self._pair_delay_s(pair, key))
        address.ready_at = _later(address.ready_at, now, self._address_delay_s(address))

    def _pair_delay_s(self, pair: FailureCount, key: Key) -> float:
        rules, user = self.rules, self._users.find(key[1], self._now())
        is_attacked = user is not None and user.failures > rules.free_attempts_per_user
        free = min(rules.free_attempts, 1) if is_attacked and not pair.is_known else rules.free_attempts
        return delay_s(pair.failures - free, _FIRST_DELAY_S, rules.max_delay_s)

    def _address_delay_s(self, address: FailureCount) -> float:
        over = address.failures - self.rules.free_attempts_per_address
        return delay_s(over, _FIRST_ADDRESS_DELAY_S, self.rules.max_delay_s / _ADDRESS_SHARE)

    def _forgive(self, key: Key) -> None:
        now = self._now()
        pair = self._pairs.use(key, now)
        pair.is_known = True
        if not pair.failures:
            return
        address, user = self._addresses.use(key[0], now), self._users.use(key[1], now)
        for tally in (address, user):
            tally.failures = max(tally.failures - pair.failures, 0)
        pair.failures, pair.ready_at, pair.last_at = 0, 0.0, now
        if address.failures <= self.rules.free_attempts_per_address:
            address.ready_at = 0.0

    def _used(self, key: Key, now: float) -> tuple[FailureCount, FailureCount, FailureCount]:
        return self._pairs.use(key, now), self._addresses.use(key[0], now), self._users.use(key[1], now)

    def _refuse(self, attempt: LoginAttempt) -> None:
        """Count a refusal; one line in ten seconds and address tells of it."""
        self.refused += 1
        now, (address, user) = self._now(), attempt.key
        tally = self._addresses.use(address, now)
        tally.unlogged += 1
        if now - tally.logged_at >= _LOG_INTERVAL_S:
            _log.warning("logins refused: too many failed", peer=address, user=masked(user), refused=tally.unlogged)
            tally.logged_at, tally.unlogged = now, 0


def _later(ready_at: float, now: float, delay: float) -> float:
    return max(ready_at, now + delay) if delay > 0 else ready_at


def delay_s(over: int, first_s: float, most_s: float) -> float:
    """Return the delay after the attempt that is number ``over`` beyond the free ones."""
    if over < 0:
        return 0.0
    return float(min(most_s, first_s * 2 ** min(over, _MOST_DOUBLINGS)))


def short(user: str) -> str:
    """Return what stands for a user name in the tables: itself, or a digest of one that is very long."""
    if len(user) <= LONGEST_NAME:
        return user
    return f"{user[:16]}... {hashlib.sha256(user.encode(errors='surrogatepass')).hexdigest()}"


@lru_cache(maxsize=4096)
def address_of(host: str) -> str:
    """Return the key of an address: of IPv6 the network of 64 bits, since one client has all of it."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    if address.is_loopback:
        return str(address)
    return str(IPv6Address(int(address) >> 64 << 64)) + "/64"
