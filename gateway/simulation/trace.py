"""The readable dialogue of a run: what each client, fault and log line said, and when."""

from gateway.simulation.world.world import World


class Trace:
    """Collects lines while it ``is_on``. ``lines`` has all of them."""

    def __init__(self, world: World, is_on: bool) -> None:
        self.is_on = is_on
        self.lines: list[str] = []
        self._world = world

    def add(self, who: str, text: str) -> None:
        """Add a line."""
        if self.is_on:
            self.lines.append(f"{self._world.now_s:10.6f} {who:<14} {text}")
