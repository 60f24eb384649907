# SPDX-License-Identifier: Apache-2.0
# Installs missing Debian packages for the scripts that source this file. Only the installation needs
# root.
#
#   ensure_packages <runner> <package...>
#
# `runner` is a function of the script, called as `<runner> packages <command...>`. It runs the command
# with its output in a log and exits if the command fails. Afterwards installed_packages lists the
# packages that were missing. $logs is a folder for logs. Returns 1 if root is needed but missing.
#
#   want_packages <package...>
#
# For optional packages: names those that cannot be installed on stderr.

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

# Package lists may be missing or out of date.
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
			echo "cannot be installed, continuing without: $package" >&2
	done
}

ensure_packages() {
	runner=$1
	shift
	installed_packages=
	if ! is_debian; then
		echo "not a Debian system; install the equivalents of these packages: $*" >&2
		return 0
	fi
	for package in "$@"; do
		is_installed "$package" || installed_packages="$installed_packages $package"
	done
	[ -n "$installed_packages" ] || return 0
	if [ "$(id -u)" != 0 ] && ! sudo -n true 2>"$logs/sudo"; then
		echo "$0 needs packages; as root, run: apt-get install$installed_packages" >&2
		return 1
	fi
	echo "installing with apt-get:$installed_packages" >&2
	# shellcheck disable=SC2086
	$runner packages install_or_update $installed_packages
}
