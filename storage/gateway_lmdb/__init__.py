"""The durable store: LMDB, with a writer thread that commits."""

from gateway_lmdb.store import LmdbStore

__all__ = ["LmdbStore"]
