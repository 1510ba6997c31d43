"""Settings of the message workbench."""

from typing import Annotated

from pydantic import Field

from gateway.config.kinds import Live, Size
from gateway.config.section import Section


class WorkbenchSettings(Section):
    """The message workbench, see docs/workbench.md."""

    undo_window_s: Live[Annotated[int, Field(ge=1, le=7 * 86400)]] = 900
    """Time in which an action can be undone, in seconds."""

    undo_max_messages: Live[Annotated[int, Field(ge=0, le=100_000_000)]] = 100_000
    """Messages of all actions together that can be undone; beyond it an action stops."""

    undo_max_bytes: Live[Annotated[Size, Field(ge=0, le=10**12)]] = 256 * 2**20
    """Bodies of removed messages that are kept for undoing, in the store; beyond it an action stops."""

    max_jobs: Live[Annotated[int, Field(ge=1, le=1000)]] = 8
    """Jobs that may run at the same time."""
