"""Resources of virtual hosts: exchanges, queues, streams, policies, definitions."""
