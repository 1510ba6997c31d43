"""The defaults that the first start writes into an empty store and that later starts keep."""

from pathlib import Path
from typing import cast

from gateway.access.passwords import verify_password
from gateway.access.scram import ScramCredential, scram_credential
from gateway.kernel.journal.changes import Put
from gateway.kernel.journal.records.access import SecretRecord, UserRecord
from gateway.kernel.journal.records.entity import Entity
from gateway_lmdb import LmdbStore
from tests.running import Gateway


def entity(data: Path, kind: type[Entity]) -> Entity:
    """Return the single entity of a kind in the store of a stopped gateway."""
    store = LmdbStore(data, call_in_kernel=lambda call: None)
    try:
        entities = [change.entity for change in store.recover() if isinstance(change, Put)]
    finally:
        store.close()
    (only,) = (each for each in entities if type(each) is kind)
    return only


def test_the_default_user_can_log_in_with_its_password_and_with_scram(gateway: Gateway) -> None:
    gateway.start("default_pass=secret").stop()
    user = cast(UserRecord, entity(gateway.data, UserRecord))
    credential = ScramCredential.parse(user.scram_sha_256)
    assert user.name == "guest"
    assert verify_password("secret", user.password_hash, user.hashing_algorithm)
    assert scram_credential("secret", credential.salt) == credential


def test_each_store_has_its_own_secret(gateway: Gateway, tmp_path: Path) -> None:
    gateway.start().stop()
    first = cast(SecretRecord, entity(gateway.data, SecretRecord))
    assert (first.name, len(first.value)) == ("scram", 32)
    gateway.start().stop()
    assert entity(gateway.data, SecretRecord) == first
    other = Gateway(tmp_path / "other")
    other.start().stop()
    assert entity(other.data, SecretRecord) != first
