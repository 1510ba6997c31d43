"""NATS JetStream as an engine for several machines: a client, and the ports of ``gateway.cluster`` on it.

Nothing in the broker uses this package yet: ``docs/adr/0025-several-machines-on-jetstream.md``.
"""
