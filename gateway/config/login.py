"""Settings of logins: password hashing and the throttling of failed attempts."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.kinds import Live
from gateway.config.section import Section


class LoginSettings(Section):
    """Logins over every protocol and over HTTP."""

    password_hashing: Live[Literal["argon2id", "rabbit_password_hashing_sha256", "rabbit_password_hashing_sha512"]] = (
        "argon2id"
    )
    """Hash algorithm for passwords set on this broker. RabbitMQ cannot import users hashed with ``argon2id``."""

    hashing_threads: Annotated[int, Field(ge=1, le=64)] = 2
    """Number of threads that hash passwords; each takes 19 MiB while it does."""

    max_waiting_hashes: Annotated[int, Field(ge=1, le=100_000)] = 200
    """Maximum number of passwords waiting for a hashing thread; further logins are refused."""

    remember_passwords_s: Annotated[int, Field(ge=0, le=86_400)] = 300
    """Time for which a correct password is not hashed again, in seconds. A changed password takes effect at once."""

    max_delay_ms: Live[Annotated[int, Field(ge=0, le=60_000)]] = 5000
    """Maximum delay of a login after earlier failures, in milliseconds; 0 disables delays."""

    free_attempts: Live[Annotated[int, Field(ge=1, le=1_000_000)]] = 5
    """Failed logins of one user from one address before further ones are delayed."""

    free_attempts_per_address: Live[Annotated[int, Field(ge=1, le=1_000_000)]] = 50
    """Failed logins from one address before users who never logged in from there are delayed."""

    free_attempts_per_user: Live[Annotated[int, Field(ge=1, le=1_000_000)]] = 100
    """Failed logins of one user in total before an address new to that user has only one free attempt."""

    forget_failures_after_s: Live[Annotated[int, Field(ge=1, le=86_400)]] = 300
    """Time after the last attempt until failures are forgotten, in seconds."""

    max_waiting: Live[Annotated[int, Field(ge=0, le=100_000)]] = 1000
    """Maximum number of delayed logins; further ones are refused at once."""

    trust_loopback: bool = True
    """Whether clients with an address of this machine are local. Set it to false behind a proxy on the same machine."""
