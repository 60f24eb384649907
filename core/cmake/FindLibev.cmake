# SPDX-License-Identifier: Apache-2.0
# Finds libev, which ships neither a CMake package nor a pkg-config file: target Ev::ev.
# Sets Libev_FOUND and Libev_VERSION; uses the cache variables Libev_INCLUDE_DIR, Libev_LIBRARY.
# Does not look for libev's event.h, because on most machines event.h belongs to libevent.

find_path(Libev_INCLUDE_DIR ev.h PATH_SUFFIXES libev)
find_library(Libev_LIBRARY ev)
mark_as_advanced(Libev_INCLUDE_DIR Libev_LIBRARY)

set(Libev_FOUND FALSE)
unset(Libev_VERSION)
if(Libev_INCLUDE_DIR AND Libev_LIBRARY)
	file(STRINGS ${Libev_INCLUDE_DIR}/ev.h libev_lines
		REGEX "^[ \t]*#[ \t]*define[ \t]+EV_VERSION_(MAJOR|MINOR)[ \t]+[0-9]+")
	list(TRANSFORM libev_lines REPLACE ".*EV_VERSION_[A-Z]+[ \t]+([0-9]+).*" "\\1")
	list(JOIN libev_lines "." Libev_VERSION)
	# Before 4.0 the functions had other names. An ev.h of another library has no version.
	if(Libev_VERSION VERSION_GREATER_EQUAL 4)
		set(Libev_FOUND TRUE)
	endif()
	unset(libev_lines)
endif()

if(Libev_FOUND AND NOT TARGET Ev::ev)
	add_library(Ev::ev UNKNOWN IMPORTED)
	set_target_properties(Ev::ev PROPERTIES
		IMPORTED_LOCATION ${Libev_LIBRARY}
		INTERFACE_INCLUDE_DIRECTORIES ${Libev_INCLUDE_DIR})
	# A static libev needs libm.
	if(Libev_LIBRARY MATCHES "\\.a$")
		set_target_properties(Ev::ev PROPERTIES INTERFACE_LINK_LIBRARIES m)
	endif()
endif()

if(Libev_FIND_REQUIRED AND NOT Libev_FOUND)
	message(FATAL_ERROR "spoke needs libev 4 (ev.h and libev): install it with "
		"\"apt-get install libev-dev\" or from http://software.schmorp.de/pkg/libev.html, "
		"or add its prefix to CMAKE_PREFIX_PATH")
endif()
