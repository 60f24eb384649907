# SPDX-License-Identifier: Apache-2.0
# Finds ZooKeeper's single-threaded C library, 3.5 or later: target ZooKeeper::st. It ships neither a CMake
# package nor a pkg-config file. Sets ZooKeeper_FOUND and ZooKeeper_VERSION; uses the cache variables
# ZooKeeper_INCLUDE_DIR, ZooKeeper_LIBRARY. The multi-threaded library (zookeeper_mt) is not suitable,
# because it starts threads.

find_path(ZooKeeper_INCLUDE_DIR zookeeper/zookeeper.h)
find_library(ZooKeeper_LIBRARY zookeeper_st)
mark_as_advanced(ZooKeeper_INCLUDE_DIR ZooKeeper_LIBRARY)

set(ZooKeeper_FOUND FALSE)
unset(ZooKeeper_VERSION)
if(ZooKeeper_INCLUDE_DIR AND ZooKeeper_LIBRARY)
	# 3.4 defines numbers, later versions a string.
	file(STRINGS ${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper_version.h zookeeper_lines
		REGEX "^#define ZOO_VERSION \"[0-9.]+")
	if(zookeeper_lines MATCHES "\"([0-9.]+)")
		set(ZooKeeper_VERSION ${CMAKE_MATCH_1})
	endif()
	unset(zookeeper_lines)
	file(STRINGS ${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper.h zookeeper_lines
		REGEX "zookeeper_init2")
	if(zookeeper_lines)
		set(ZooKeeper_FOUND TRUE)
	endif()
	unset(zookeeper_lines)
endif()

if(ZooKeeper_FOUND AND NOT TARGET ZooKeeper::st)
	add_library(ZooKeeper::st UNKNOWN IMPORTED)
	set_target_properties(ZooKeeper::st PROPERTIES
		IMPORTED_LOCATION ${ZooKeeper_LIBRARY}
		INTERFACE_INCLUDE_DIRECTORIES ${ZooKeeper_INCLUDE_DIR})
	# A static library needs libm.
	if(ZooKeeper_LIBRARY MATCHES "\\.a$")
		set_target_properties(ZooKeeper::st PROPERTIES INTERFACE_LINK_LIBRARIES m)
	endif()
endif()

if(ZooKeeper_FIND_REQUIRED AND NOT ZooKeeper_FOUND)
	message(FATAL_ERROR "this needs ZooKeeper's C library from 3.5 on (zookeeper/zookeeper.h and "
		"libzookeeper_st): install it with \"apt-get install libzookeeper-st-dev\", or add its "
		"prefix to CMAKE_PREFIX_PATH")
endif()
