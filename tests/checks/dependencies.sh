#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that CMake finds libev, msgpack-c, cmocka and ZooKeeper's library in every form in which they are
# shipped, and that a missing library is one clear error message. Each form is imitated in a prefix of its
# own, with the system's copies hidden. Then a program (in dependencies/) is configured, linked and run.
# Usage: sh tests/checks/dependencies.sh [build directory [a single form]]
set -eu
. "$(dirname "$0")/common.sh"

# --- the parts of prefixes

# form <name> <module> <pattern of the output, or "missing">: begins a prefix, "in".
form() {
	in=$work/$1
	mkdir -p "$in/lib/odd"
	echo "$2" >"$in/module"
	echo "$3" >"$in/expected"
	: >"$in/options"
}

put() { # <file>: gets what stands on stdin
	mkdir -p "$in/$(dirname "$1")"
	cat >"$in/$1"
}

# The imitations return 77 instead of a version.
library() { # <file>
	cat >"$work/stub.c" <<-'C'
		int ev_version_major(void) { return 77; }
		int msgpack_version_major(void) { return 77; }
		int zoo_state(const void *handle) { return 77; }
		int printf(const char *format, ...);
		void print_message(const char *format, int zero, const char *version) { printf(format, 77 + zero, version); }
	C
	case $1 in
	*.so) gcc -w -shared -fPIC -o "$in/lib/$1" "$work/stub.c" ;;
	*.a) gcc -w -c -o "$work/stub.o" "$work/stub.c" && ar rc "$in/lib/$1" "$work/stub.o" ;;
	esac
}

msgpack_header() { # <folder> <version>
	echo 'int msgpack_version_major(void);' | put "$1/msgpack.h"
	printf '#define MSGPACK_VERSION_%s %s\n' MAJOR "${2%%.*}" MINOR "${2#*.}" REVISION 0 |
		put "$1/msgpack/version_master.h"
}

ev_header() { # <folder> <version>
	printf '#define EV_VERSION_%s %s\n' MAJOR "${2%.*}" MINOR "${2#*.}" | put "$1/ev.h"
	echo 'int ev_version_major(void);' >>"$in/$1/ev.h"
}

cmocka_header() { # <folder>
	echo 'void print_message(const char *format, ...);' | put "$1/cmocka.h"
}

zookeeper_header() { # <version> <init or init2>
	echo "int zookeeper_$2(void); int zoo_state(const void *handle);" |
		put include/zookeeper/zookeeper.h
	echo "#define ZOO_VERSION \"$1\"" | put include/zookeeper/zookeeper_version.h
}

package() { # <name of the package> <target> <SHARED or STATIC> <library>
	put "lib/cmake/$1/$1-config.cmake" <<-CONFIG
		get_filename_component(prefix "\${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
		add_library($2 $3 IMPORTED)
		set_target_properties($2 PROPERTIES IMPORTED_LOCATION \${prefix}/lib/$4
			INTERFACE_INCLUDE_DIRECTORIES \${prefix}/include)
	CONFIG
}

pkg_config() { # <name> <library>: header and library lie off the paths that CMake knows
	put "lib/pkgconfig/$1.pc" <<-PC
		Name: $1
		Description: stub
		Version: 1
		Libs: -L\${pcfiledir}/../odd -l$2
		Cflags: -I\${pcfiledir}/../../odd
	PC
	echo "-DPKG_CONFIG_EXECUTABLE=$(command -v pkg-config)" >"$in/options"
}

cxx_package() { # the C++ library's package, which bears the C library's name
	echo 'add_library(msgpackc-cxx INTERFACE IMPORTED)' |
		put lib/cmake/msgpackc-cxx/msgpack-config.cmake
}

# --- the forms

form msgpack-4 MsgpackC '77 4.0.0'
msgpack_header include 4.0; library libmsgpackc.so; package msgpack msgpackc SHARED libmsgpackc.so
form msgpack-5 MsgpackC '77 5.0.0'
msgpack_header include 5.0; library libmsgpackc.so; package msgpackc msgpackc SHARED libmsgpackc.so
form msgpack-6 MsgpackC '77 6.0.0'
msgpack_header include 6.0; library libmsgpack-c.so
package msgpack-c msgpack-c SHARED libmsgpack-c.so
form msgpack-6-static MsgpackC '77 6.0.0'
msgpack_header include 6.0; library libmsgpack-c.a
package msgpack-c msgpack-c-static STATIC libmsgpack-c.a
form msgpack-plain MsgpackC '77 4.0.0'
msgpack_header include 4.0; library libmsgpackc.so
form msgpack-plain-static MsgpackC '77 6.1.0'
msgpack_header include 6.1; library libmsgpack-c.a
form msgpack-pc MsgpackC '77 4.0.0'
msgpack_header odd 4.0; library odd/libmsgpackc.so; pkg_config msgpack msgpackc
form msgpack-c-pc MsgpackC '77 6.0.0'
msgpack_header odd 6.0; library odd/libmsgpack-c.so; pkg_config msgpack-c msgpack-c
form msgpack-beside-cxx MsgpackC '77 4.0.0'
msgpack_header include 4.0; library libmsgpackc.so; cxx_package
form msgpack-only-cxx MsgpackC missing
cxx_package
form msgpack-without-library MsgpackC missing
msgpack_header include 4.0
form msgpack-none MsgpackC missing

form ev-plain Libev '77 4.33'
ev_header include 4.33; library libev.so
form ev-folder Libev '77 4.33'
ev_header include/libev 4.33; library libev.so
form ev-static Libev '77 4.25'
ev_header include 4.25; library libev.a
form ev-another-header Libev missing
echo 'int ev;' | put include/ev.h; library libev.so
form ev-old Libev missing
ev_header include 3.9; library libev.so
form ev-none Libev missing

form cmocka-target Cmocka '77 '
cmocka_header include; library libcmocka.so; package cmocka cmocka::cmocka SHARED libcmocka.so
form cmocka-variables Cmocka '77 '
cmocka_header odd; library libcmocka.so
echo "set(CMOCKA_INCLUDE_DIR \"$in/odd\")" | put lib/cmake/cmocka/cmocka-config.cmake
form cmocka-pc Cmocka '77 '
cmocka_header odd; library odd/libcmocka.so; pkg_config cmocka cmocka
form cmocka-plain Cmocka '77 '
cmocka_header include; library libcmocka.so
form cmocka-none Cmocka missing

form zookeeper ZooKeeper "77 3.8.0"
zookeeper_header 3.8.0 init2; library libzookeeper_st.so
form zookeeper-static ZooKeeper "77 3.9.1"
zookeeper_header 3.9.1 init2; library libzookeeper_st.a
form zookeeper-threads ZooKeeper missing
zookeeper_header 3.8.0 init2; library libzookeeper_mt.so
form zookeeper-old ZooKeeper missing
zookeeper_header 3.4.14 init; library libzookeeper_st.so
form zookeeper-none ZooKeeper missing

form system-ev Libev '[4-9] [4-9].*'
form system-msgpack MsgpackC '[4-9] [4-9].*'
form system-cmocka Cmocka '0 '
form system-zookeeper ZooKeeper "[0-9]* 3.[5-9].*"

# Each form is configured, built and run.
find "$work" -path "*/${2:-*}/module" -exec dirname {} \; | tr '\n' '\0' |
	xargs -0 -n 1 -P "$(nproc)" sh $checks/dependencies/probe.sh
