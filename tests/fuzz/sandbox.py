"""The virtual host and the user of mutated sessions, which the fuzzer recreates regularly."""

from typing import Final

VHOST: Final = "fuzz"
USER: Final = "fuzz"
PASSWORD: Final = "fuzz-pass"
