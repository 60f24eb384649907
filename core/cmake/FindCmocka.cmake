# SPDX-License-Identifier: Apache-2.0
# Finds cmocka: target cmocka::cmocka. Sets Cmocka_FOUND.
# Newer packages of cmocka define the target; 1.1.5 only sets variables. Others have a pkg-config file
# or neither.

if(NOT TARGET cmocka::cmocka)
	find_package(cmocka CONFIG QUIET)
	mark_as_advanced(cmocka_DIR)
endif()
if(NOT TARGET cmocka::cmocka)
	find_package(PkgConfig QUIET)
	if(PKG_CONFIG_FOUND)
		pkg_search_module(Cmocka_PC QUIET cmocka)
	endif()
	find_path(Cmocka_INCLUDE_DIR cmocka.h
		HINTS ${CMOCKA_INCLUDE_DIR} ${Cmocka_PC_INCLUDE_DIRS})
	find_library(Cmocka_LIBRARY NAMES cmocka cmocka-static HINTS ${Cmocka_PC_LIBRARY_DIRS})
	mark_as_advanced(Cmocka_INCLUDE_DIR Cmocka_LIBRARY)
	if(Cmocka_INCLUDE_DIR AND Cmocka_LIBRARY)
		add_library(cmocka::cmocka UNKNOWN IMPORTED)
		set_target_properties(cmocka::cmocka PROPERTIES
			IMPORTED_LOCATION ${Cmocka_LIBRARY}
			INTERFACE_INCLUDE_DIRECTORIES ${Cmocka_INCLUDE_DIR})
	endif()
endif()

set(Cmocka_FOUND FALSE)
if(TARGET cmocka::cmocka)
	set(Cmocka_FOUND TRUE)
endif()

if(Cmocka_FIND_REQUIRED AND NOT Cmocka_FOUND)
	message(FATAL_ERROR "spoke's tests need cmocka (cmocka.h and libcmocka): install it with "
		"\"apt-get install libcmocka-dev\" or from https://cmocka.org, or add its prefix to "
		"CMAKE_PREFIX_PATH, or build without tests: SPOKE_BUILD_TESTS=OFF")
endif()
