"""A separate epoll for connections that have not logged in yet, nested in the reactor's epoll.

epoll reports ready descriptors in rounds and treats all of them equally. When 5,000 clients log in at once, each
message of an established connection would wait for a whole round of logins (337 ms).
"""

from select import EPOLLIN, epoll
from typing import Any

from gateway.net.syscalls import waiter


class LoginPoller:
    """A pair of epolls with the interface of one. Descriptors registered ``while_admitting`` go into the inner one.

    The inner epoll is registered in the outer one, ``settled``, and is reported as ready while any of its descriptors
    is. ``waiter`` waits for both.
    """

    def __init__(self) -> None:
        self.while_admitting = False
        self.settled = epoll()
        self._newcomers = epoll()
        self._flags_of: dict[int, int] = {}
        self.waiter = waiter(self.settled)
        self._look = waiter(self._newcomers).wait
        self.settled.register(self._newcomers.fileno(), EPOLLIN)

    @property
    def inner_descriptor(self) -> int:
        """The descriptor that is reported when a connection in the inner epoll is ready."""
        return self._newcomers.fileno()

    def promote(self, descriptor: int) -> None:
        """Move a descriptor to the outer epoll; harmless when it is there already."""
        flags = self._flags_of.pop(descriptor, None)
        if flags is not None:
            self._newcomers.unregister(descriptor)
            self.settled.register(descriptor, flags)

    def newcomers(self, most: int) -> tuple[int, ...]:
        """Return the ready descriptors of the inner epoll without waiting, in the format of ``Waiter.wait``."""
        return self._look(0.0, most) or ()

    # The interface of an epoll for Twisted's reactor

    def register(self, descriptor: int, flags: int) -> None:
        """Register a descriptor."""
        if self.while_admitting:
            self._newcomers.register(descriptor, flags)
            self._flags_of[descriptor] = flags
        else:
            self.settled.register(descriptor, flags)

    def modify(self, descriptor: int, flags: int) -> None:
        """Change the events of a descriptor."""
        if descriptor in self._flags_of:
            self._newcomers.modify(descriptor, flags)
            self._flags_of[descriptor] = flags
        else:
            self.settled.modify(descriptor, flags)

    def unregister(self, descriptor: int) -> None:
        """Unregister a descriptor."""
        if self._flags_of.pop(descriptor, None) is None:
            self.settled.unregister(descriptor)
        else:
            self._newcomers.unregister(descriptor)


def promote(transport: Any) -> None:  # Any: transports of several kinds, some of them without priorities
    """Poll a connection at normal priority from now on: its client has logged in."""
    poll_normally = getattr(transport, "promote", None)
    if poll_normally is not None:
        poll_normally()
