#!/bin/sh
# Install what the tests need beside Python: Node.js with npm, amqp-tools (rabbitmq-c), mosquitto-clients, slapd, the Java that
# Spark runs on, what compiles the wheel that is tested too (a C compiler and Python's headers), and the rabbitmqadmin
# script out of Debian's rabbitmq-server, which is only unpacked: installing it could start a broker.
# Does nothing when they are there; on Debian and its kin, installs what is missing, which takes root.
set -eu

missing=""
command -v node >/dev/null 2>&1 || missing="$missing nodejs"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
for tool in amqp-publish amqp-consume amqp-get amqp-declare-queue amqp-delete-queue; do
    command -v "$tool" >/dev/null 2>&1 || { missing="$missing amqp-tools"; break; }
done
for tool in mosquitto_pub mosquitto_sub mosquitto_rr; do
    command -v "$tool" >/dev/null 2>&1 || { missing="$missing mosquitto-clients"; break; }
done
PATH="$PATH:/usr/sbin" command -v slapd >/dev/null 2>&1 || missing="$missing slapd"
# Spark 4 needs Java 17 at least; JAVA_HOME, where it is set, says which one Spark takes.
java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p') || true
[ "${version:-0}" -ge 17 ] || missing="$missing openjdk-17-jre-headless"
# RabbitMQ's JMS client: the JDK compiles its test, Maven fetches it.
command -v javac >/dev/null 2>&1 || missing="$missing openjdk-17-jdk-headless"
command -v mvn >/dev/null 2>&1 || missing="$missing maven"
command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
headers=$("$(dirname "$0")/../../.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -f "$headers/Python.h" ] || missing="$missing python3-dev"
bin="$(cd "$(dirname "$0")" && pwd)/bin"
command -v rabbitmqadmin >/dev/null 2>&1 || [ -x "$bin/rabbitmqadmin" ] || archive=rabbitmq-server
[ -n "$missing${archive:-}" ] || exit 0

refuse() {
    echo "install-tools.sh: missing for the tests:$missing${archive:+ rabbitmqadmin of $archive}; $1" >&2
    exit 1
}

command -v apt-get >/dev/null 2>&1 || refuse "install them with this system's package manager"
[ -z "$missing" ] || [ "$(id -u)" -eq 0 ] || refuse "run as root: apt-get install$missing"

work=$(mktemp -d)
log="$work/log"
trap 'rm -rf "$work"' EXIT
export DEBIAN_FRONTEND=noninteractive
# The tests start their own slapd; without a configuration the package starts none.
case "$missing" in *slapd*) echo "slapd slapd/no_configuration boolean true" | debconf-set-selections ;; esac
# The package lists of a fresh machine may be empty or old: fetch them only when the first attempt fails.
# shellcheck disable=SC2086
get_missing() { apt-get install --yes --no-install-recommends $missing >"$log" 2>&1; }
again() { "$1" || { apt-get update >"$log" 2>&1 && "$1"; } || { cat "$log" >&2; refuse "apt-get could not get them"; }; }
[ -z "$missing" ] || again get_missing

# Debian's own copy in /usr/bin is the one that the management plugin serves.
unpack() {
    (cd "$work" && apt-get download "$archive" >"$log" 2>&1) || return 1
    mkdir -p "$bin"
    dpkg-deb --fsys-tarfile "$work/$archive"_*.deb | tar -xO ./usr/bin/rabbitmqadmin >"$work/rabbitmqadmin" || return 1
    install -m 755 "$work/rabbitmqadmin" "$bin/rabbitmqadmin"
}
[ -z "${archive:-}" ] || again unpack
echo "install-tools.sh: installed$missing${archive:+ rabbitmqadmin}"
