# SPDX-License-Identifier: Apache-2.0
# Finds msgpack-c, the C library, in any installed form: target Msgpack::c, and Msgpack::headers for
# code that inlines its templates and links nothing.
# Sets MsgpackC_FOUND and, if the header defines it, MsgpackC_VERSION.
#
#   up to 4.x   package msgpack     target msgpackc    library msgpackc    msgpack.pc
#   5.x         package msgpackc    target msgpackc    library msgpackc    msgpack.pc
#   from 6.0    package msgpack-c   target msgpack-c   library msgpack-c   msgpack-c.pc
#
# Only a target identifies the right package: the C++ library also installs a package "msgpack", without a
# C target. Without a usable package, this module looks for header and library, with pkg-config if
# available.

if(TARGET Msgpack::c)
	set(MsgpackC_FOUND TRUE)
	return()
endif()

set(msgpack_targets msgpack-c msgpackc msgpack-c-static msgpackc-static)

# Sets msgpack_target to the first target that exists.
macro(msgpack_look_for_target)
	foreach(candidate IN LISTS msgpack_targets)
		if(NOT msgpack_target AND TARGET ${candidate})
			set(msgpack_target ${candidate})
		endif()
	endforeach()
	unset(candidate)
endmacro()

set(msgpack_target)
msgpack_look_for_target()
foreach(package msgpack-c msgpackc msgpack)
	if(NOT msgpack_target)
		find_package(${package} CONFIG QUIET)
		mark_as_advanced(${package}_DIR)
		msgpack_look_for_target()
	endif()
endforeach()
unset(package)

unset(MsgpackC_VERSION)
set(msgpack_include_dirs)
if(msgpack_target)
	get_target_property(msgpack_include_dirs ${msgpack_target} INTERFACE_INCLUDE_DIRECTORIES)
	add_library(Msgpack::c INTERFACE IMPORTED)
	set_target_properties(Msgpack::c PROPERTIES INTERFACE_LINK_LIBRARIES ${msgpack_target})
else()
	find_package(PkgConfig QUIET)
	if(PKG_CONFIG_FOUND)
		pkg_search_module(MsgpackC_PC QUIET msgpack-c msgpack)
	endif()
	find_path(MsgpackC_INCLUDE_DIR msgpack.h HINTS ${MsgpackC_PC_INCLUDE_DIRS})
	find_library(MsgpackC_LIBRARY NAMES msgpack-c msgpackc HINTS ${MsgpackC_PC_LIBRARY_DIRS})
	mark_as_advanced(MsgpackC_INCLUDE_DIR MsgpackC_LIBRARY)
	if(MsgpackC_INCLUDE_DIR AND MsgpackC_LIBRARY)
		set(msgpack_include_dirs ${MsgpackC_INCLUDE_DIR})
		add_library(Msgpack::c UNKNOWN IMPORTED)
		set_target_properties(Msgpack::c PROPERTIES
			IMPORTED_LOCATION ${MsgpackC_LIBRARY}
			INTERFACE_INCLUDE_DIRECTORIES ${MsgpackC_INCLUDE_DIR})
	endif()
endif()

set(MsgpackC_FOUND FALSE)
if(TARGET Msgpack::c)
	set(MsgpackC_FOUND TRUE)
	add_library(Msgpack::headers INTERFACE IMPORTED)
	if(msgpack_include_dirs)
		set_target_properties(Msgpack::headers PROPERTIES
			INTERFACE_INCLUDE_DIRECTORIES "${msgpack_include_dirs}")
	endif()
endif()

# A target of a build tree may carry generator expressions instead of plain directories.
foreach(dir IN LISTS msgpack_include_dirs)
	if(NOT MsgpackC_VERSION AND EXISTS "${dir}/msgpack/version_master.h")
		file(STRINGS ${dir}/msgpack/version_master.h msgpack_lines
			REGEX "^#define MSGPACK_VERSION_(MAJOR|MINOR|REVISION)[ \t]+[0-9]+")
		list(TRANSFORM msgpack_lines REPLACE ".*[ \t]([0-9]+).*" "\\1")
		list(JOIN msgpack_lines "." MsgpackC_VERSION)
	endif()
endforeach()
unset(dir)
unset(msgpack_lines)
unset(msgpack_include_dirs)
unset(msgpack_target)
unset(msgpack_targets)

if(MsgpackC_FIND_REQUIRED AND NOT MsgpackC_FOUND)
	message(FATAL_ERROR "spoke needs msgpack-c (msgpack.h and libmsgpackc or libmsgpack-c; the C "
		"library, not the C++ one): install it with \"apt-get install libmsgpack-dev\" or from "
		"https://github.com/msgpack/msgpack-c, or add its prefix to CMAKE_PREFIX_PATH")
endif()
