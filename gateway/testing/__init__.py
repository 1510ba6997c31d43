"""Test support for plugins and storage engines."""

from gateway.testing.broker import MemoryBroker, Received, Recipient, header_of
from gateway.testing.clock import FakeClock
from gateway.testing.exchange_type import StandIn, check_exchange_type, plain_message, stand_in_binding
from gateway.testing.interceptor import check_interceptor
from gateway.testing.store import StorePlace, check_store

__all__ = [
    "FakeClock",
    "MemoryBroker",
    "Received",
    "Recipient",
    "StandIn",
    "StorePlace",
    "check_exchange_type",
    "check_interceptor",
    "check_store",
    "header_of",
    "plain_message",
    "stand_in_binding",
]
