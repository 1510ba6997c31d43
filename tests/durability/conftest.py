"""What happens to data when the broker dies, stops, or cannot write."""

from tests.broker.conftest import connect, gateway

__all__ = ["connect", "gateway"]
