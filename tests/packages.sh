# SPDX-License-Identifier: Apache-2.0
# Debian packages for the scripts that read this file (with "."): what is missing is installed, for
# which alone root is needed.
#
#   ensure_packages <runner> <package...>
#
# `runner` is a function of the script's that is called as `<runner> packages <command...>`, runs the
# command with its output in a log, and ends the script when it fails. Afterwards installed_packages
# says what was missing. $logs is a folder for logs. Returns 1 where root is needed and is not there.
#
#   want_packages <package...>
#
# For what can be done without: those that cannot be installed are named on stderr, and that is all.

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

install_packages() {
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends "$@"
}

# Package lists may be absent, or too old to know what the archive has today.
install_or_update() {
	install_packages "$@" || { as_root apt-get update && install_packages "$@"; }
}

is_debian() {
	command -v dpkg-query >"$logs/dpkg-query"
}

is_installed() { # <package>
	case $(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>"$logs/dpkg-query") in
	?i*) ;;
	*) return 1 ;;
	esac
}

want_packages() {
	is_debian || return 0
	for package in "$@"; do
		is_installed "$package" && continue
		echo "installing with apt-get: $package" >&2
		install_or_update "$package" >"$logs/want-$package.log" 2>&1 ||
			echo "cannot be installed, so it is done without: $package" >&2
	done
}

ensure_packages() {
	runner=$1
	shift
	installed_packages=
	if ! is_debian; then
		echo "no Debian system: these packages, or what is like them, have to be there: $*" >&2
		return 0
	fi
	for package in "$@"; do
		is_installed "$package" || installed_packages="$installed_packages $package"
	done
	[ -n "$installed_packages" ] || return 0
	if [ "$(id -u)" != 0 ] && ! sudo -n true 2>"$logs/sudo"; then
		echo "$0 needs packages that only root can install: apt-get install$installed_packages" >&2
		return 1
	fi
	echo "installing with apt-get:$installed_packages" >&2
	# shellcheck disable=SC2086
	$runner packages install_or_update $installed_packages
}
