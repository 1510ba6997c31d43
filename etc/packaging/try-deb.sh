#!/bin/bash
# Try the Debian package in a tree of its own: try-deb.sh DEB DIRECTORY. It must run as root.
# Install, start and use the service, upgrade, remove, install again, purge; each step checks what must be there. The tree
# has a network of its own, and no systemd runs in it, so the script starts what the unit starts, as its user, with a
# socket in place of systemd's and no memory that is both writable and executable.
set -euo pipefail
deb=$(realpath "$1")
mkdir -p "$2"
directory=$(realpath "$2")
here=$(dirname "$(realpath "$0")")
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
base=$directory/$suite
tree=$directory/tree

command -v debootstrap >/dev/null || { echo "make try-deb needs debootstrap: apt-get install debootstrap" >&2; exit 1; }
if [ ! -d "$base" ]; then
	echo "== debootstrap $suite"
	rm -rf "$base.new"
	debootstrap --variant=minbase --include=ca-certificates,python3 "$suite" "$base.new" >"$directory/debootstrap.log"
	mv "$base.new" "$base"
fi
rm -rf "$tree"
cp -a "$base" "$tree"
for file in /etc/resolv.conf /etc/apt/apt.conf.d/*proxy*; do
	if [ -f "$file" ]; then cp "$file" "$tree$file"; fi
done
cp "$deb" "$tree/old.deb"
# The same package with a higher version is the upgrade.
rm -rf "$directory/newer"
dpkg-deb --raw-extract "$deb" "$directory/newer"
sed -i 's/^Version: .*/&+newer/' "$directory/newer/DEBIAN/control"
dpkg-deb -Znone --build "$directory/newer" "$tree/new.deb" >/dev/null
rm -rf "$directory/newer"
cp "$here/try_service.py" "$tree/"

# The proxy of this environment, if any, stays known to apt.
inside() { chroot "$tree" env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
must() { inside sh -c "$1" || { echo "failed: $1" >&2; exit 1; }; }
serve() {
	unshare --net --mount sh -c "mount -t proc proc '$tree/proc' && exec chroot '$tree' env LC_ALL=C.UTF-8 \
		/usr/lib/gateway-broker/bin/python3 /try_service.py $1"
}

echo "== install"
inside apt-get update -qq
inside apt-get install -y -qq --no-install-recommends /old.deb logrotate >"$directory/install.log" 2>&1
must 'id gateway'
must '[ "$(stat -c "%U:%G %a" /var/lib/gateway /var/log/gateway /etc/gateway /etc/gateway/gateway.toml | tr "\n" ,)" = "gateway:gateway 750,gateway:gateway 750,root:gateway 750,root:gateway 640," ]'
must 'gateway --version && gatewayctl --version && test -f /usr/share/man/man1/gateway.1.gz'
must 'test -f /usr/share/bash-completion/completions/gatewayctl && test -f /usr/share/gateway-broker/grafana/gateway.json'
must 'find /usr/lib/gateway-broker -name "*.pyc" | grep -q .'
must 'gateway check --config /etc/gateway/gateway.toml >/dev/null'

echo "== start, publish, rotate the log, stop"
serve publish
must 'test -s /var/lib/gateway/data.mdb && test -s /var/log/gateway/gateway.log && test -s /var/log/gateway/gateway.log.1'

echo "== upgrade"
echo '# changed by the operator' >>"$tree/etc/gateway/gateway.toml"
inside apt-get install -y -qq /new.deb >"$directory/upgrade.log" 2>&1
must 'grep -q "changed by the operator" /etc/gateway/gateway.toml'
serve consume

echo "== remove"
inside apt-get remove -y -qq gateway-broker >"$directory/remove.log" 2>&1
must 'test -s /var/lib/gateway/data.mdb && test -f /etc/gateway/gateway.toml && test -d /var/log/gateway && id gateway'
must '[ ! -e /usr/lib/gateway-broker ] && [ ! -e /usr/bin/gateway ]'

echo "== install again"
inside apt-get install -y -qq /new.deb >>"$directory/install.log" 2>&1
serve publish
serve consume

echo "== purge"
inside apt-get purge -y -qq gateway-broker >"$directory/purge.log" 2>&1
must '[ ! -e /var/lib/gateway ] && [ ! -e /etc/gateway ] && [ ! -e /var/log/gateway ] && [ ! -e /usr/lib/gateway-broker ]'
rm -rf "$tree"
echo "the package was installed, started, used, upgraded, removed and purged"
