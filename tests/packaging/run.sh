#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs a build in every supported way, and each time builds and runs the project in outside/ with it.
#
#   sh tests/packaging/run.sh [build directory]        default: build/release
#
# Prints a line for each way with its duration, and the reason of each failure. As root on Debian the
# packages are installed and purged again; otherwise they are unpacked and used from there.
set -u
cd "$(dirname "$0")/../.." || exit 2
LC_ALL=C
export LC_ALL
unset DESTDIR CMAKE_PREFIX_PATH LD_LIBRARY_PATH PKG_CONFIG_PATH PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR

tree=$(pwd -P)
build=${1:-build/release}
outside=tests/packaging/outside
work=$(mktemp -d) || exit 2
installed=
clean_up() {
	[ -z "$installed" ] || dpkg --purge $installed >"$work/purge" 2>&1
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 2' HUP INT TERM

if [ ! -f "$build/CPackConfig.cmake" ] || [ ! -f "$build/libspoke.a" ]; then
	echo "$build: spoke is not built: cmake --preset release && cmake --build --preset release"
	exit 2
fi
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
command=
! grep -q 'build spoke_command: phony' "$build/build.ninja" || command=spoke

fail() {
	echo "$*"
	exit 1
}

# way <name> <function>: runs the function in a subshell and continues after a failure.
status=0
way() {
	begun=$(date +%s%N)
	# Not as a condition of anything, for that would switch -e off.
	(
		set -e
		"$2"
	) >"$work/log" 2>&1
	verdict=$?
	if [ $verdict = 0 ]; then
		verdict=ok
	else
		verdict=FAIL
		status=1
	fi
	took_ms=$((($(date +%s%N) - begun) / 1000000))
	printf '%-4s  %-22s %3d.%d s\n' $verdict "$1" $((took_ms / 1000)) $((took_ms % 1000 / 100))
	[ $verdict = ok ] || tail -n 20 "$work/log" | sed 's/^/      /'
}

# answers <program> <shared or static>: checks that the program runs and how it is linked.
answers() {
	output=$("$1") || fail "$1 fails"
	[ "$output" = "$version answered \"hello\"" ] || fail "$1 printed: $output"
	has=static
	! readelf -d "$1" | grep -q 'NEEDED.*\[libspoke\.so\.0\]' || has=shared
	[ $has = "$2" ] || fail "$1 is linked with the $has library, not the $2 one"
}

# compiled <folder with pkgconfig/> <shared or static> [option of pkg-config]: builds with a compiler only.
compiled() {
	flags=$([ "$2" = shared ] || echo --static)
	PKG_CONFIG_PATH=$1/pkgconfig
	export PKG_CONFIG_PATH
	[ "$(pkg-config --modversion spoke)" = "$version" ] || fail "spoke.pc: not of version $version"
	words=$(pkg-config $flags ${3:+"$3"} --cflags --libs spoke)
	echo "pkg-config: $words"
	eval "cc -std=c11 -Wall -Wextra -Wpedantic -Werror ${flags:+-static} \
		-o '$work/outside-$2' $outside/outside.c $words"
	LD_LIBRARY_PATH=$1
	export LD_LIBRARY_PATH
	answers "$work/outside-$2" "$2"
}

# configured <prefix, or "": the default> <C or CXX> <shared or static> [cmake option...]: builds with CMake.
configured() {
	prefix=$1
	language=$2
	kind=$3
	shift 3
	target=spoke::spoke
	[ "$kind" = shared ] || target=spoke::spoke_static
	made=$work/made-$language-$kind
	rm -rf "$made"
	cmake -G Ninja -S $outside -B "$made" -DCMAKE_PREFIX_PATH="$prefix" -Dlanguage="$language" \
		-Dtarget=$target "$@" || fail "the project cannot be configured"
	cmake --build "$made" || fail "the project cannot be built"
	answers "$made/outside" "$kind"
}

# pages_and_words <prefix> <suffix of manuals>: checks manuals, examples and completions.
pages_and_words() {
	pages="man3/spoke.3$2"
	[ -z "$command" ] || pages="$pages man1/spoke.1$2 man5/spoke.conf.5$2"
	for page in $pages; do
		[ -s "$1/share/man/$page" ] || fail "$1: no share/man/$page"
	done
	for header in */include/spoke/*.h; do
		[ -s "$1/share/man/man3/spoke_${header##*/}.3$2" ] || fail "$1: no manual page of $header"
	done
	for function in $(nm -D --defined-only "$build/libspoke.so" | sed -n 's/.* T //p'); do
		[ -s "$1/share/man/man3/$function.3$2" ] || fail "$1: no manual page of $function()"
	done
	for example in examples/*.c examples/*.cc examples/guide/*.c examples/loops/*; do
		[ -s "$1/share/doc/spoke/$example" ] || fail "$1: no $example"
	done
	# Debian compresses neither.
	for document in README.md GUIDE.md MANUAL.md SECURITY.md timer/*.md core/*.md transport/*.md cluster/*.md; do
		[ -s "$1/share/doc/spoke/$document" ] || fail "$1: no $document"
	done
	[ -n "$command" ] || return 0
	[ -s "$1/share/bash-completion/completions/spoke" ] || fail "$1: no completion for bash"
	[ -s "$1/share/zsh/site-functions/_spoke" ] || [ -s "$1/share/zsh/vendor-completions/_spoke" ] ||
		fail "$1: no completion for zsh"
	for example in echo-provider.service echo-provider.socket spoke.conf; do
		[ -s "$1/share/doc/spoke/examples/spoke/$example" ] || fail "$1: no example $example"
	done
}

# tells_version <spoke>
tells_version() {
	[ -n "$command" ] || return 0
	output=$("$1" --version) || fail "$1 --version fails"
	case " $output " in
	*[!0-9.]"$version"[!0-9.]*) ;;
	*) fail "$1 --version prints: $output" ;;
	esac
}

# --- cmake --install: to a prefix with a space, then moved

install_by_cmake() {
	! grep -q '^CMAKE_INSTALL_LIBDIR:[A-Z]*=lib$' "$build/CMakeCache.txt" ||
		[ ! -f /etc/debian_version ] ||
		fail "$build was configured for lib/ without the machine's triplet: cmake -U CMAKE_INSTALL_LIBDIR $build"
	cmake --install "$build" --prefix "$work/first place"
	DESTDIR="$work/dest dir" cmake --install "$build" --prefix /opt/spoke
	(cd "$work/first place" && find . -type f | sort) >"$work/there"
	(cd "$work/dest dir/opt/spoke" && find . -type f | sort) >"$work/staged"
	diff "$work/there" "$work/staged" || fail "DESTDIR changes what is installed"
	mv "$work/first place" "$work/moved tree"
	for file in "$build"/../../*/include/spoke/*.h; do
		[ -f "$work/moved tree/include/spoke/${file##*/}" ] || fail "not installed: $file"
	done
	! find "$work/moved tree" -name 'libspoke*.a' -exec readelf -SW {} + | grep 'gnu\.lto' ||
		fail 'libspoke.a: is for one version of one compiler'
	pages_and_words "$work/moved tree" ''
	sh tests/packaging/documents.sh "$work/moved tree/share/doc/spoke"
	tells_version "$work/moved tree/bin/spoke"
	if command -v mandoc >"$work/which"; then
		(cd "$work/moved tree/share/man" && mandoc -T lint -W error man3/*.3)
		mandoc -T utf8 "$work/moved tree/share/man/man3/spoke_future.h.3" | col -b |
			grep -A 1 'void spoke_future_cancel(struct spoke_future \*future);' |
			grep -q 'Cancels the call: it soon ends with ECANCELED' || fail "spoke_future_cancel() is not described"
	fi
}

# Files of others stay, and so do their folders.
uninstall() {
	cmake --install "$build" --prefix "$work/gone again"
	mkdir "$work/gone again/include/spoke/mine"
	: >"$work/gone again/include/spoke/mine/own.h"
	cmake --build "$build" --target uninstall
	find "$work/gone again" ! -type d >"$work/left"
	[ "$(cat "$work/left")" = "$work/gone again/include/spoke/mine/own.h" ] || fail "left behind: $(cat "$work/left")"
	! find "$work/gone again" -type d -empty | grep spoke || fail "empty folders of spoke are left behind"
	! cmake --build "$build" --target uninstall || fail "what is not installed can be uninstalled"
}

# A user's compiler may know warnings that ours does not.
warnings_of_users() {
	cmake -G Ninja -S . -B "$work/warnings" -DSPOKE_BUILD_TESTS=OFF -DCMAKE_C_FLAGS=-Wpadded
	cmake --build "$work/warnings" --target spoke_timer >"$work/warned"
	grep -q 'Wpadded' "$work/warned" || fail "-Wpadded does not warn"
	cmake --preset release -N | grep -q 'SPOKE_WERROR="OFF"' || fail "the preset release makes warnings errors"
	cmake --preset dev -N | grep -q 'SPOKE_WERROR="ON"' || fail "the preset dev lets warnings pass"
}

moved_lib() {
	pc=$(find "$work/moved tree" -name spoke.pc)
	dirname "$(dirname "$pc")"
}

pc_shared() {
	compiled "$(moved_lib)" shared
}
pc_static() {
	compiled "$(moved_lib)" static
}

# alone <folder with pkgconfig/> [option of pkg-config]: builds with the wheel alone, which needs the C library only.
alone() {
	flags=$(PKG_CONFIG_PATH=$1/pkgconfig pkg-config ${2:+"$2"} --cflags --libs spoke-wheel)
	eval "cc -std=c11 -Wall -Wextra -Wpedantic -Werror -o '$work/wheel' $outside/wheel.c $flags"
	[ "$("$work/wheel")" = fired ] || fail "the wheel alone does not fire"
	! readelf -d "$work/wheel" | grep NEEDED | grep -vF '[libc.so.6]' || fail "the wheel alone needs more than the C library"
}
wheel_alone() {
	alone "$(moved_lib)"
}
# refused <arguments of find_package> <part of the message> [cmake option...]
refused() {
	mkdir -p "$work/refused"
	printf 'cmake_minimum_required(VERSION 3.23)\nproject(p C)\nfind_package(spoke %s REQUIRED)\n' \
		"$1" >"$work/refused/CMakeLists.txt"
	arguments=$1
	sentence=$2
	shift 2
	! cmake -G Ninja -S "$work/refused" -B "$work/refused/made" "$@" \
		-DCMAKE_PREFIX_PATH="$work/moved tree" >"$work/output" 2>&1 || fail "find_package(spoke $arguments) works"
	tr -s ' \n' '  ' <"$work/output" | grep -qF "$sentence" ||
		fail "find_package(spoke $arguments) does not print \"$sentence\": $(cat "$work/output")"
}

find_from_c() {
	configured "$work/moved tree" C shared
	refused 99 'compatible with requested version "99"'
	refused 'COMPONENTS plastic' 'has the components shared and static, not plastic'
	refused 'COMPONENTS static' 'needs missing packages: Libev' \
		-DCMAKE_DISABLE_FIND_PACKAGE_Libev=ON
}
find_from_cxx() {
	configured "$work/moved tree" CXX static
}

# --- as a part of another build, without side effects

fetch_content() {
	configured '' C static -Dfetch=ON -DFETCHCONTENT_SOURCE_DIR_SPOKE="$tree"
	[ ! -e "$made/_deps/spoke-build/libspoke.so" ] || fail "a library that is not linked is built, too"
	! grep -q '/spoke' "$made/install_manifest.txt" 2>"$work/absent" || fail "it is installed"
	DESTDIR="$work/nothing" cmake --install "$made"
	[ ! -e "$work/nothing" ] || fail "it is installed with its parent: $(find "$work/nothing" -type f)"
}

# --- Debian packages

field() { # <package> <field>
	dpkg-deb -f "$work"/packages/"$1"_*.deb "$2"
}
depends() { # <package> <a dependency, as an extended pattern>...
	list=", $(field "$1" Depends),"
	package=$1
	shift
	for dependency; do
		echo "$list" | grep -qE ", $dependency," || fail "$package: does not depend on $dependency:$list"
	done
}

make_packages() {
	umask 077
	cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/packages"
	rm -rf "$work/packages/_CPack_Packages"
	exact="$version-1"
	depends libspoke0 'libc6 .*' 'libev4.*'
	depends libspoke-dev "libspoke0 \(= $exact\)" "libspoke-wheel-dev \(= $exact\)" libev-dev
	[ -z "$(field libspoke-wheel-dev Depends)" ] || fail "libspoke-wheel-dev depends on $(field libspoke-wheel-dev Depends)"
	! grep -q '^ZooKeeper_LIBRARY:FILEPATH=/' "$build/CMakeCache.txt" ||
		depends libspoke-dev libzookeeper-st-dev
		depends libspoke-dev libssl-dev
	[ -z "$command" ] || depends spoke "libspoke0 \(= $exact\)" 'libc6 .*'
	for package in libspoke0:libs libspoke-dev:libdevel libspoke-wheel-dev:libdevel ${command:+spoke:net}; do
		[ "$(field "${package%:*}" Section)" = "${package#*:}" ] || fail "${package%:*}: wrong section"
		[ "$(field "${package%:*}" Version)" = "$exact" ] || fail "${package%:*}: not $exact"
	done
	for package in "$work"/packages/*.deb; do
		dpkg-deb -x "$package" "$work/root"
		! dpkg-deb -c "$package" | grep -vE '^(drwxr-xr-x |-rw-r--r-- |-rwxr-xr-x .*/bin/|l)' ||
			fail "$package: not readable by all users"
	done
	! find "$work/root" -type f -exec grep -lF "$tree" {} + | grep . || fail "these name $tree"
	! find "$work/root" ! -path '*/usr/*' -type f | grep . || fail "these are not below /usr"
}

# Two findings are expected: the packages are not uploads to Debian, and cpack calls ldconfig in addition
# to the trigger.
look_at_packages() {
	lintian --fail-on error,warning \
		--suppress-tags initial-upload-closes-no-bugs,maintscript-calls-ldconfig "$work"/packages/*.deb
}

use_packages_unpacked() {
	lib=$(dirname "$(find "$work/root" -name libspoke.so.0)")
	[ "$lib" = "$work/root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)" ] || fail "it is in $lib"
	pages_and_words "$work/root/usr" .gz
	configured "$work/root/usr" C static
	compiled "$lib" shared --define-variable=prefix="$work/root/usr"
	rm -rf "$work/wheel-root"
	dpkg-deb -x "$work"/packages/libspoke-wheel-dev_*.deb "$work/wheel-root"
	alone "$work/wheel-root${lib#"$work/root"}" --define-variable=prefix="$work/wheel-root/usr"
	tells_version "$work/root/usr/bin/spoke"
}

use_packages_installed() {
	# To put the manuals into the machine's index would take longer than all else here.
	dpkg -i --path-exclude='/usr/share/man/*' "$work"/packages/*.deb
	words=$(pkg-config --cflags --libs spoke)
	case $words in
	*-I* | *-L*) fail "pkg-config names default folders of the compiler: $words" ;;
	esac
	cc -std=c11 -o "$work/outside-usr" $outside/outside.c $words
	answers "$work/outside-usr" shared
	configured '' CXX shared
	! readelf -d "$made/outside" | grep RUNPATH || fail "CMake has set a RUNPATH"
	tells_version spoke
	dpkg --purge $installed
	! dpkg-query -W $installed || fail "they are still installed"
	[ ! -e /usr/include/spoke ] || fail "/usr/include/spoke is left behind"
}

# --- the HTML reference

reference() {
	cmake --build "$build" --target reference
	made=$build/install/reference
	[ -s "$made/index.html" ] || fail "no index.html"
	for header in */include/spoke/*.h; do
		header=${header##*/}
		[ "$header" = wheel_inline.h ] ||
			[ -s "$made/$(echo "${header%.h}" | sed 's/_/__/g')_8h.html" ] || fail "no page of $header"
	done
	grep -q 'Cancels the call: it soon ends with ECANCELED' "$made/future_8h.html" ||
		fail "spoke_future_cancel() is not described"
	! grep -F 'unable to resolve reference' "$build/install/reference.log" || fail "broken links"
}

# --- a unit for systemd

unit() {
	mkdir "$work/unit"
	sed "s|^ExecStart=[^ ]*|ExecStart=$(command -v cat)|" examples/spoke/echo-provider.service \
		>"$work/unit/echo-provider.service"
	cp examples/spoke/echo-provider.socket "$work/unit"
	systemd-analyze verify --man=no "$work/unit/echo-provider.service" 2>"$work/unit/output" || true
	! grep -F echo-provider. "$work/unit/output" || fail "systemd-analyze reports errors"
}

way install install_by_cmake
way uninstall uninstall
way 'warnings of users' warnings_of_users
way 'pkg-config' pc_shared
way 'pkg-config --static' pc_static
way 'the wheel alone' wheel_alone
way 'find_package from C' find_from_c
way 'find_package from C++' find_from_cxx
way FetchContent fetch_content
if command -v dpkg-deb >"$work/which" && command -v dpkg-shlibdeps >"$work/which"; then
	way 'Debian packages' make_packages
	if [ $verdict = ok ]; then
		way '... unpacked' use_packages_unpacked
		! command -v lintian >"$work/which" || way '... and lintian' look_at_packages
		packages="libspoke0 libspoke-dev libspoke-wheel-dev $command"
		if [ "$(id -u)" = 0 ] && ! dpkg-query -W $packages >"$work/which" 2>&1; then
			installed=$packages
			way '... installed' use_packages_installed
		else
			echo 'skip  ... installed: for root only, on a machine that does not have them'
		fi
	fi
else
	echo 'skip  Debian packages: no dpkg-dev here'
fi
if command -v doxygen >"$work/which"; then
	way 'HTML reference' reference
else
	echo 'skip  HTML reference: no doxygen here'
fi
if command -v systemd-analyze >"$work/which"; then
	way 'systemd unit' unit
fi
exit $status
