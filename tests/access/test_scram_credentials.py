"""Stored credentials for SCRAM-SHA-256, and their creation."""

from base64 import b64decode

import pytest

from gateway.access.saslprep import saslprep
from gateway.access.scram import ScramCredential, kept_credential, scram_credential
from gateway.kernel.journal.records.access import UserRecord

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")

# Of RFC 7677's example (user "user", password "pencil"); that these keys are right, its messages show in test_scram.py.
PENCIL = (
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
)


def test_a_credential_is_encoded_and_parsed() -> None:
    credential = scram_credential("pencil", SALT)
    assert str(credential) == PENCIL
    assert ScramCredential.parse(PENCIL) == credential


def test_the_salt_of_each_credential_is_random() -> None:
    assert scram_credential("a").salt != scram_credential("a").salt
    assert len(scram_credential("a").salt) == 16


MALFORMED = [
    pytest.param("", "form", id="nothing"),
    pytest.param("SCRAM-SHA-1$4096:AAAA$AAAA:AAAA", "form", id="another mechanism"),
    pytest.param(PENCIL.replace("4096", "4095"), "4095 iterations", id="too few iterations"),
    pytest.param(PENCIL.replace("4096", "1000001"), "1000001 iterations", id="too many iterations"),
    pytest.param(PENCIL.replace("4096", "99999999"), "form", id="too many digits"),
    pytest.param(PENCIL.replace("W22Z", "W2?Z"), "base64", id="a salt that is not base64"),
    pytest.param(PENCIL[:-2], "base64", id="a key that is cut"),
    pytest.param(PENCIL.replace("WG5d", ""), "bytes", id="a short key"),
    pytest.param(PENCIL + "\n", "base64", id="a trailing newline"),
]


@pytest.mark.parametrize(("text", "reason"), MALFORMED)
def test_invalid_credentials_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ScramCredential.parse(text)


# RFC 4013, 3: the examples.
PREPARED = [
    ("I\u00adX", "IX"), ("user", "user"), ("USER", "USER"), ("\u00aa", "a"), ("\u2168", "IX"),
    ("a\u00a0b", "a b"), ("\u0627\u0031\u0628", "\u06271\u0628"), ("", ""),
]  # fmt: skip
PROHIBITED = ["\u0007", "\u0627\u0031", "\u0627a\u0628", "\u0221", "\ue000", "\ufffd"]


@pytest.mark.parametrize(("text", "prepared"), PREPARED)
def test_texts_are_normalized(text: str, prepared: str) -> None:
    assert saslprep(text) == prepared


@pytest.mark.parametrize("text", PROHIBITED, ids=ascii)
def test_prohibited_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"prohibited|mixed"):
        saslprep(text)


def test_passwords_with_equivalent_characters_are_equal() -> None:
    assert scram_credential("\u2168", SALT) == scram_credential("IX", SALT)
    assert scram_credential("\u0007", SALT) != scram_credential("", SALT)


def test_a_very_long_password_is_not_normalized() -> None:
    """Normalizing it would block the broker."""
    assert scram_credential("\u2168" * 1024, SALT) == scram_credential("IX" * 1024, SALT)
    assert scram_credential("\u2168" * 1025, SALT) != scram_credential("IX" * 1025, SALT)


KNOWN = UserRecord("anna", "hash", "sha", [], {}, PENCIL)


def test_a_clear_text_password_creates_a_new_credential() -> None:
    text = kept_credential("pencil", "another hash", KNOWN)
    assert text != PENCIL
    credential = ScramCredential.parse(text)
    assert scram_credential("pencil", credential.salt) == credential


def test_a_credential_is_kept_while_its_password_is_unchanged() -> None:
    assert kept_credential(None, "hash", KNOWN) == PENCIL  # for example, only the tags changed
    assert kept_credential(None, "another hash", KNOWN) == ""
    assert kept_credential("", "", KNOWN) == ""
    assert kept_credential(None, "hash", None) == ""
    assert kept_credential(None, "", UserRecord("anna", "", "sha", [], {}, PENCIL)) == ""


def test_a_user_of_the_first_layout_has_no_credential() -> None:
    """The store may contain users from an earlier version."""
    fields = UserRecord("anna", "hash", "sha", ["a"], {}, PENCIL).to_fields()
    del fields["scram_sha_256"]
    assert UserRecord.from_fields(fields, version=1) == UserRecord("anna", "hash", "sha", ["a"], {}, "")
    assert UserRecord.version == 2
