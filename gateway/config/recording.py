"""Settings of the recorder of connections."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.kinds import Live, OptionalPath, Size
from gateway.config.section import Section


class RecordingSettings(Section):
    """Recordings of connections for a replay in the simulation, see docs/recording.md. Secrets are masked."""

    enabled: Live[bool] = False
    """Whether connections that are opened from now on are recorded."""

    directory: OptionalPath = None
    """Directory of the recordings; ``""`` is ``recordings`` in the data directory."""

    listeners: Live[list[str]] = Field(default_factory=list)
    """Listeners whose connections are recorded, such as ``amqp`` or ``web_mqtt``; an empty list is all of them."""

    bodies: Live[Literal["masked", "kept"]] = "masked"
    """Whether message bodies are masked too; their length is kept. Bodies of HTTP requests always are."""

    max_size: Live[Annotated[Size, Field(ge=2**16, le=10**12)]] = 256 * 2**20
    """Size at which a recording ends."""

    max_connections: Live[Annotated[int, Field(ge=1, le=1_000_000)]] = 1000
    """Connections that are recorded at the same time; further ones are not recorded."""
