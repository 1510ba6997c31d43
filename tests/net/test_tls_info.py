"""Cipher suites by OpenSSL's names, and their parts in RabbitMQ's terms."""

import pytest

from gateway.net.tls_info import cipher_parts, tls_info

SUITES = [
    ("TLS_AES_256_GCM_SHA384", ("any", "aes_256_gcm", "aead")),
    ("TLS_AES_128_CCM_8_SHA256", ("any", "aes_128_ccm_8", "aead")),
    ("TLS_CHACHA20_POLY1305_SHA256", ("any", "chacha20_poly1305", "aead")),
    ("ECDHE-RSA-AES256-GCM-SHA384", ("ecdhe_rsa", "aes_256_gcm", "aead")),
    ("ECDHE-ECDSA-AES128-CCM8", ("ecdhe_ecdsa", "aes_128_ccm_8", "aead")),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", ("ecdhe_ecdsa", "chacha20_poly1305", "aead")),
    ("DHE-RSA-AES256-SHA256", ("dhe_rsa", "aes_256_cbc", "sha256")),
    ("AES128-SHA", ("rsa", "aes_128_cbc", "sha")),
]


@pytest.mark.parametrize(("name", "parts"), SUITES)
def test_a_suite_has_three_parts(name: str, parts: tuple[str, str, str]) -> None:
    assert cipher_parts(name) == parts


def test_a_transport_without_tls_has_no_tls_info() -> None:
    assert tls_info(object()) is None
