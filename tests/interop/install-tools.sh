#!/bin/sh
# Install what the tests need beside Python: Node.js with npm, amqp-tools (rabbitmq-c), mosquitto-clients, slapd, the Java that
# Spark runs on, what compiles the wheel that is tested too (a C compiler and Python's headers), and the brokers at the
# far ends of bridges, rabbitmq-server (with its rabbitmqadmin) and mosquitto, for the web UI Chromium with its driver and Firefox, and
# prometheus with its promtool.
# No service of a package is started.
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
{ [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] && command -v rabbitmqadmin >/dev/null 2>&1; } || missing="$missing rabbitmq-server"
PATH="$PATH:/usr/sbin" command -v mosquitto >/dev/null 2>&1 || missing="$missing mosquitto"
# the tests of the web UI
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v chromedriver >/dev/null 2>&1 || missing="$missing chromium-driver"
{ command -v firefox-esr || command -v firefox; } >/dev/null 2>&1 || missing="$missing firefox-esr"
command -v promtool >/dev/null 2>&1 || missing="$missing prometheus"
[ -n "$missing" ] || exit 0

refuse() {
    echo "install-tools.sh: missing for the tests:$missing; $1" >&2
    exit 1
}

command -v apt-get >/dev/null 2>&1 || refuse "install them with this system's package manager"
[ "$(id -u)" -eq 0 ] || refuse "run as root: apt-get install$missing"

work=$(mktemp -d)
log="$work/log"
# Debian's package scripts ask this file before they start a service; 101 means "do not".
policy=/usr/sbin/policy-rc.d
[ -e "$policy" ] || { made=$policy; printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod 755 "$policy"; }
trap 'rm -rf "$work" ${made:+"$made"}' EXIT
export DEBIAN_FRONTEND=noninteractive
# The tests start their own slapd; without a configuration the package starts none.
case "$missing" in *slapd*) echo "slapd slapd/no_configuration boolean true" | debconf-set-selections ;; esac
# The package lists of a fresh machine may be empty or old: fetch them only when the first attempt fails.
# shellcheck disable=SC2086
get_missing() { apt-get install --yes --no-install-recommends $missing >"$log" 2>&1; }
again() { "$1" || { apt-get update >"$log" 2>&1 && "$1"; } || { cat "$log" >&2; refuse "apt-get could not get them"; }; }
again get_missing
echo "install-tools.sh: installed$missing"
