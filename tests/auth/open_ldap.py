"""A real OpenLDAP server (slapd) on a free port of this machine, with a few users and groups."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.broker.tls.certificates import Authority
from tests.ports import free_port
from tests.waiting import wait_until

#: Debian installs it where ordinary users have no path.
SLAPD: Final = shutil.which("slapd") or shutil.which("slapd", path="/usr/sbin:/sbin") or "slapd"

BASE: Final = "dc=example,dc=com"

_CONFIGURATION: Final = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {directory}/slapd.pid
{tls}
database mdb
suffix "dc=example,dc=com"
rootdn "cn=admin,dc=example,dc=com"
rootpw "admin secret"
directory {directory}/data
access to attrs=userPassword by anonymous auth by * none
access to * by * read
"""

_ENTRIES: Final = """
dn: dc=example,dc=com
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=people,dc=example,dc=com
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=example,dc=com
objectClass: organizationalUnit
ou: groups

dn: uid=anna,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: anna
cn: Anna
sn: A
employeeType: operator
userPassword: right

dn: uid=bert,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: bert
cn: Bert
sn: B
userPassword: right

dn: cn=writers,ou=groups,dc=example,dc=com
objectClass: groupOfNames
cn: writers
member: uid=anna,ou=people,dc=example,dc=com
"""


@contextmanager
def open_ldap(directory: Path, authority: Authority | None = None, scheme: str = "ldap") -> Iterator[str]:
    """Run a server until the end of the block; return its URL. With an authority it has a certificate."""
    (directory / "data").mkdir(parents=True)
    tls = "" if authority is None else _tls(authority)
    configuration, entries = directory / "slapd.conf", directory / "entries.ldif"
    configuration.write_text(_CONFIGURATION.format(directory=directory, tls=tls))
    entries.write_text(_ENTRIES)
    options = ["-f", str(configuration)]
    subprocess.run([SLAPD, "-T", "add", *options, "-l", str(entries)], check=True, capture_output=True, timeout=30)
    port = free_port()
    url = f"{scheme}://127.0.0.1:{port}"
    server = subprocess.Popen([SLAPD, "-d", "0", *options, "-h", url])
    try:
        wait_until(lambda: _listens(port), "slapd does not listen")
        yield url
    finally:
        server.terminate()
        server.wait(20)


def _tls(authority: Authority) -> str:
    certificate, key = authority.sign("ldap")
    files = {"TLSCACertificateFile": authority.certificate, "TLSCertificateFile": certificate}
    return "\n".join(f"{name} {file}" for name, file in {**files, "TLSCertificateKeyFile": key}.items())


def _listens(port: int) -> bool:
    with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), timeout=5)):
        return True
    return False
