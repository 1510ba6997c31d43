"""The error of an invalid selector, with its position."""

from gateway.kernel.errors import GatewayError


class SelectorError(GatewayError):
    """The text is not a valid selector. ``position`` counts characters from 0, the message from 1."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} at character {position + 1}")
        self.position = position
