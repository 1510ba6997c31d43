"""The ports of several nodes: metadata, a fenced log for each queue, and a bus between nodes.

Nothing in the broker uses this package yet: ``docs/adr/0025-several-machines-on-jetstream.md``.
"""
