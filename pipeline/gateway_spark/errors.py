"""The errors of the source and the sink: one line with the cause and the remedy."""


class PipelineError(Exception):
    """The base class of all errors that the package raises."""


class OptionError(PipelineError):
    """An option of the source or the sink is invalid or missing."""


class AccessError(PipelineError):
    """The broker refused the user's credentials or permissions."""


class DataLoss(PipelineError):
    """Messages to be read no longer exist: they expired, or the stream was deleted."""


class StagedLost(PipelineError):
    """Rows staged by the tasks of a batch no longer exist at the broker; the batch must be written again."""


class BatchHeld(PipelineError):
    """A batch is committed, but the broker cannot publish it for now; it continues once the reason is over."""


class Unreachable(PipelineError):
    """The broker did not answer within the option ``retryTimeout``."""


class BrokerRefused(PipelineError):
    """The broker refused a request. ``status`` is the HTTP status, ``fields`` the decoded answer."""

    def __init__(self, status: int, reason: str, fields: "dict[str, object] | None" = None) -> None:
        super().__init__(reason)
        self.status = status
        self.fields = fields or {}

    def __reduce__(self) -> "tuple[type[BrokerRefused], tuple[int, str, dict[str, object]]]":
        return type(self), (self.status, str(self), self.fields)
