"""What the source and the sink raise: one line that says whose fault it is and what would help."""


class PipelineError(Exception):
    """Anything that the package raises on purpose."""


class OptionError(PipelineError):
    """An option of the source or the sink is wrong, or missing."""


class AccessError(PipelineError):
    """The broker knows nobody of this name and password, or does not allow what was asked."""


class DataLoss(PipelineError):
    """Messages that were to be read are gone: retention was faster, or the stream was deleted."""


class StagedLost(PipelineError):
    """What the tasks of a batch had handed to the broker is not there any more; the batch has to be written again."""


class Unreachable(PipelineError):
    """The broker did not answer for as long as the option ``retryTimeout`` allows."""


class BrokerRefused(PipelineError):
    """The broker understood and declined. ``status`` is that of HTTP, ``fields`` what came with it."""

    def __init__(self, status: int, reason: str, fields: "dict[str, object] | None" = None) -> None:
        super().__init__(reason)
        self.status = status
        self.fields = fields or {}

    def __reduce__(self) -> "tuple[type[BrokerRefused], tuple[int, str, dict[str, object]]]":
        return type(self), (self.status, str(self), self.fields)
