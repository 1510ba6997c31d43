"""What is wrong with a selector, and where."""

from gateway.kernel.errors import GatewayError


class SelectorError(GatewayError):
    """The text is no selector. ``position`` counts its characters from 0, the message from 1."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} at character {position + 1}")
        self.position = position
