#!/bin/sh
# Install the clients which the interop tests drive beside Python: Node.js with npm, and amqp-tools (rabbitmq-c).
# Does nothing when they are there; on Debian and its kin, installs what is missing, which takes root.
set -eu

missing=""
command -v node >/dev/null 2>&1 || missing="$missing nodejs"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
for tool in amqp-publish amqp-consume amqp-get amqp-declare-queue amqp-delete-queue; do
    command -v "$tool" >/dev/null 2>&1 || { missing="$missing amqp-tools"; break; }
done
[ -n "$missing" ] || exit 0

refuse() {
    echo "install-tools.sh: missing for the interop tests:$missing; $1" >&2
    exit 1
}

command -v apt-get >/dev/null 2>&1 || refuse "install them with this system's package manager"
[ "$(id -u)" -eq 0 ] || refuse "run as root: apt-get install$missing"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# The package lists of a fresh machine may be empty or old: fetch them only when the first attempt fails.
# shellcheck disable=SC2086
install() { apt-get install --yes --no-install-recommends $missing >"$log" 2>&1; }
install || { apt-get update >"$log" 2>&1 && install; } || { cat "$log" >&2; refuse "apt-get could not install them"; }
echo "install-tools.sh: installed$missing"
