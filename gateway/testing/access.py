"""The contracts of ``gateway.api.Authenticator`` and ``gateway.api.Authorizer`` as checks. No broker runs."""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from time import perf_counter
from typing import Final

from gateway.access import Authenticator, Authorizer, CertificateSubject, Credentials, Permissions, Principal

#: The longest time of a call that does not wait for another process, on a busy machine, in seconds.
MOST_S: Final = 1.0

#: User names and passwords that clients may send.
TEXTS: Final = ("", "guest", "unknown", "Ä\u0000\n", "*)(uid=*", "a" * 1000, "${x}")

#: Credentials of each mechanism.
CREDENTIALS: Final = (
    *(
        Credentials(mechanism, username, password, peer_host=peer)
        for mechanism, username, password, peer in product(("PLAIN", "AMQPLAIN"), TEXTS, TEXTS[:4], ("", "::1"))
    ),
    Credentials("EXTERNAL"),
    Credentials("EXTERNAL", certificate=CertificateSubject("stranger", "CN=stranger")),
    *(Credentials("USER-NAME", text) for text in TEXTS),
    *(Credentials("BEARER", password=text) for text in TEXTS),
    *(Credentials("CLIENT-ID", client_id=text) for text in TEXTS),
    Credentials("UNKNOWN", "guest", "guest"),
)


def check_authenticator(
    authenticator: Authenticator,
    accepted: Sequence[Credentials] = (),
    refused: Iterable[Credentials] = (),
    wait: Callable[[], None] = lambda: None,
) -> None:
    """Check an authenticator.

    :param accepted: credentials that it must accept.
    :param refused: credentials that it must refuse, besides passwords of the accepted ones that are changed here.
    :param wait: runs what the authenticator waits for; called after each login that is not answered at once.
    :raises AssertionError: with a sentence that names the broken promise.
    """
    for credentials in accepted:
        principal = _answer(authenticator, credentials, wait)
        if principal is None:
            raise AssertionError(f"The authenticator refused {credentials!r}.")
        if credentials.password:
            changed = Credentials(credentials.mechanism, credentials.username, credentials.password + "x")
            _require_refused(authenticator, changed, wait)
    for credentials in refused:
        _require_refused(authenticator, credentials, wait)
    for credentials in CREDENTIALS:
        _answer(authenticator, credentials, wait)


def check_authorizer(authorizer: Authorizer, known: Iterable[Principal] = (), vhost: str = "/") -> None:
    """Check an authorizer.

    :param known: principals that must get permissions in the virtual host ``vhost``.
    :raises AssertionError: with a sentence that names the broken promise.
    """
    for principal in known:
        if _permissions(authorizer, principal, vhost) is None:
            raise AssertionError(f"The authorizer returned no permissions for {principal!r} in {vhost!r}.")
    for name, place in product(TEXTS, (vhost, "", "absent")):
        _permissions(authorizer, Principal(name), place)


def _require_refused(authenticator: Authenticator, credentials: Credentials, wait: Callable[[], None]) -> None:
    if (principal := _answer(authenticator, credentials, wait)) is not None:
        raise AssertionError(f"The authenticator accepted {credentials!r} as {principal.name!r}.")


def _answer(authenticator: Authenticator, credentials: Credentials, wait: Callable[[], None]) -> Principal | None:
    """Return the answer to a login, which comes exactly once."""
    answers: list[object] = []
    starts_s = perf_counter()
    try:
        authenticator.authenticate(credentials, answers.append)
    except Exception as error:  # foreign code: any exception is a finding
        raise AssertionError(f"authenticate() raised {error!r} for {credentials!r}.") from error
    _require_fast("authenticate()", perf_counter() - starts_s)
    if not answers:
        wait()
    if len(answers) != 1:
        raise AssertionError(f"authenticate() called answer {len(answers)} times for {credentials!r}, not once.")
    answer = answers[0]
    if answer is not None and not isinstance(answer, Principal):
        raise AssertionError(f"authenticate() answered {answer!r}, which is neither a Principal nor None.")
    return answer


def _permissions(authorizer: Authorizer, principal: Principal, vhost: str) -> Permissions | None:
    starts_s = perf_counter()
    try:
        permissions = authorizer.permissions(principal, vhost)
    except Exception as error:  # foreign code: any exception is a finding
        raise AssertionError(f"permissions() raised {error!r} for {principal!r} in {vhost!r}.") from error
    _require_fast("permissions()", perf_counter() - starts_s)
    if permissions is not None and not isinstance(permissions, Permissions):
        raise AssertionError(f"permissions() returned {permissions!r}, which is neither Permissions nor None.")
    return permissions


def _require_fast(method: str, seconds: float) -> None:
    """Require that a call did not block."""
    if seconds > MOST_S:
        raise AssertionError(f"{method} took {seconds * 1e3:.0f} ms; it must not block.")
