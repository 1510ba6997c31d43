"""Cures of wrong settings, files and command lines."""

from collections.abc import Sequence
from typing import Final

from docs.tools.reference.cures.cure import Cure

_CHECK: Final = "correct it, and try it with `gateway check --config FILE`"
_MODE: Final = "correct the path; the broker's user needs the permission to read it"
_DIRECTORY: Final = "correct the path; the user needs the permission to write there"
_INSTALL: Final = "install it with the command in the text, in the environment of the broker"
_HOOKS: Final = "correct the plugin: [hooks](hooks.md), [testing](../plugins/testing.md)"

CONFIGURATION: Final[Sequence[Cure]] = (
    Cure("pip install|needs the library|simulation needs", "a library of an extra is not installed", _INSTALL),
    Cure(
        "cannot listen",
        "another program has the port, the machine does not have the address, or the port is below 1024",
        "another port in `NAME.port`; the text ends with the system's reason",
    ),
    Cure(
        "cannot be changed at run time",
        "the setting is read at the start only",
        "change the file and restart the broker",
    ),
    Cure(
        "^--set|^VARIABLE_NAME",
        "the setting has the wrong form",
        "the form in the text; [all settings](../configuration.md)",
    ),
    Cure("gives? --force|exists; give", "the command does not overwrite", "`--force`, or another `--output`"),
    Cure("ends neither with", "the ending of the file decides on its format", "a name with one of these endings"),
    Cure(
        "cannot be written|cannot write|cannot be opened|cannot be renamed|file that can be written",
        "the file or its directory cannot be written",
        _DIRECTORY,
    ),
    Cure("is not UTF-8|not UTF-8", "the file is binary or in another encoding", "save it as UTF-8"),
    Cure(
        "not TOML",
        "the file breaks the rules of TOML at the place in the text",
        "quote texts, and close brackets; " + _CHECK,
    ),
    Cure(
        "standard error",
        "`gatewayctl rotate_logs` needs a file",
        "set `log.file`, or let the service rotate its output",
    ),
    Cure("a restart loads its new version", "a package is loaded once in a process", "restart the broker"),
    Cure(
        "was not found|not a file of plugins_dir",
        "no installed package and no file of `plugins_dir` has this plugin",
        "correct the name: `gatewayctl plugin list`; install the package, or put the file into `plugins_dir`",
    ),
    Cure(
        "gives the same setting",
        "a variable and one with `_FILE` at its end give one setting",
        "unset one of them",
    ),
    Cure(
        "have no variables",
        "a name in a variable cannot have small letters",
        "write the setting into the file: [configuration](../configuration.md)",
    ),
    Cure(
        "must belong to root",
        "a file that the broker executes must not be writable by others",
        "`chown` and `chmod go-w`",
    ),
    Cure("plugins_dir|is not a directory", "the directory of plugins is missing or cannot be read", _MODE),
    Cure(
        "settings of plugin|has no settings",
        "the settings do not fit the plugin",
        "`gatewayctl plugin settings NAME` has them",
    ),
    Cure("not Python", "the file has an error of syntax at this line", "correct the file"),
    Cure(
        r"plugin 'NAME' \(|plugin 'FOUND|queue feature|must be a QueueSetting|belongs to the broker|"
        "no name of a setting",
        "the plugin does not keep what its hook promises, or its name or setting is taken",
        _HOOKS,
    ),
    Cure("plugin 'NAME': cannot read", "the file of the plugin cannot be read", _MODE),
    Cure(
        "access plugin",
        "the cache names a plugin that the virtual host does not have",
        "enable it, or name one of the list",
    ),
    Cure("signing_keys", "the key is not in PEM format", "export it with `openssl pkey -pubout`"),
    Cure(
        "certificate|PEM|ca_file|^WHERE: ERROR|CA_FILE",
        "a file of TLS is missing, unreadable or in another form",
        "a file in PEM format with the whole chain; `openssl x509 -in FILE -noout -text` shows it",
    ),
    Cure(
        "nkey|NKEY",
        "the file of credentials of NATS is incomplete or damaged",
        "write it again with `nsc generate creds`",
    ),
    Cure(
        "NATS|cluster.servers",
        "the addresses of the NATS servers are missing or wrong",
        '`cluster.servers = ["nats://host:4222"]`, see [cluster](../cluster.md)',
    ),
    Cure(
        "no leader|^PROCESS_NAME|^node PROCESS|has ended",
        "a program of a local cluster ended or is slow",
        "read its log, which the text names",
    ),
    Cure(
        "cell|cannot be moved",
        "the definitions name a cell that does not fit the cluster",
        "remove `cell`, or name that of the virtual host",
    ),
    Cure("being deleted", "a virtual host is deleted in the background", "try again when it is gone"),
    Cure(
        "SOURCE: CATEGORY",
        "an entry of the definitions was refused after others had been applied",
        "correct the entry, and import the file again",
    ),
    Cure(
        "not JSON|not valid JSON|JSON: ",
        "the file is not valid JSON",
        "correct it; `python -m json.tool FILE` shows the place",
    ),
    Cure("base64", "the value is not base64", "encode the file with `base64 -w0`"),
    Cure(
        "descriptor",
        "the file is not what `protoc` writes, or lacks a type",
        "`protoc --include_imports --descriptor_set_out=FILE`, with the message that the rule names",
    ),
    Cure("framing", "the rule asks for an identifier that plain Avro does not have", '`framing = "confluent"`'),
    Cure(
        "rule|'schema'",
        "a rule of the plugin is incomplete",
        "[the plugin](../plugins/README.md#built-in-plugins) has its settings; the text names what is missing",
    ),
    Cure(
        "schema|Schema|not valid at|larger than 4 MiB|key ERROR",
        "the schema breaks the rules of its language, or is too large",
        "correct the schema at the place in the text",
    ),
    Cure(
        "column|table|TABLE|messages: name one|decimal|name must have one dot",
        "a typed table cannot have the columns of this schema or this name",
        "[archive](../archive.md) has the rules of typed tables",
    ),
    Cure(
        "recording|not an event|line 1|line NUMBER: not",
        "the file is no recording of this version",
        "[record](../recording.md) again with this version",
    ),
    Cure(
        "line NUMBER|^PATH: ERROR|^cannot read PATH|topic filter|expected user|^STR|hash",
        "a file in Mosquitto's format has a wrong line, or cannot be read",
        "correct the line: [access-servers](../access-servers.md)",
    ),
    Cure("archive", "the setting of the archive does not fit the command, or is wrong", _CHECK),
    Cure("py-spy", "the kernel forbids to read the other process", "the command in the text"),
    Cure("no broker runs", "the directory is not that of a running broker", "`--data` of the broker"),
    Cure(
        "restored",
        "a stored entity is refused, for example because a plugin is missing",
        "install the plugin again, or [`gateway repair`](gateway.md#repair-check)",
    ),
    Cure("sets records aside", "the store is not LMDB", 'the command is for brokers with `storage.engine = "lmdb"`'),
    Cure("list of objects", "the setting has another form", _CHECK),
    Cure("cannot be read|cannot read", "the file is missing, or the user may not read it", _MODE),
)
