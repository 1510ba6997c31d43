"""What a plugin's or a storage engine's own tests may use."""

from gateway.testing.exchange_type import StandIn, check_exchange_type, plain_message, stand_in_binding
from gateway.testing.store import StorePlace, check_store

__all__ = ["StandIn", "StorePlace", "check_exchange_type", "check_store", "plain_message", "stand_in_binding"]
