#!/bin/sh
# Build the Debian package of a wheel: make-deb.sh WHEEL VERSION DIRECTORY. The package is then in DIRECTORY.
# It builds a copy, as Debian's tools need their directory at the top of the tree.
set -eu
[ $# -eq 3 ] && [ -f "$1" ] || { echo "make-deb.sh needs one wheel, its version and a directory, not: $*" >&2; exit 1; }
wheel=$(realpath "$1")
version=$2
project=$(dirname "$(realpath "$0")")/../..
mkdir -p "$3"
directory=$(realpath "$3")

for tool in dpkg-buildpackage dh; do
	command -v $tool >/dev/null || { echo "make deb needs debhelper: apt-get install debhelper python3-venv python3-pip" >&2; exit 1; }
done
tree=$directory/gateway-broker-$version
rm -rf "$tree"
mkdir -p "$tree/docs"
cp -a "$project/etc/debian" "$tree/debian"
# The unit of a virtual environment, with the paths of the package.
sed -e '1,/^$/d' -e 's|/opt/gateway/bin/|/usr/bin/|' "$project/etc/gateway.service" \
	>"$tree/debian/gateway-broker.gateway.service"
cp "$project/README.md" "$tree/"
cp "$project/docs/operations.md" "$project/docs/configuration.md" "$tree/docs/"
cat >"$tree/debian/changelog" <<END
gateway-broker ($version) unstable; urgency=medium

  * Release $version. The changes are in CHANGELOG.md of the source.

 -- The gateway developers <maintainers@gateway-broker.invalid>  $(date --utc --rfc-email --date="@${SOURCE_DATE_EPOCH:-$(date +%s)}")
END
cd "$tree"
GATEWAY_WHEEL=$wheel GATEWAY_CONSTRAINTS=$(realpath "$project/constraints.txt") \
	dpkg-buildpackage --build=binary --no-sign >"$directory/build.log" 2>&1 \
	|| { tail -n 30 "$directory/build.log" >&2; exit 1; }
rm -rf "$tree"
ls "$directory"/gateway-broker_"$version"_*.deb
