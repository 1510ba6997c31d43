"""headers: routes to every binding whose arguments match the message's headers; the routing key is ignored.

A binding argument with a value requires that value, one without a value requires the header. ``x-match`` requires
``all`` of them (default) or ``any``. Other arguments with the prefix ``x-`` are ignored, unless ``x-match`` is
``all-with-x`` or ``any-with-x``. A binding without requirements matches every message with ``all`` and none with
``any``.
"""

from gateway.api import ExchangeTypes, hookimpl
from gateway_exchanges.headers_index import Headers


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``headers``."""
    return {"headers": Headers}
