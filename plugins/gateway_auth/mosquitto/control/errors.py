"""The error of one command."""


class CommandError(Exception):
    """The command is refused; the client receives the text."""
