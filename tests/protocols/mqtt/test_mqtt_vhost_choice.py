"""Selection of a client's virtual host in RabbitMQ's order of precedence."""

import pytest

from gateway.access import CertificateSubject
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.messages.message import Value
from gateway_mqtt.handshake.vhost_choice import ConnectionSource, VhostChoice, choose_vhost

SUBJECT = CertificateSubject("robot", "CN=robot,O=Example")
PORT = ("mqtt_port_to_vhost_mapping", {"1883": "by-port"})
NAME = ("mqtt_default_vhosts", {"CN=robot,O=Example": "by-name", "robot": "by-common-name"})
COMMON = ("mqtt_default_vhosts", {"robot": "by-common-name"})


def place(
    username: str | None, certificate: CertificateSubject | None, *mappings: tuple[str, Value], **how: bool
) -> VhostChoice:
    records = [ParameterRecord("", "", name, value) for name, value in mappings]
    arrival = ConnectionSource("192.0.2.7", 1883, certificate)
    return choose_vhost(username, arrival, {record.key: record for record in records}, "by-setting", **how)


PLACES = [
    # user name      certificate  mappings        virtual host      user name left
    (None,           None,        [],             "by-setting",     None),
    ("anna",         None,        [],             "by-setting",     "anna"),
    ("shop:anna",    None,        [],             "shop",           "anna"),
    ("a:b:anna",     None,        [],             "a:b",            "anna"),
    (":anna",        None,        [],             "",               "anna"),
    ("shop:",        None,        [],             "shop",           ""),
    ("anna",         None,        [PORT],         "by-port",        "anna"),
    (None,           None,        [PORT],         "by-port",        None),
    ("shop:anna",    None,        [PORT],         "shop",           "anna"),
    ("anna",         None,        [NAME],         "by-setting",     "anna"),
    (None,           SUBJECT,     [],             "by-setting",     None),
    ("shop:anna",    SUBJECT,     [],             "shop",           "anna"),
    ("shop:anna",    SUBJECT,     [PORT],         "by-port",        "shop:anna"),
    ("shop:anna",    SUBJECT,     [PORT, NAME],   "by-name",        "shop:anna"),
    (None,           SUBJECT,     [PORT, COMMON], "by-common-name", None),
]  # fmt: skip


@pytest.mark.parametrize(("username", "certificate", "mappings", "vhost", "left"), PLACES)
def test_the_order_of_precedence_of_virtual_hosts(
    username: str | None,
    certificate: CertificateSubject | None,
    mappings: list[tuple[str, Value]],
    vhost: str,
    left: str | None,
) -> None:
    assert place(username, certificate, *mappings) == VhostChoice(vhost, left)


def test_user_names_may_contain_colons_with_a_setting() -> None:
    assert place("shop:anna", None, PORT, ignores_colons=True) == VhostChoice("by-port", "shop:anna")
    assert place("shop:anna", SUBJECT, ignores_colons=True) == VhostChoice("by-setting", "shop:anna")


NO_MAPPINGS: list[Value] = [None, 1, "x", ["1883"], {"1884": "other"}, {"1883": 5}, {}]


@pytest.mark.parametrize("value", NO_MAPPINGS, ids=repr)
def test_an_invalid_mapping_is_ignored(value: Value) -> None:
    assert place("anna", None, ("mqtt_port_to_vhost_mapping", value)) == VhostChoice("by-setting", "anna")
