"""Several nodes as one broker: ports for metadata, fenced logs and a bus, and what stands on them.

The leader writes a log by ``replication``; ``leadership`` elects it. No node uses the bus yet:
``docs/adr/0025-several-machines-on-jetstream.md``.
"""
