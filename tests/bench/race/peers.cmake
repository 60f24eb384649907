# SPDX-License-Identifier: Apache-2.0
# The race, with the peers whose libraries are there.

add_executable(bench_race EXCLUDE_FROM_ALL
	race/contest.c race/bars.c race/machine.c race/page.c race/recorded.c race/results.c race/view.c
	race/peer_redis.c)
spoke_settings(bench_race)
target_compile_definitions(bench_race PRIVATE _GNU_SOURCE)
target_link_libraries(bench_race PRIVATE bench_contest bench_calls m)

# race_peer(<name> <header> <source> <library>...): with all of them the peer takes part.
function(race_peer name header source)
	find_path(${name}_INCLUDE_DIR ${header})
	mark_as_advanced(${name}_INCLUDE_DIR)
	set(libraries)
	foreach(library IN LISTS ARGN)
		find_library(${name}_${library}_LIBRARY ${library})
		mark_as_advanced(${name}_${library}_LIBRARY)
		list(APPEND libraries ${${name}_${library}_LIBRARY})
	endforeach()
	if(NOT ${name}_INCLUDE_DIR OR "${libraries}" MATCHES NOTFOUND)
		return()
	endif()
	# A library in C++ has warnings of C++.
	cmake_path(GET source EXTENSION LAST_ONLY extension)
	set(target bench_race)
	if(extension STREQUAL .cc)
		if(NOT CMAKE_CXX_COMPILER)
			return()
		endif()
		set(target bench_race_${name})
		add_library(${target} STATIC EXCLUDE_FROM_ALL ${source})
		set_target_properties(${target} PROPERTIES
			CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
		target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic
			$<$<BOOL:${SPOKE_WERROR}>:-Werror>)
		target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
		target_link_libraries(bench_race PRIVATE ${target})
	else()
		target_sources(${target} PRIVATE ${source})
	endif()
	target_include_directories(${target} SYSTEM PRIVATE ${${name}_INCLUDE_DIR})
	target_link_libraries(${target} PRIVATE ${libraries} Threads::Threads)
	string(TOUPPER RACE_${name} definition)
	target_compile_definitions(bench_race PRIVATE ${definition})
endfunction()

include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
	enable_language(CXX)
endif()
race_peer(grpc grpcpp/grpcpp.h race/peer_grpc.cc grpc++ grpc gpr absl_synchronization)
race_peer(capnp capnp/rpc-twoparty.h race/peer_capnp.cc capnp-rpc capnp kj-async kj)
race_peer(zeromq zmq.h race/peer_zeromq.c zmq)
race_peer(nng nng/nng.h race/peer_nng.c nng)
