#!/usr/bin/env bash
# system-packages.sh NAME=PACKAGE...: see that each program or shared library (`lib….so.1`) is there, installing its Debian
# package where we may.
# Never fails: a test whose program is missing is skipped, and the test run counts and names it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

there() {
    case $1 in
        lib*.so*) PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -qF "$1" ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

packages=()
for pair in "$@"; do
    there "${pair%%=*}" || packages+=("${pair#*=}")
done
[ ${#packages[@]} = 0 ] && exit 0

if ! can_apt; then
    say "not installed, and not root on Debian: ${packages[*]} (tests that need them will be skipped)"
elif ! apt_install "${packages[@]}"; then
    say "could not install: ${packages[*]} (tests that need them will be skipped)"
fi
