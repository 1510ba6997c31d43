"""Where mutated sessions log in: a virtual host and a user of their own, which the fuzzer empties now and then."""

from typing import Final

VHOST: Final = "fuzz"
USER: Final = "fuzz"
PASSWORD: Final = "fuzz-pass"
