"""Settings are read from a file and from --set; each error is reported in one line."""

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from gateway.config import Settings, load
from gateway.config.catalogue import SettingInfo, settings_by_key, tables
from gateway.config.kinds import parse_size, write_size
from gateway.config.live import LIVE
from gateway.config.writing import HIDDEN, effective, markdown, template
from gateway.kernel.errors import ConfigurationError

ROOT = Path(__file__).parents[2]
Write = Callable[[str], Path]

NOT_OF_THE_FORM = 'not of the form SECTION.KEY=VALUE, like amqp.port=5673 or vhosts."/".tracing=true'


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        file = tmp_path / "gateway.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return write


def errors_of(file: Path | None = None, *overrides: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(file, overrides)
    return str(caught.value).split("\n")


# Defaults


def test_defaults_are_those_of_rabbitmq() -> None:
    settings = load()
    assert (settings.amqp.port, settings.amqps.port) == (5672, None)
    assert (settings.amqp.heartbeat_s, settings.amqp.frame_max, settings.amqp.channel_max) == (60, 131072, 2047)
    assert settings.amqp.max_message_size == 16 * 1024 * 1024
    assert settings.amqp.login_timeout_s == 10
    assert (settings.mqtt.port, settings.mqtts.port, settings.web_mqtt.port) == (1883, None, 15675)
    assert (settings.web_mqtt.path, settings.mqtt.exchange, settings.mqtt.prefetch) == ("/ws", "amq.topic", 10)
    assert (settings.mqtt.anonymous_user, settings.mqtt.max_session_expiry_s) == ("guest", 86400)
    assert (settings.stomp.port, settings.stomps.port, settings.web_stomp.port) == (61613, None, 15674)
    assert (settings.web_stomp.path, settings.stomp.default_topic_exchange) == ("/ws", "amq.topic")
    assert (settings.stomp.max_frame_size, settings.stomp.max_frame_size_unauthenticated) == (17 * 2**20, 64 * 2**10)
    assert (settings.stomp.default_user, settings.stomp.implicit_connect) == ("", False)
    assert settings.disk_free_limit == 50_000_000
    assert (settings.default_user, settings.default_pass.get_secret_value()) == ("guest", "guest")
    assert settings.default_vhost == "/"
    assert settings.loopback_users == ["guest"]


def test_the_default_node_name_contains_the_name_of_the_machine() -> None:
    assert re.fullmatch(r"gateway@[^{}]+", load().node)
    assert load(None, ["node_name=left"]).node == "left"


def test_tls_listeners_use_their_default_ports_if_there_is_a_certificate(tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch()
    tls = [f"tls.certificate={tmp_path}/cert.pem", f"tls.key={tmp_path}/key.pem"]
    assert (load(None, tls).amqps.port, load(None, tls).mqtts.port) == (5671, 8883)
    assert load(None, tls).stomps.port == 61614
    assert load(None, tls).web_mqtts.port is load(None, tls).web_stomps.port is None
    assert load(None, [*tls, "amqps.port=off"]).amqps.port is None
    assert load(None, [*tls, "amqps.port=0"]).amqps.port == 0


# Files and overrides


def test_settings_missing_in_the_file_keep_their_defaults(write: Write) -> None:
    settings = load(write('[amqp]\nport = 5673\nmax_message_size = "1MB"\n'))
    assert (settings.amqp.port, settings.amqp.max_message_size, settings.amqp.heartbeat_s) == (5673, 1_000_000, 60)


def test_an_override_takes_precedence_over_the_file_and_over_earlier_overrides(write: Write) -> None:
    settings = load(write("[amqp]\nport = 1\nheartbeat_s = 7\n"), ["amqp.port=2", "amqp.port=3"])
    assert (settings.amqp.port, settings.amqp.heartbeat_s) == (3, 7)


VALUES = [
    pytest.param("amqp.port=off", "amqp.port", None, id="off disables a listener"),
    pytest.param("amqp.port=0", "amqp.port", 0, id="0 is any free port"),
    pytest.param("bind=127.0.0.1", "bind", "127.0.0.1", id="a bare string"),
    pytest.param('bind="::1"', "bind", "::1", id="a TOML string"),
    pytest.param("default_user=1234", "default_user", "1234", id="digits where a string is meant"),
    pytest.param("tls.min_version=1.3", "tls.min_version", "1.3", id="a number where a choice is meant"),
    pytest.param("data=/x/y", "data", Path("/x/y"), id="a path"),
    pytest.param("plugins_dir=", "plugins_dir", None, id="an empty path is none"),
    pytest.param("loopback_users=[]", "loopback_users", [], id="a list"),
    pytest.param("memory_high_watermark=0.4", "memory_high_watermark", 0.4, id="a share of the memory"),
    pytest.param("memory_high_watermark=2GiB", "memory_high_watermark", 2**31, id="an amount of memory"),
    pytest.param("disk_free_limit=1024", "disk_free_limit", 1024, id="plain bytes"),
    pytest.param(
        "deprecated_features.permit_transient_nonexcl_queues=false",
        "deprecated_features.permit_transient_nonexcl_queues",
        False,
        id="a boolean",
    ),
]


@pytest.mark.parametrize(("override", "key", "value"), VALUES)
def test_an_override_is_converted_to_the_type_of_the_setting(override: str, key: str, value: object) -> None:
    found: object = load(None, [override])
    for part in key.split("."):
        found = getattr(found, part)
    assert found == value
    assert type(found) is type(value) or isinstance(value, Path)


def test_plugins_of_a_virtual_host_are_enabled_by_tables(write: Write) -> None:
    file = write('[vhosts."/".plugins.auth-ldap]\nserver = "ldap.example"\n')
    settings = load(file, ['vhosts."/".plugins.dedup.size=9'])
    assert settings.vhosts["/"].plugins == {"auth-ldap": {"server": "ldap.example"}, "dedup": {"size": 9}}


# Errors

WRONG = [
    ("amqp.port=70000", '--set amqp.port: must be a port from 1 to 65535, 0 for any free port, or "off", not 70000'),
    ("amqp.port=true", '--set amqp.port: must be a port from 1 to 65535, 0 for any free port, or "off", not True'),
    ("amqp.prot=1", "--set amqp.prot: no such setting; did you mean amqp.port?"),
    ("amqps.zzz=1", "--set amqps.zzz: no such setting; allowed here: port"),
    ("web_stomp=1", "--set web_stomp: must be a table of port, path, allow_origins, allow_hosts, proxy_protocol, "
                    "not 1"),
    ("amqp.product=a/b", "--set amqp.product: must be 1 to 100 visible ASCII characters without space, parentheses and "
                         "slash, not 'a/b'"),
    ("ampq.port=1", "--set ampq: no such setting; did you mean amqp?"),
    ("amqp.heartbeat_s=-1", "--set amqp.heartbeat_s: must be a whole number from 0 to 65535, not -1"),
    ("log.level=loud", '--set log.level: must be "debug" or "info" or "warning" or "error", not \'loud\''),
    ("bind=localhost", '--set bind: must be an IPv4 or IPv6 address, or "*", not \'localhost\''),
    ("loopback_users=[1]", "--set loopback_users: must be a list of strings, not 1"),
    ("deprecated_features.permit_transient_nonexcl_queues=1",
     "--set deprecated_features.permit_transient_nonexcl_queues: must be true or false, not 1"),
    ('vhosts."/".plug=1', '--set vhosts."/".plug: no such setting; '
                          'allowed: vhosts."NAME".tracing, vhosts."NAME".trace_table, '
                          'vhosts."NAME".mqtt_mapping ("reversible" or "lossy") '
                          'and [vhosts."NAME".plugins.PLUGIN] tables'),
    ("amqps.port=5671", 'amqps.port: must be "off", or tls.certificate and tls.key must be set'),
    ("mqtts.port=8883", 'mqtts.port: must be "off", or tls.certificate and tls.key must be set'),
    ("web_mqtts.port=15676", 'web_mqtts.port: must be "off", or tls.certificate and tls.key must be set'),
    ("stomps.port=61614", 'stomps.port: must be "off", or tls.certificate and tls.key must be set'),
    ("web_stomps.port=15673", 'web_stomps.port: must be "off", or tls.certificate and tls.key must be set'),
    ("stomp.max_headers=0", "--set stomp.max_headers: must be a whole number from 10 to 10000, not 0"),
    ("web_mqtt.path=ws", "--set web_mqtt.path: must be a path such as \"/ws\", not 'ws'"),
    ("mqtt.receive_maximum=0", "--set mqtt.receive_maximum: must be a whole number from 1 to 65535, not 0"),
    ('vhosts."/".mqtt_mapping=exact',
     '--set vhosts."/".mqtt_mapping: must be vhosts."NAME".tracing, vhosts."NAME".trace_table, '
     'vhosts."NAME".mqtt_mapping ("reversible" or '
     '"lossy") and [vhosts."NAME".plugins.PLUGIN] tables, not \'exact\''),
    ("tls.verify=required", 'tls.ca: must be the path of the trusted certificates unless tls.verify is "off"'),
    ("load_definitions=no.json", "load_definitions: must be a file that can be read, not 'no.json'"),
    ("plugins_dir=nowhere", "plugins_dir: must be a directory, not 'nowhere'"),
    ("amqp.port", f"--set amqp.port: {NOT_OF_THE_FORM}"),
    ("a b=1", f"--set a b=1: {NOT_OF_THE_FORM}"),
]  # fmt: skip


@pytest.mark.parametrize(("override", "line"), WRONG, ids=[override for override, _ in WRONG])
def test_an_error_is_one_line_with_the_key_and_the_allowed_values(override: str, line: str) -> None:
    assert errors_of(None, override)[0] == line


def test_every_error_is_reported_with_its_source(write: Write) -> None:
    file = write('bind = 3\n[log]\nlevel = "loud"\nlevle = 1\n')
    lines = errors_of(file, "amqp.port=x")
    assert [line.partition(": must")[0].partition(": no")[0] for line in lines] == [
        f"{file}: bind",
        "--set amqp.port",
        f"{file}: log.level",
        f"{file}: log.levle",
    ]


def test_a_missing_or_malformed_file_is_reported_in_one_line(write: Write, tmp_path: Path) -> None:
    assert errors_of(write("port = \n"))[0].startswith(f"{tmp_path}/gateway.toml: not TOML: Invalid value (at line 1")
    assert errors_of(tmp_path / "none.toml") == [f"{tmp_path}/none.toml: cannot be read: No such file or directory"]


def test_a_wrong_password_is_not_shown(write: Write) -> None:
    file = write('default_pass = ["s3cret"]')
    assert errors_of(file) == [f"{file}: default_pass: must be a string"]
    file = write('stomp.default_passcode = ["s3cret"]')
    assert errors_of(file) == [f"{file}: stomp.default_passcode: must be a string"]


@pytest.mark.parametrize("key", ["kafka.port", "graphite.port"])
def test_unsupported_listeners_have_no_settings(key: str) -> None:
    assert "no such setting" in errors_of(None, f"{key}=0")[0]


# Output

SIZES = [(0, 0), (1, 1), (1023, 1023), (1024, "1KiB"), (50_000_000, "50MB"), (16 * 2**20, "16MiB"), (2**40, "1TiB")]


@pytest.mark.parametrize(("size", "written"), SIZES)
def test_a_size_is_written_in_its_shortest_form_and_parsed_back(size: int, written: int | str) -> None:
    assert write_size(size) == written
    assert parse_size(written) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1.5GiB", "1 parsec", "1mb"])
def test_a_malformed_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size(text)


def test_the_effective_settings_can_be_loaded_again(write: Write) -> None:
    changed = ["amqp.port=off", "disk_free_limit=3GB", 'vhosts."/".plugins.a.b=1', "memory_high_watermark=0.5"]
    settings = load(None, changed)
    assert load(write(effective(settings))) == settings


def test_the_effective_settings_do_not_show_a_password() -> None:
    written = effective(load(None, ["default_pass=s3cret"]))
    assert "s3cret" not in written
    assert f'default_pass = "{HIDDEN}"' in written


# Documentation


def test_the_template_holds_every_setting_with_its_default(write: Write) -> None:
    text = (ROOT / "etc" / "gateway.toml").read_text(encoding="utf-8")
    uncommented = re.sub(r"^#(?=[a-z0-9_]+ = )", "", text, flags=re.MULTILINE)
    assert load(write(uncommented)) == load(write(text)) == Settings()
    assert len(re.findall(r"^[a-z0-9_]+ = ", uncommented, re.MULTILINE)) == len(settings_by_key())


def test_the_template_and_the_configuration_page_match_the_settings() -> None:
    assert (ROOT / "etc" / "gateway.toml").read_text(encoding="utf-8") == template(), "run: make docs"
    assert (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8") == markdown(), "run: make docs"


@pytest.mark.parametrize("setting", settings_by_key().values(), ids=lambda setting: setting.key)
def test_every_setting_documents_its_meaning_and_allowed_values(setting: SettingInfo) -> None:
    assert setting.meaning.endswith(".")
    assert setting.allowed


def test_every_table_is_documented() -> None:
    assert [table.key for table in tables() if table.key and not table.meaning] == []


def reloaded_patterns() -> Iterator[str]:
    """Yield the keys of the table of reloads; a name without a section is in the section of the name before it."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    for row in re.findall(r"^\| (`.+?) \|", page.partition("\n## Reloading\n")[2].partition("\n## ")[0], re.MULTILINE):
        section = ""
        for name in re.findall(r"`([\w.*]+)`", row):
            section = name.rpartition(".")[0] or section
            yield f"{section}.{name.rpartition('.')[2]}".removeprefix(".")


def test_the_table_of_reloads_contains_each_setting_that_a_reload_applies_and_no_other() -> None:
    patterns = list(reloaded_patterns())
    assert {key for key in settings_by_key() if any(fnmatchcase(key, pattern) for pattern in patterns)} == LIVE
