"""MurmurHash3, 32 bits (by Austin Appleby, public domain): the hash by which stream clients choose a partition."""

from typing import Final

_MASK: Final = 0xFFFFFFFF


def murmur3(data: bytes, seed: int) -> int:
    """Return the hash as a number from 0 to 2**32 - 1."""
    size = len(data)
    whole = size - size % 4
    hash = seed
    for start in range(0, whole, 4):
        hash ^= _scrambled(int.from_bytes(data[start : start + 4], "little"))
        hash = (_rotated(hash, 13) * 5 + 0xE6546B64) & _MASK
    hash ^= _scrambled(int.from_bytes(data[whole:], "little")) ^ size
    return _finished(hash)


def _scrambled(block: int) -> int:
    return _rotated(block * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & _MASK


def _finished(hash: int) -> int:
    """Apply the final mix, after which each input bit affects all output bits."""
    hash = (hash ^ hash >> 16) * 0x85EBCA6B & _MASK
    hash = (hash ^ hash >> 13) * 0xC2B2AE35 & _MASK
    return hash ^ hash >> 16
