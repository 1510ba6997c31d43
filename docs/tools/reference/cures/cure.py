"""Why an error with some text occurs, and what to do."""

from typing import NamedTuple


class Cure(NamedTuple):
    """The cause and the cure of the error texts that ``pattern`` matches; both are written as Markdown."""

    pattern: str
    cause: str
    cure: str
