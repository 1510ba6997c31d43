"""The contracts of ``gateway.api``'s ``Authenticator``, ``Authorizer``, ``AuthenticationMethod`` and ``AccessWrapper``
as checks. No broker runs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from time import perf_counter
from typing import Final, TypeAlias, TypeVar

from gateway.access import (
    AccessWrapper,
    AuthenticationMethod,
    Authenticator,
    Authorizer,
    CertificateSubject,
    Challenge,
    Credentials,
    Dialogue,
    Failure,
    Operation,
    Permissions,
    PermissionUnknown,
    Principal,
    Success,
    Visitor,
)
from gateway.testing.call_timer import CallTimer

Wait: TypeAlias = Callable[[], None]
"""Goes on with what an answer waits for; called again and again until the answer is there."""

T = TypeVar("T")

#: The longest time of a call that does not wait for another process, without waits for a processor, in seconds.
MOST_S: Final = 1.0

#: The longest time until an answer that is waited for, in seconds. A busy machine may take some; only failures wait for
#: all of it.
MOST_WAIT_S: Final = 120.0

#: The most steps of a dialogue.
MOST_STEPS: Final = 10

#: User names and passwords that clients may send.
TEXTS: Final = ("", "guest", "unknown", "Ä\u0000\n", "*)(uid=*", "a" * 1000, "${x}")

#: Names of resources, and routing keys, that clients may send.
NAMES: Final = ("", "q", "Ä\u0000\n*)(", "a.b.c" * 50)

#: Data that clients may send in a dialogue.
DATA: Final = (
    b"",
    b"\x00",
    b"n,,n=guest,r=nonce",
    b"n,,\x01auth=Bearer x\x01\x01",
    b"c=biws,r=x,p=x",
    b"\xff" * 10_000,
)

#: Credentials of each mechanism.
CREDENTIALS: Final = (
    *(
        Credentials(mechanism, username, password, peer_host=peer)
        for mechanism, peer in (("PLAIN", ""), ("AMQPLAIN", "::1"))
        for username, password in (*((text, "guest") for text in TEXTS), *(("guest", text) for text in TEXTS))
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
    wait: Wait | None = None,
) -> None:
    """Check an authenticator.

    :param accepted: credentials that it must accept.
    :param refused: credentials that it must refuse, besides passwords of the accepted ones that are changed here.
    :param wait: goes on with what the authenticator waits for, such as ``lambda: reactor.iterate(0.01)``; called until
        each login that is not answered at once has its answer. Without it, all must be answered at once.
    :raises AssertionError: with a sentence that names the broken promise.
    """
    for credentials in accepted:
        principal = _login(authenticator, credentials, wait)
        if principal is None:
            raise AssertionError(f"The authenticator refused {credentials!r}.")
        if credentials.password:
            changed = replace(credentials, password=credentials.password + "x")
            _require_refused(authenticator, changed, wait)
    for credentials in refused:
        _require_refused(authenticator, credentials, wait)
    for credentials in CREDENTIALS:
        _login(authenticator, credentials, wait)


def check_authorizer(
    authorizer: Authorizer, known: Iterable[Principal] = (), vhost: str = "/", wait: Wait | None = None
) -> None:
    """Check an authorizer, and the permissions that it returns.

    :param known: principals that must get permissions in the virtual host ``vhost``.
    :param wait: goes on with what the authorizer waits for while it raises ``PermissionUnknown``; called until that is
        known. Without it, it must not raise this.
    :raises AssertionError: with a sentence that names the broken promise.
    """
    for principal in known:
        permissions = _permissions(authorizer, principal, vhost, wait)
        if permissions is None:
            raise AssertionError(f"The authorizer returned no permissions for {principal!r} in {vhost!r}.")
        _check_permissions(permissions, wait)
    for name, place in product(TEXTS, (vhost, "", "absent")):
        strange = _permissions(authorizer, Principal(name), place, wait)
        if strange is not None and name in TEXTS[:2]:
            _check_permissions(strange, wait)


def check_authentication_method(
    method: AuthenticationMethod,
    accepted: Iterable[Sequence[bytes]] = (),
    wait: Wait | None = None,
) -> None:
    """Check an authentication method with unusual data.

    :param accepted: dialogues that must end with ``Success``: the data of each step.
    :param wait: goes on with what the method waits for, as with ``check_authenticator``.
    :raises AssertionError: with a sentence that names the broken promise.
    """
    for steps in accepted:
        dialogue = method.begin(Visitor("/"))
        answers = [_step(dialogue, data, wait) for data in steps]
        if not answers or not isinstance(answers[-1], Success):
            raise AssertionError(f"The dialogue {list(steps)!r} ended with {answers[-1:]}, not with Success.")
    visitors = (Visitor("/"), Visitor("absent", "Ä\u0000\n", "::1", CertificateSubject("stranger", "CN=stranger")))
    for visitor, first, later in product(visitors, DATA, DATA):
        dialogue = method.begin(visitor)
        answer = _step(dialogue, first, wait)
        for _ in range(MOST_STEPS):
            if not isinstance(answer, Challenge):
                break
            answer = _step(dialogue, later, wait)
        else:
            raise AssertionError(f"A dialogue with {later!r} as each answer has no end after {MOST_STEPS} steps.")


def check_access_wrapper(wrapper: AccessWrapper, plugin: str) -> None:
    """Check that the replacements of a wrapper keep the contracts of what they replace, before and after ``forget``.

    :param plugin: the name of a plugin whose objects it replaces.
    :raises AssertionError: with a sentence that names the broken promise.
    """
    logins = wrapper.authenticator(plugin, _OneUser())
    rights = wrapper.authorizer(plugin, _OneUser())
    for _ in range(2):
        check_authenticator(logins, [Credentials("PLAIN", "anna", "right")], [Credentials("PLAIN", "bert", "right")])
        check_authorizer(rights, [Principal("anna")])
        if rights.permissions(Principal("bert"), "/") is not None:
            raise AssertionError("The wrapper gives permissions to a user whom the wrapped authorizer gives none.")
        for part, name in product((logins, rights), ("forget", "permissions_changed")):
            getattr(part, name, lambda: None)()


class _OneUser:
    """Stands in for a wrapped authenticator and authorizer: it knows one user."""

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        is_right = (credentials.mechanism, credentials.username, credentials.password) == ("PLAIN", "anna", "right")
        answer(Principal("anna") if is_right else None)

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        return Permissions(principal.name, vhost, "", ".*", ".*") if principal.name == "anna" else None


def _require_refused(authenticator: Authenticator, credentials: Credentials, wait: Wait | None) -> None:
    if (principal := _login(authenticator, credentials, wait)) is not None:
        raise AssertionError(f"The authenticator accepted {credentials!r} as {principal.name!r}.")


def _login(authenticator: Authenticator, credentials: Credentials, wait: Wait | None) -> Principal | None:
    """Return the answer to a login."""
    answer = _answer(
        "authenticate()", lambda reply: authenticator.authenticate(credentials, reply), repr(credentials), wait
    )
    if answer is not None and not isinstance(answer, Principal):
        raise AssertionError(f"authenticate() answered {answer!r}, which is neither a Principal nor None.")
    return answer


def _step(dialogue: Dialogue, data: bytes, wait: Wait | None) -> Challenge | Success | Failure:
    """Return the answer to a step of a dialogue."""
    answer = _answer("step()", lambda reply: dialogue.step(data, reply), repr(data[:50]), wait)
    if not isinstance(answer, Challenge | Success | Failure):
        raise AssertionError(f"step() answered {answer!r}, which is no Challenge, Success or Failure.")
    return answer


def _answer(method: str, call: Callable[[Callable[[object], None]], object], what: str, wait: Wait | None) -> object:
    """Return the answer of a call that takes a callback, which is called exactly once."""
    answers: list[object] = []
    timer = CallTimer()
    try:
        call(answers.append)
    except Exception as error:  # foreign code: any exception is a finding
        raise AssertionError(f"{method} raised {error!r} for {what}.") from error
    _require_fast(method, timer.seconds)
    _wait_until(lambda: bool(answers), wait)
    if len(answers) != 1:
        raise AssertionError(f"{method} called answer {len(answers)} times for {what}, not once.")
    return answers[0]


def _permissions(authorizer: Authorizer, principal: Principal, vhost: str, wait: Wait | None) -> Permissions | None:
    what = f"permissions() for {principal!r} in {vhost!r}"
    permissions = _decided(what, lambda: authorizer.permissions(principal, vhost), wait)
    if permissions is not None and not isinstance(permissions, Permissions):
        raise AssertionError(f"permissions() returned {permissions!r}, which is neither Permissions nor None.")
    return permissions


def _check_permissions(permissions: Permissions, wait: Wait | None) -> None:
    """Check that permissions decide about every resource and topic, always in the same way."""
    may_wait = wait if permissions.asks_elsewhere else None
    for operation, name in product(Operation, NAMES):
        for kind in ("exchange", "queue"):
            _verdict(f"may({operation.name}, {name!r}, {kind!r})", permissions.may, (operation, name, kind), may_wait)
        if operation is Operation.CONFIGURE:
            continue
        topic = (operation, "amq.topic", name, {"client_id": name})
        _verdict(f"may_use_topic{topic}", permissions.may_use_topic, topic, may_wait)
    for operation in (Operation.WRITE, Operation.READ):
        every = (operation, "amq.topic")
        _verdict(f"may_use_every_topic{every}", permissions.may_use_every_topic, every, may_wait)


def _verdict(what: str, method: Callable[..., object], arguments: tuple[object, ...], wait: Wait | None) -> None:
    verdicts = [_decided(what, lambda: method(*arguments), wait) for _ in range(2)]
    if not isinstance(verdicts[0], bool) or verdicts[0] is not verdicts[1]:
        raise AssertionError(f"{what} returned {verdicts[0]!r} and then {verdicts[1]!r}, not one truth value.")


def _decided(what: str, ask: Callable[[], T], wait: Wait | None) -> T:
    """Return the answer of an authorizer or of permissions; wait for what is not known yet."""
    for _ in range(MOST_STEPS):
        timer = CallTimer()
        try:
            answer = ask()
        except PermissionUnknown as unknown:
            _require_fast(what, timer.seconds)
            if wait is None:
                raise AssertionError(f"{what} raised {unknown!r}, but nothing can be waited for.") from unknown
            known: list[bool] = []
            unknown.when_known(lambda known=known: known.append(True))  # type: ignore[misc]
            _wait_until(lambda known=known: bool(known), wait)  # type: ignore[misc]
            continue
        except Exception as error:  # foreign code: any exception is a finding
            raise AssertionError(f"{what} raised {error!r}.") from error
        _require_fast(what, timer.seconds)
        return answer
    raise AssertionError(f"{what} is still unknown after the answer came {MOST_STEPS} times.")


def _wait_until(is_over: Callable[[], bool], wait: Wait | None) -> None:
    ends_s = perf_counter() + MOST_WAIT_S
    while wait is not None and not is_over() and perf_counter() < ends_s:
        wait()


def _require_fast(method: str, seconds: float) -> None:
    """Require that a call did not block."""
    if seconds > MOST_S:
        raise AssertionError(f"{method} took {seconds * 1e3:.0f} ms; it must not block.")
