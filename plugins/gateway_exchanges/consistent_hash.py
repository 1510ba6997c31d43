"""x-consistent-hash: distributes messages over the bound destinations by weight and by a hash of a value."""

from gateway.api import ExchangeTypes, hookimpl
from gateway_exchanges.hash_distribution import ConsistentHash


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``x-consistent-hash``."""
    return {"x-consistent-hash": ConsistentHash}
