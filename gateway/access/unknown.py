"""Permissions that are not known yet, because another server is being asked for them."""

from collections.abc import Callable

from gateway.kernel.budget import PendingWork
from gateway.kernel.errors import AccessRefused


class PermissionUnknown(AccessRefused):
    """Whether the user has the permission is not known yet; the answer of another server is awaited.

    Raised by the methods of ``Permissions`` and by authorizers, before the request has any effect. A connection holds
    its input until ``answered`` is done, then repeats the request, which finds the answer. Where a request cannot be
    repeated it counts as a refusal. ``again`` repeats the request; ``None`` if the connection knows how.
    """

    def __init__(self, resource: str, answered: PendingWork | None = None) -> None:
        """``resource`` is what was asked for, such as ``queue 'q' in vhost '/'``."""
        super().__init__(f"access to {resource} is not decided yet; try again later")
        self.again: Callable[[], None] | None = None
        self._answered = answered or PendingWork()

    def when_known(self, call: Callable[[], None]) -> None:
        """Call ``call`` once on the kernel's thread, later: the answer has arrived, or there will be none."""
        self._answered.when_done(lambda _: call())
