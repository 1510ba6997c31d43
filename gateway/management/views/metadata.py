"""What an operator says of a virtual host, as the API and definitions show it."""

from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.routes import Fields


def metadata_view(vhost: VirtualHost) -> Fields:
    """Return the metadata of a virtual host, with the type of queues that is in effect."""
    record = vhost.record
    return {
        "description": record.description,
        "tags": list(record.tags),
        "default_queue_type": vhost.queues.default_type,
        "protected_from_deletion": record.is_protected,
    }
