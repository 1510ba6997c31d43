"""Durability tests: kills, clean stops, full disks and damaged stores."""

from tests.broker.conftest import connect, gateway

__all__ = ["connect", "gateway"]
