"""Timestamps in RabbitMQ's format."""

from datetime import UTC, datetime


def timestamp(wall_ms: int) -> str:
    """Format a wall time as ``2026-11-21T00:36:36.868+00:00``."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="milliseconds")
