"""The recorder of a node, and its rules from the settings."""

from typing import Any

from gateway.config import Settings
from gateway.kernel.clock import Clock
from gateway.recording.recorder import Recorder, RecordingRules

_DIRECTORY = "recordings"


def node_recorder(settings: Settings, clock: Clock) -> Recorder:
    """Return the recorder of a node; ``apply`` starts it."""
    directory: Any = settings.recording.directory
    return Recorder(directory or settings.data / _DIRECTORY, clock.wall_ms, clock.monotonic_s)


def recording_rules(settings: Settings) -> RecordingRules:
    """Return the rules of recordings."""
    recording = settings.recording
    return RecordingRules(
        recording.enabled,
        frozenset(recording.listeners),
        recording.bodies == "masked",
        recording.max_size,
        recording.max_connections,
    )
