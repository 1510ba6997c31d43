"""Seeded randomness in place of the system's, for the length of a run."""

import os
import random
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

#: The size of a token of the standard library, in bytes.
_TOKEN_SIZE: Final = 32


@contextmanager
def seeded_randomness(seed: int) -> Iterator[None]:
    """Let the tokens, salts and random choices of this process follow from a seed."""
    source = Random(f"{seed} tokens")

    def token_bytes(nbytes: int | None = None) -> bytes:
        return source.randbytes(nbytes or _TOKEN_SIZE)

    def token_hex(nbytes: int | None = None) -> str:
        return source.randbytes(nbytes or _TOKEN_SIZE).hex()

    def token_urlsafe(nbytes: int | None = None) -> str:
        return urlsafe_b64encode(source.randbytes(nbytes or _TOKEN_SIZE)).rstrip(b"=").decode()

    state = random.getstate()
    stock = os.urandom, secrets.token_bytes, secrets.token_hex, secrets.token_urlsafe
    random.seed(seed)
    os.urandom, secrets.token_bytes = source.randbytes, token_bytes
    secrets.token_hex, secrets.token_urlsafe = token_hex, token_urlsafe
    try:
        yield
    finally:
        os.urandom, secrets.token_bytes, secrets.token_hex, secrets.token_urlsafe = stock
        random.setstate(state)
