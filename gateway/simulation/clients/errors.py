"""The errors with which a client's request may end."""


class Lost(Exception):
    """The connection ended before the answer came, or could not be made."""


class RefusedRequest(Exception):
    """The broker refused the request, with a code of its protocol."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}")
        self.code = code
        self.text = text
