"""A call that is made once."""

from collections.abc import Callable


class OneCall:
    """Makes a call once, however often it is called."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def __call__(self) -> None:
        """Make the call, the first time."""
        call, self._call = self._call, None
        if call is not None:
            call()
