"""A health check of the broker's, as a verb asks for it."""

from gateway.cli.ctl.session import VerbSession


class Check:
    """A health check: its path below ``health/checks``, and the lines before and after it.

    ``{node}`` stands for the node's name in both.
    """

    def __init__(self, *path: str, question: str, answer: str) -> None:
        self._path = path
        self._question = question
        self._answer = answer

    def run(self, session: VerbSession) -> None:
        """Ask the broker. :raises Unhealthy: when the check fails."""
        node = session.node()
        session.output.announce(self._question.replace("{node}", node))
        session.api.get("health", "checks", *self._path)
        session.output.conclude(self._answer.replace("{node}", node))
