"""What the first start puts into an empty store, and the second leaves as it is."""

from pathlib import Path
from typing import cast

from gateway.access.passwords import verify_password
from gateway.access.scram import ScramCredential, scram_credential
from gateway.kernel.journal.changes import Put
from gateway.kernel.journal.records import Entity, SecretRecord, UserRecord
from gateway_lmdb import LmdbStore
from tests.running import Gateway


def entity(data: Path, kind: type[Entity]) -> Entity:
    """Return the one entity of a kind in the store of a gateway that is stopped."""
    store = LmdbStore(data, call_in_kernel=lambda call: None)
    try:
        entities = [change.entity for change in store.recover() if isinstance(change, Put)]
    finally:
        store.close()
    (only,) = (each for each in entities if type(each) is kind)
    return only


def test_the_default_user_can_log_in_by_its_password_and_by_scram(gateway: Gateway) -> None:
    gateway.start("default_pass=secret").stop()
    user = cast(UserRecord, entity(gateway.data, UserRecord))
    credential = ScramCredential.parse(user.scram_sha_256)
    assert user.name == "guest"
    assert verify_password("secret", user.password_hash, user.hashing_algorithm)
    assert scram_credential("secret", credential.salt) == credential


def test_a_secret_is_drawn_once_for_each_store(gateway: Gateway, tmp_path: Path) -> None:
    gateway.start().stop()
    first = cast(SecretRecord, entity(gateway.data, SecretRecord))
    assert (first.name, len(first.value)) == ("scram", 32)
    gateway.start().stop()
    assert entity(gateway.data, SecretRecord) == first
    other = Gateway(tmp_path / "other")
    other.start().stop()
    assert entity(other.data, SecretRecord) != first
