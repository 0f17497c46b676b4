# Functions of the other scripts: messages, and Debian packages.

say() { printf '%s\n' "$*" >&2; }

die() { say "$@"; exit 1; }

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# Install Debian packages, quietly unless it fails. A package that an interrupted run left half-configured is repaired first.
apt_install() {
    local log
    log=$(mktemp)
    say "installing Debian packages: $*"
    if {
        dpkg --configure -a && apt-get update && apt-get install -y --no-install-recommends "$@"
    } >"$log" 2>&1 </dev/null; then
        rm -f "$log"
        return 0
    fi
    tail -n 5 "$log" >&2
    rm -f "$log"
    return 1
}
export DEBIAN_FRONTEND=noninteractive
