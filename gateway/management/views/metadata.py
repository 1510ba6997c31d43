"""JSON view of a virtual host's metadata, for the API and definitions."""

from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.routes import Fields


def metadata_view(vhost: VirtualHost) -> Fields:
    """Return the metadata of a virtual host, with the effective default queue type."""
    record = vhost.record
    return {
        "description": record.description,
        "tags": list(record.tags),
        "default_queue_type": vhost.queues.default_type,
        "protected_from_deletion": record.is_protected,
    }
