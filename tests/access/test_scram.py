"""SCRAM-SHA-256 clause by clause, with the messages of RFC 7677 and with a client of the tests."""

import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access import Answer, Challenge, Dialogue, Failure, Principal, Success, Visitor
from gateway.access.passwords import DEFAULT_ALGORITHM, hash_password
from gateway.access.scram import scram_credential
from gateway.kernel.broker.directory import Directory
from gateway.kernel.journal.records.access import UserRecord
from gateway.patterns import compile_pattern
from gateway_auth.scram import NAME, Scram, gateway_authentication_methods

LOCAL = Visitor("/", "sensor-1", "127.0.0.1")
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SECRET = b"\x01" * 32

# RFC 7677, 3
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


@pytest.fixture
def directory() -> Directory:
    directory = Directory(lambda change: None, compile_pattern)
    directory.put_secret("scram", SECRET)
    for name in ("user", "a,b=c", "=2C"):
        credential = str(scram_credential("pencil", SALT))
        directory.put_user(UserRecord(name, hash_password("pencil"), DEFAULT_ALGORITHM, ["tag"], {}, credential))
    directory.put_user(UserRecord("imported", hash_password("pencil"), DEFAULT_ALGORITHM, [], {}))
    return directory


@pytest.fixture
def scram(directory: Directory) -> Scram:
    return Scram(directory, lambda: SERVER_NONCE)


def step(dialogue: Dialogue, data: bytes) -> Answer:
    answers: list[Answer] = []
    dialogue.step(data, answers.append)
    (only,) = answers
    return only


def challenge_of(dialogue: Dialogue, first: bytes) -> bytes:
    answer = step(dialogue, first)
    assert isinstance(answer, Challenge), answer
    return answer.data


def final_of(first: bytes, challenge: bytes, password: str = "pencil", extensions: bytes = b"") -> bytes:
    """Return the final message of a client that knows the password (RFC 5802, 3)."""
    fields = dict(part.split(b"=", 1) for part in challenge.split(b","))
    header, bare = first[: first.index(b"n=")], first[first.index(b"n=") :]
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b64decode(fields[b"s"]), int(fields[b"i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    unproven = b"c=" + b64encode(header) + b",r=" + fields[b"r"] + extensions
    signature = hmac.digest(hashlib.sha256(key).digest(), b",".join((bare, challenge, unproven)), "sha256")
    proof = bytes(ours ^ theirs for ours, theirs in zip(key, signature, strict=True))
    return unproven + b",p=" + b64encode(proof)


def test_the_messages_of_rfc_7677(scram: Scram) -> None:
    dialogue = scram.begin(LOCAL)
    assert step(dialogue, FIRST) == Challenge(CHALLENGE)
    assert step(dialogue, FINAL) == Success(Principal("user", frozenset({"tag"})), SIGNATURE)
    assert final_of(FIRST, CHALLENGE) == FINAL


def test_empty_initial_data_is_answered_with_an_empty_challenge(scram: Scram) -> None:
    dialogue = scram.begin(LOCAL)
    assert step(dialogue, b"") == Challenge(b"")
    assert step(dialogue, FIRST) == Challenge(CHALLENGE)


def test_empty_data_after_an_empty_challenge_is_refused(scram: Scram) -> None:
    dialogue = scram.begin(LOCAL)
    step(dialogue, b"")
    assert isinstance(step(dialogue, b""), Failure)


def test_the_method_is_offered_with_its_name_and_a_new_nonce_per_exchange(directory: Directory) -> None:
    offered = gateway_authentication_methods(directory)
    assert list(offered) == [NAME] == ["SCRAM-SHA-256"]
    one, two = (challenge_of(offered[NAME].begin(LOCAL), FIRST) for _ in range(2))
    assert one != two
    assert one.startswith(b"r=rOprNGfwEbeRWgbNEkqO")
    assert len(one) > len("r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096") + 20


#: Valid first messages and their users.
ACCEPTED = [
    pytest.param(b"n,,n=user,r=x", "user", id="5.1: no channel binding"),
    pytest.param(b"y,,n=user,r=x", "user", id="5.1: channel binding supported by the client only"),
    pytest.param(b"n,a=user,n=user,r=x", "user", id="5.1: the authorization identity of the user"),
    pytest.param(b"n,,n=a=2Cb=3Dc,r=x", "a,b=c", id="5.1: escapes in the name"),
    pytest.param(b"n,,n==3D2C,r=x", "=2C", id="5.1: escapes are decoded once"),
    pytest.param(b"n,,n=user,r=!+-~,x=unknown", "user", id="5.1: extensions are ignored"),
]


@pytest.mark.parametrize(("first", "name"), ACCEPTED)
def test_these_first_messages_are_accepted(scram: Scram, first: bytes, name: str) -> None:
    dialogue = scram.begin(LOCAL)
    answer = step(dialogue, final_of(first, challenge_of(dialogue, first), extensions=b",z=1"))
    assert isinstance(answer, Success)
    assert answer.principal.name == name


UNFIT = "e=other-error"
REFUSED_AT_FIRST = [
    pytest.param(b"p=tls-unique,,n=user,r=x", "e=channel-binding-not-supported", id="5.1: required channel binding"),
    pytest.param(b"n,a=other,n=user,r=x", UNFIT, id="5.1: the authorization identity of another user"),
    pytest.param(b"n,,m=x,n=user,r=x", UNFIT, id="5.1: a mandatory extension"),
    pytest.param(b"n,,n=user=2c,r=x", "e=invalid-username-encoding", id="5.1: an escape in lower case"),
    pytest.param(b"n,,n=us=er,r=x", "e=invalid-username-encoding", id="5.1: a bare equals sign"),
    pytest.param(b"n,,n=,r=x", UNFIT, id="5.1: no name"),
    pytest.param(b"n,,n=user,r=", UNFIT, id="5.1: no nonce"),
    pytest.param(b"n,,n=user,r=a b", UNFIT, id="7: a space in the nonce"),
    pytest.param("n,,n=user,r=ä".encode(), UNFIT, id="7: a nonce beyond ASCII"),
    pytest.param(b"n,,n=us\0er,r=x", UNFIT, id="7: NUL in the name"),
    pytest.param(b"n,,n=\xff,r=x", "e=invalid-encoding", id="7: not UTF-8"),
    pytest.param(b"n,,r=x,n=user", UNFIT, id="7: another order"),
    pytest.param(b"x,,n=user,r=x", UNFIT, id="7: another flag"),
    pytest.param(b"n=user,r=x", UNFIT, id="7: no header"),
]


@pytest.mark.parametrize(("first", "error"), REFUSED_AT_FIRST)
def test_these_first_messages_are_refused(scram: Scram, first: bytes, error: str) -> None:
    answer = step(scram.begin(LOCAL), first)
    assert isinstance(answer, Failure)
    assert answer.data == error.encode()


REFUSED_AT_LAST = [
    pytest.param(b"biws", b"eSws", "e=channel-bindings-dont-match", id="7: another header than at first"),
    pytest.param(b"biws", b"biw", "e=invalid-encoding", id="7: a header that is not base64"),
    pytest.param(b"hNlF$k0", b"hNlF$k1", UNFIT, id="5.1: another nonce"),
    pytest.param(b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b"", UNFIT, id="5.1: the client's nonce only"),
    pytest.param(b"p=dHzb", b"p=eHzb", "e=invalid-proof", id="3: a wrong proof"),
    pytest.param(b"p=dHzb", b"p=", "e=invalid-proof", id="3: a short proof"),
    pytest.param(b"p=dHzb", b"p=Hzb", "e=invalid-encoding", id="7: a proof that is not base64"),
    pytest.param(b",p=", b",x=1,m=2,p=", "e=invalid-proof", id="3: the proof covers all messages"),
    pytest.param(b",p=", b",q=", UNFIT, id="7: no proof"),
    pytest.param(FINAL, b"", UNFIT, id="7: nothing"),
]


@pytest.mark.parametrize(("part", "instead", "error"), REFUSED_AT_LAST)
def test_these_final_messages_are_refused(scram: Scram, part: bytes, instead: bytes, error: str) -> None:
    dialogue = scram.begin(LOCAL)
    step(dialogue, FIRST)
    assert part in FINAL
    answer = step(dialogue, FINAL.replace(part, instead))
    assert isinstance(answer, Failure)
    assert answer.data == error.encode()


def test_a_wrong_password_is_refused(scram: Scram) -> None:
    dialogue = scram.begin(LOCAL)
    answer = step(dialogue, final_of(FIRST, challenge_of(dialogue, FIRST), "crayon"))
    assert answer == Failure("wrong password of user 'user'", b"e=invalid-proof", "user")


NOT_AT_ALL = [
    (b"unknown", "no such user"),
    (b"imported", "user 'imported' has only a password hash; set the password again to use SCRAM-SHA-256"),
]


@pytest.mark.parametrize(("name", "reason"), NOT_AT_ALL)
def test_a_user_without_credential_is_refused_like_a_wrong_password(
    scram: Scram, directory: Directory, name: bytes, reason: str
) -> None:
    first = b"n,,n=" + name + b",r=rOprNGfwEbeRWgbNEkqO"
    dialogue = scram.begin(LOCAL)
    challenge = challenge_of(dialogue, first)
    assert len(challenge) == len(CHALLENGE)
    assert challenge_of(scram.begin(LOCAL), first) == challenge  # the salt is constant like a real one,
    assert challenge_of(Scram(directory, lambda: SERVER_NONCE).begin(LOCAL), first) == challenge  # also after a restart
    assert challenge_of(scram.begin(LOCAL), first.replace(name, b"x")) != challenge
    assert step(dialogue, final_of(first, challenge)) == Failure(reason, b"e=invalid-proof", name.decode())


def test_salts_of_unknown_users_are_not_predictable() -> None:
    """A directory without a stored secret uses a random one per process."""
    one, two = (Scram(Directory(lambda change: None, compile_pattern), lambda: SERVER_NONCE) for _ in range(2))
    assert challenge_of(one.begin(LOCAL), FIRST) != challenge_of(two.begin(LOCAL), FIRST)
    assert challenge_of(one.begin(LOCAL), FIRST) == challenge_of(one.begin(LOCAL), FIRST)


def test_a_user_deleted_meanwhile_is_refused(scram: Scram, directory: Directory) -> None:
    dialogue = scram.begin(LOCAL)
    step(dialogue, FIRST)
    directory.remove_user("user")
    assert isinstance(step(dialogue, FINAL), Failure)


LIKELY = st.text("nyp,=arsmcx23CD!~\0 \u00e4", max_size=30).map(str.encode) | st.binary(max_size=40)


@given(first=LIKELY, header=st.sampled_from([b"", b"n,,n=user,r=", b"n,,", b"y,a="]), final=LIKELY)
def test_arbitrary_messages_do_not_authenticate(first: bytes, header: bytes, final: bytes) -> None:
    directory = Directory(lambda change: None, compile_pattern)
    directory.put_user(UserRecord("user", "", DEFAULT_ALGORITHM, [], {}, str(scram_credential("pencil", SALT))))
    dialogue = Scram(directory, lambda: SERVER_NONCE).begin(LOCAL)
    answer: Answer = Challenge()
    for data in (header + first, final, b"c=biws," + final):
        if isinstance(answer, Challenge):
            answer = step(dialogue, data)
            assert not isinstance(answer, Success)
