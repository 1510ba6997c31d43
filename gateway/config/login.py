"""The settings of logging in: how fast passwords may be tried, and how they are kept."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.section import Section


class LoginSettings(Section):
    """Logging in, with every protocol and over HTTP."""

    password_hashing: Literal["argon2id", "rabbit_password_hashing_sha256", "rabbit_password_hashing_sha512"] = (
        "argon2id"
    )
    """How a password is hashed that is set here. RabbitMQ cannot import users whose hash is ``argon2id``."""

    hashing_threads: Annotated[int, Field(ge=1, le=64)] = 2
    """How many threads hash passwords; each takes 19 MiB while it does."""

    max_waiting_hashes: Annotated[int, Field(ge=1, le=100_000)] = 200
    """How many passwords may wait for such a thread; a login beyond them is refused."""

    remember_passwords_s: Annotated[int, Field(ge=0, le=86_400)] = 300
    """How long a right password is not hashed again, in seconds. A change of the password takes effect at once."""

    max_delay_ms: Annotated[int, Field(ge=0, le=60_000)] = 5000
    """The longest a login waits because earlier ones failed, in milliseconds; 0 delays none."""

    free_attempts: Annotated[int, Field(ge=1, le=1_000_000)] = 5
    """How many logins of one user may fail from one address until the next ones are delayed."""

    free_attempts_per_address: Annotated[int, Field(ge=1, le=1_000_000)] = 50
    """How many logins may fail from one address until users who never logged in from there are delayed."""

    free_attempts_per_user: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """How many logins of one user may fail from anywhere until an address new to the user has one free attempt."""

    forget_failures_after_s: Annotated[int, Field(ge=1, le=86_400)] = 300
    """How long after the last attempt failures are forgotten, in seconds."""

    max_waiting: Annotated[int, Field(ge=0, le=100_000)] = 1000
    """How many delayed logins may wait; those beyond them are refused at once."""

    trust_loopback: bool = True
    """Whether clients with an address of this machine are local. Turn it off behind a proxy on the same machine."""
