#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds spoke for another processor or another C library, and runs the unit tests there.
#
#   sh tests/cross/run.sh <i686 | aarch64 | s390x | musl>
#
# i686: 32 bits. aarch64: weakly ordered memory; by qemu-user. s390x: big endian; by qemu-user. musl: the C
# library of Alpine. libev, msgpack-c and cmocka are built from Debian's sources. Programs for
# other processors are linked statically. All files stay in build/cross. Needs the packages that tests/run.sh installs for its long tests.
set -eu
cd "$(dirname "$0")/../.." || exit 2

launcher=
cxx=
link=-static
case ${1:-} in
i686) host=i686-linux-gnu ;;
aarch64) host=aarch64-linux-gnu launcher=qemu-aarch64-static ;;
s390x) host=s390x-linux-gnu launcher=qemu-s390x-static ;;
musl) host=x86_64-linux-musl cc=musl-gcc cxx=NOTFOUND link= ;;
*)
	sed -n 's/^#   sh /usage: sh /p' "$0" >&2
	exit 2
	;;
esac
cc=${cc:-$host-gcc}
cxx=${cxx:-$host-g++}

mkdir -p build/cross
made=$(pwd)/build/cross
sources=$made/sources
work=$made/$1
prefix=$work/usr
export CFLAGS='-O2 -fPIC'

# Asks Debian's archive, by the machine's own list of archives, which may lack sources.
fetch() {
	[ ! -f "$sources/complete" ] || return 0
	rm -rf "$sources"
	mkdir -p "$sources/apt/lists/partial" "$sources/apt/archives/partial" "$sources/apt/parts"
	for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
		[ ! -f "$list" ] || sed 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$list" >"$sources/apt/parts/${list##*/}"
	done
	: >"$sources/apt/empty"
	set -- -o Dir::State::lists="$sources/apt/lists" -o Dir::Cache="$sources/apt" -o APT::Sandbox::User=root \
		-o Dir::Etc::sourcelist="$sources/apt/empty" -o Dir::Etc::sourceparts="$sources/apt/parts"
	apt-get "$@" update
	(cd "$sources" && apt-get "$@" source libev cmocka msgpack-c)
	touch "$sources/complete"
}

# by_cmake <folder> <option...>: builds and installs a library.
by_cmake() {
	folder=$1
	shift
	cmake -G Ninja -S "$sources/"$folder-[0-9]*/ -B "$work/$folder" -DCMAKE_SYSTEM_NAME=Linux \
		-DCMAKE_C_COMPILER="$cc" -DCMAKE_INSTALL_PREFIX="$prefix" -DBUILD_SHARED_LIBS=OFF "$@"
	cmake --build "$work/$folder" --target install
}

libraries() {
	[ ! -f "$work/complete" ] || return 0
	rm -rf "$work"
	mkdir -p "$work/libev" "$prefix/include"
	(cd "$work/libev" && "$sources"/libev-[0-9]*/configure --host="$host" CC="$cc" --prefix="$prefix" \
		--disable-shared && make install)
	by_cmake msgpack-c -DMSGPACK_ENABLE_SHARED=OFF -DMSGPACK_BUILD_EXAMPLES=OFF -DMSGPACK_BUILD_TESTS=OFF
	by_cmake cmocka -DWITH_STATIC_LIB=ON -DWITH_EXAMPLES=OFF
	# cmocka builds its shared library in any case.
	rm -rf "$prefix"/lib/libcmocka.so* "$prefix/lib/cmake/cmocka" "$prefix/lib/pkgconfig"
	# The compiler of musl does not look at the headers of the kernel.
	if [ "$cc" = musl-gcc ]; then
		ln -s /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" "$prefix/include"
	fi
	touch "$work/complete"
}

fetch
libraries
unset CFLAGS
cmake -G Ninja -S . -B "$work/spoke" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG='-O1 -g' -DSPOKE_WERROR=ON \
	-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
	-DCMAKE_FIND_ROOT_PATH="$prefix" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
	-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
	-DCMAKE_EXE_LINKER_FLAGS=$link -DSPOKE_BUILD_EXAMPLES=OFF -DSPOKE_TEST_LAUNCHER="$launcher"
nice cmake --build "$work/spoke"
# An emulated processor is slow: a test that failed by the real clock has another chance.
ctest --test-dir "$work/spoke" -L unit -j "$(nproc)" --timeout 600 --output-on-failure \
	${launcher:+--repeat until-pass:3}
