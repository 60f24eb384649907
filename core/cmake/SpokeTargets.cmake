# SPDX-License-Identifier: Apache-2.0
# Functions that define the targets of spoke: common flags, one target per floor, and the library of all
# floors.
include_guard(GLOBAL)

set(SPOKE_WARNINGS
	-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes
	-Wmissing-prototypes -Wold-style-definition -Wundef -Wformat=2 -Wcast-align -Wcast-qual
	-Wpointer-arith -Wwrite-strings -Wswitch-enum -Wvla -Wnull-dereference -Wdouble-promotion
	-Wimplicit-fallthrough -Wmissing-declarations -Wredundant-decls -Wnested-externs
	-Wdate-time -Wfloat-equal
	$<$<C_COMPILER_ID:GNU>:-Wlogical-op> $<$<C_COMPILER_ID:GNU>:-Wduplicated-cond>
	$<$<C_COMPILER_ID:GNU>:-Wduplicated-branches> $<$<C_COMPILER_ID:GNU>:-Wjump-misses-init>
	$<$<C_COMPILER_ID:GNU>:-Warith-conversion>
	$<$<BOOL:${SPOKE_WERROR}>:-Werror>)

# libev's watchers inherit through a common prefix, which violates strict aliasing.
set(SPOKE_COMPILE_OPTIONS ${SPOKE_WARNINGS} -fno-strict-aliasing)
# Failed assertions show relative paths instead of paths of the build machine.
list(APPEND SPOKE_COMPILE_OPTIONS "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
set(SPOKE_LINK_OPTIONS)

# The x87 rounds products twice, so that some doubles would change on their way through Hessian 2.
include(CheckCSourceCompiles)
check_c_source_compiles("
#ifndef __i386__
#error another processor
#endif
int main(void) { return 0; }" SPOKE_IS_I386)
if(SPOKE_IS_I386)
	list(APPEND SPOKE_COMPILE_OPTIONS -msse2 -mfpmath=sse)
endif()

# Release builds use LTO, because a call passes through functions of many files. The objects also contain
# ordinary code for other linkers.
set(SPOKE_LTO)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT SPOKE_SANITIZE AND NOT SPOKE_FUZZ)
	set(SPOKE_LTO "$<$<CONFIG:Release>:-O3;-flto=auto;-ffat-lto-objects>")
endif()

if(SPOKE_SANITIZE)
	list(APPEND SPOKE_COMPILE_OPTIONS -fsanitize=${SPOKE_SANITIZE} -fno-sanitize-recover=all
		-fno-omit-frame-pointer)
	list(APPEND SPOKE_LINK_OPTIONS -fsanitize=${SPOKE_SANITIZE})
	# There are hundreds of programs of tests, and lld takes half the time for each.
	find_program(SPOKE_LLD ld.lld)
	mark_as_advanced(SPOKE_LLD)
	if(SPOKE_LLD)
		list(APPEND SPOKE_LINK_OPTIONS -fuse-ld=lld)
	endif()
endif()
if(SPOKE_FUZZ)
	if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
		message(FATAL_ERROR "SPOKE_FUZZ needs clang: set CMAKE_C_COMPILER to clang")
	endif()
	list(APPEND SPOKE_COMPILE_OPTIONS -fsanitize=fuzzer-no-link)
endif()

# spoke_settings(<target>): sets language and flags of a target.
function(spoke_settings target)
	set_target_properties(${target} PROPERTIES
		C_STANDARD 11
		C_STANDARD_REQUIRED ON
		C_EXTENSIONS OFF
		C_VISIBILITY_PRESET hidden
		POSITION_INDEPENDENT_CODE ON)
	target_compile_options(${target} PRIVATE ${SPOKE_COMPILE_OPTIONS})
	target_link_options(${target} PRIVATE ${SPOKE_LINK_OPTIONS})
	# The templates of msgpack-c encode values, so only its headers are needed.
	target_include_directories(${target} SYSTEM PRIVATE
		$<TARGET_PROPERTY:Msgpack::headers,INTERFACE_INCLUDE_DIRECTORIES>)
endfunction()

# The N of libspoke.so.N: raised when a released ABI changes, independent of the version.
set(SPOKE_ABI 0)

# spoke_library(<target> <SHARED|STATIC>): a library of all floors, libspoke on disk.
function(spoke_library target kind)
	add_library(${target} ${kind})
	spoke_settings(${target})
	target_link_options(${target} PRIVATE ${SPOKE_LTO})
	set_target_properties(${target} PROPERTIES
		OUTPUT_NAME spoke
		LINKER_LANGUAGE C
		VERSION ${PROJECT_VERSION}
		SOVERSION ${SPOKE_ABI})
	# The program defines the symbols of sanitizers.
	if(kind STREQUAL "SHARED" AND NOT SPOKE_SANITIZE AND NOT SPOKE_FUZZ)
		target_link_options(${target} PRIVATE LINKER:-z,defs)
	endif()
endfunction()

# spoke_floor(<name> [APART <file>...] [ON <target>...] [USES <library>...] [SET <file set>])
#
# Defines one floor: target spoke_<name>, which uses only the targets after ON. The floors above and the
# tests link the floor, so tests can use hidden symbols. Its sources are all .c files of the folder but those
# APART; its public headers, all of include/, are installed. USES are third-party libraries of the sources;
# users of the floor link them, but do not see their headers. SET names a file set of the public headers
# other than HEADERS, to be installed apart.
function(spoke_floor name)
	cmake_parse_arguments(PARSE_ARGV 1 arg "" "SET" "APART;ON;USES")
	set(floor spoke_${name})
	set(folder ${CMAKE_CURRENT_SOURCE_DIR})
	file(GLOB_RECURSE sources RELATIVE ${folder} CONFIGURE_DEPENDS ${folder}/*.c)
	file(GLOB public CONFIGURE_DEPENDS ${folder}/include/spoke/*.h)
	list(REMOVE_ITEM sources ${arg_APART})
	if(NOT arg_SET)
		set(arg_SET HEADERS)
	endif()

	add_library(${floor} STATIC ${sources})
	spoke_settings(${floor})
	target_compile_options(${floor} PRIVATE ${SPOKE_LTO})
	# Tests link the ordinary code, because LTO for each test would take minutes.
	target_link_options(${floor} INTERFACE $<$<BOOL:${SPOKE_LTO}>:-fno-lto>)
	target_include_directories(${floor} PUBLIC ${PROJECT_SOURCE_DIR} ${folder}/include)
	target_link_libraries(${floor} PUBLIC ${arg_ON} PRIVATE ${arg_USES})

	foreach(library spoke spoke_static)
		target_sources(${library} PRIVATE $<TARGET_OBJECTS:${floor}>
			PUBLIC FILE_SET ${arg_SET} TYPE HEADERS BASE_DIRS ${folder}/include FILES ${public})
		target_link_libraries(${library} PRIVATE ${arg_USES})
	endforeach()
endfunction()

# spoke_side_library(<name> ON <target>... SOURCES <file>...)
#
# Sources of a floor that libspoke does not contain: a static library spoke_<name>, built when a target links it.
function(spoke_side_library name)
	cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ON;SOURCES")
	add_library(spoke_${name} STATIC EXCLUDE_FROM_ALL ${arg_SOURCES})
	spoke_settings(spoke_${name})
	target_link_libraries(spoke_${name} PUBLIC ${arg_ON})
endfunction()

# spoke_embed(<floor> <file> <header> <name>): embeds a file as the array <name> with the length
# <name>_len, both declared in the header.
function(spoke_embed floor file header name)
	set(input ${CMAKE_CURRENT_SOURCE_DIR}/${file})
	cmake_path(GET file STEM stem)
	set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${stem}.c)
	set(script ${PROJECT_SOURCE_DIR}/core/cmake/EmbedFile.cmake)
	add_custom_command(OUTPUT ${output}
		COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DHEADER=${header}
			-DNAME=${name} -P ${script}
		DEPENDS ${input} ${script}
		COMMENT "Embedding ${file}"
		VERBATIM)
	target_sources(spoke_${floor} PRIVATE ${output})
endfunction()

# spoke_adapter(<floor> <library> <definition> <sentence> <file>...)
#
# Adds sources that need an optional library, which the floor has APART. With the library, defines the macro
# for the sources of the floor; without it, prints the sentence.
function(spoke_adapter name library definition sentence)
	if(TARGET ${library})
		target_sources(spoke_${name} PRIVATE ${ARGN})
		target_compile_definitions(spoke_${name} PRIVATE ${definition})
		foreach(target spoke_${name} spoke spoke_static)
			target_link_libraries(${target} PRIVATE ${library})
		endforeach()
	else()
		message(STATUS "${sentence}")
	endif()
endfunction()
