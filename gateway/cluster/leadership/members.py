"""The nodes of the cluster: each writes its record again and again, and sees who else does."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from gateway.cluster.errors import ClusterMismatch, Outdated, Unanswered
from gateway.cluster.leadership.contact import Contact
from gateway.cluster.leadership.member import NODE, Member, Role, decode_member, encode_member, member_key
from gateway.cluster.leadership.pulse import Pulse, Start
from gateway.cluster.leadership.timing import ANSWER_S, BEAT_S, SILENT_S
from gateway.cluster.metadata import NEVER, Metadata, MetadataEntry, MetadataWatch, Revision
from gateway.kernel.clock import Clock


class SeenMember:
    """A member's last record, and when it came."""

    __slots__ = ("member", "revision", "seen_s")

    def __init__(self, member: Member, revision: Revision, seen_s: float) -> None:
        self.member = member
        self.revision = revision
        self.seen_s = seen_s


class Members:
    """The members as one node knows them. Owns the record of this node, ``own``.

    A node whose name has a record waits until that one is silent: it may be that of a live node. If it is, or if
    another node takes the name later, ``on_refused`` is called, once, and this node writes nothing more. It need not
    wait if ``has_ended`` says of the process in the record that it certainly has: the node was killed and started
    again. ``measure`` returns the figures for its record.
    """

    def __init__(
        self,
        metadata: Metadata,
        clock: Clock,
        start: Start,
        own: Member,
        contact: Contact,
        on_refused: Callable[[ClusterMismatch], None],
        measure: Callable[[], Mapping[str, int]] = dict,
        has_ended: Callable[[str], bool] = lambda process: False,
    ) -> None:
        self.own = own
        self.is_joined = False
        self._metadata = metadata
        self._clock = clock
        self._start = start
        self._contact = contact
        self._on_refused = on_refused
        self._measure = measure
        self._has_ended = has_ended
        self._key = member_key(own.name)
        self._pulse = Pulse(clock, self._tick)
        self._seen: dict[str, SeenMember] = {}
        self._watch: MetadataWatch | None = None
        self._is_current = False
        self._is_closed = False
        #: The last known revision of the own record, and the record of another node there.
        self._revision = NEVER
        self._holder: SeenMember | None = None
        self._asked_s: float | None = None
        self._beat_s = clock.monotonic_s() - BEAT_S
        self._left: Callable[[], None] | None = None

    @property
    def alive(self) -> list[Member]:
        """The members that wrote a record within the last 5 s, by name; this node is one once it has joined."""
        now_s = self._pulse.watched_s
        found = {name: seen.member for name, seen in self._seen.items() if now_s - seen.seen_s < SILENT_S}
        found.pop(self.own.name, None)
        if self.is_joined:
            found[self.own.name] = self.own
        return [found[name] for name in sorted(found)]

    @property
    def known(self) -> list[Member]:
        """All members that have a record, by name: also those that died."""
        return [self._seen[name].member for name in sorted(self._seen)]

    def join(self) -> None:
        """Begin to watch, and write the record of this node as soon as its name is free."""
        self._pulse.start()
        self._watch = self._metadata.watch((NODE,), self)

    def show(self, role: Role, is_eligible: bool) -> None:
        """Change the record of this node, with the next beat at once."""
        self.own = replace(self.own, role=role, is_eligible=is_eligible)
        self._beat_s = self._clock.monotonic_s() - BEAT_S
        self._beat_if_due()

    async def forget(self, name: str) -> None:
        """Delete the record of another node.

        :raises Outdated: if it has written it meanwhile.
        :raises Unanswered: if the engine does not answer.
        """
        seen = self._seen.get(name)
        if seen is not None and name != self.own.name:
            await self._metadata.delete(member_key(name), seen.revision)

    def leave(self, left: Callable[[], None]) -> None:
        """Delete the record of this node, as far as the engine answers; then stop, and call ``left``."""
        self.is_joined = False
        if self._is_closed:
            left()
            return
        self._left = left
        self._beat_if_due()

    def close(self) -> None:
        """Stop: make no more calls, and write nothing more."""
        self._is_closed = True
        self._pulse.stop()
        if self._watch is not None:
            self._watch.stop()

    # ---- The records of others -----------------------------------------------------------------------------------

    def on_entry(self, entry: MetadataEntry) -> None:
        """Note the record of a node."""
        if len(entry.key) != 2:
            return  # of a newer gateway
        name = entry.key[1]
        member = None if entry.value is None else decode_member(entry.value)
        if member is None:
            self._seen.pop(name, None)
        else:
            self._seen[name] = SeenMember(member, entry.revision, self._pulse.watched_s)
        if name == self.own.name:
            self._note_own(entry)

    def on_current(self) -> None:
        """Join, now that all records are known."""
        self._is_current = True
        self._beat_if_due()

    def _note_own(self, entry: MetadataEntry) -> None:
        """Note who wrote the record with the name of this node last."""
        if entry.revision <= self._revision:
            return
        member = None if entry.value is None else decode_member(entry.value)
        is_news = self._is_current or self.is_joined
        self._revision = entry.revision
        if member is None or member.instance == self.own.instance:
            self._holder = None
        elif is_news:
            self._refuse(member)
        else:  # from before the start of this node: perhaps its own, before it was killed
            self._holder = SeenMember(member, entry.revision, self._pulse.watched_s)

    def _refuse(self, other: Member) -> None:
        if self._is_closed:
            return
        self.close()
        self.is_joined = False
        host, port = other.forwarding
        text = f"another node at {host}:{port} is named {self.own.name}, and is alive; each node needs its own name"
        self._on_refused(ClusterMismatch(text))

    # ---- The record of this node ---------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self._asked_s is not None and self._clock.monotonic_s() - self._asked_s >= ANSWER_S:
            self._contact.unanswered(f"the engine has not answered for {ANSWER_S:g} s")
        self._beat_if_due()

    def _beat_if_due(self) -> None:
        if self._asked_s is not None or self._is_closed:
            return
        if self._left is not None or (self._is_free() and self._clock.monotonic_s() - self._beat_s >= BEAT_S):
            self._ask()

    def _is_free(self) -> bool:
        """Whether the name may be used."""
        holder = self._holder
        if holder is not None and (
            self._pulse.watched_s - holder.seen_s >= SILENT_S or self._has_ended(holder.member.process)
        ):
            self._holder = None
        return self._is_current and self._holder is None

    def _ask(self) -> None:
        self._asked_s = self._beat_s = self._clock.monotonic_s()
        self._start(self._write_and_note() if self._left is None else self._delete())

    async def _write_and_note(self) -> None:
        try:
            await self._write()
        except Unanswered as error:
            self._contact.unanswered(str(error))
        else:
            self._contact.answered()
        finally:
            self._asked_s = None
        if self._left is not None:
            self._beat_if_due()

    async def _write(self) -> None:
        self.own = replace(self.own, beat=self.own.beat + 1, figures=self._measure())
        try:
            revision = await self._metadata.put(self._key, encode_member(self.own), self._revision)
        except Outdated:  # by a write of this node without an answer, or by another node
            await self._read()
        else:
            self._revision = max(self._revision, revision)
            self.is_joined = not self._is_closed and self._left is None

    async def _read(self) -> None:
        found = await self._metadata.get(self._key)
        if found is not None and not self._is_closed:
            self._note_own(found)

    async def _delete(self) -> None:
        """Delete the record; without an answer it stays, and is silent soon."""
        try:
            if self._revision != NEVER and self._holder is None:
                await self._metadata.delete(self._key, self._revision)
        except Outdated:
            pass  # another node has the name now
        except Unanswered as error:
            self._contact.unanswered(str(error))
        left, self._left = self._left, None
        self.close()
        if left is not None:
            left()
