"""Where connections wait before they have said who they are: an epoll of their own, inside the one of the reactor.

epoll reports whoever is ready in rounds, so a newcomer is as good as anybody else in it. When 5,000 clients log in at
once, whoever has been there longer would wait for a whole round of logins each time it says something (337 ms).
"""

from select import EPOLLIN, epoll

from gateway.net.syscalls import wait_for


class LoginPoller:
    """Looks like one ``epoll`` and is two: descriptors that are registered ``while_admitting`` go into the inner one.

    The inner one is itself registered in the outer, ``settled``: it is one of those that are ready while anybody in it
    is. ``wait`` waits for any of them.
    """

    def __init__(self) -> None:
        self.while_admitting = False
        self.settled = epoll()
        self._newcomers = epoll()
        self._flags_of: dict[int, int] = {}
        self.wait = wait_for(self.settled)
        self._look = wait_for(self._newcomers)
        self.settled.register(self._newcomers.fileno(), EPOLLIN)

    @property
    def door(self) -> int:
        """The descriptor that ``poll`` reports when somebody in the antechamber is ready."""
        return self._newcomers.fileno()

    def let_in(self, descriptor: int) -> None:
        """Serve this one with those who have been here longer from now on; harmless when it is among them."""
        flags = self._flags_of.pop(descriptor, None)
        if flags is not None:
            self._newcomers.unregister(descriptor)
            self.settled.register(descriptor, flags)

    def newcomers(self, most: int) -> tuple[int, ...]:
        """Return who is ready in the antechamber, as a ``Wait`` does, without waiting."""
        return self._look(0.0, most) or ()

    # What Twisted's reactor asks of an epoll

    def register(self, descriptor: int, flags: int) -> None:
        """Watch a descriptor."""
        if self.while_admitting:
            self._newcomers.register(descriptor, flags)
            self._flags_of[descriptor] = flags
        else:
            self.settled.register(descriptor, flags)

    def modify(self, descriptor: int, flags: int) -> None:
        """Watch it for something else."""
        if descriptor in self._flags_of:
            self._newcomers.modify(descriptor, flags)
            self._flags_of[descriptor] = flags
        else:
            self.settled.modify(descriptor, flags)

    def unregister(self, descriptor: int) -> None:
        """Watch it no longer."""
        if self._flags_of.pop(descriptor, None) is None:
            self.settled.unregister(descriptor)
        else:
            self._newcomers.unregister(descriptor)
