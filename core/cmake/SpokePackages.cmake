# SPDX-License-Identifier: Apache-2.0
# Debian packages, by "cpack" in a build directory: libspoke0 (the library), libspoke-dev (to build with
# it), libspoke-wheel-dev (the wheel alone) and spoke (the command). Other systems get an archive.
include_guard(GLOBAL)

set(spoke_deb_dir ${PROJECT_BINARY_DIR}/install/debian)
set(spoke_deb_library libspoke${SPOKE_ABI})

set(CPACK_GENERATOR TGZ)
if(EXISTS /etc/debian_version)
	set(CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGE_NAME spoke)
set(CPACK_PACKAGE_VENDOR "The spoke project")
set(CPACK_PACKAGE_CONTACT "The spoke project <spoke@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_CHECKSUM)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL spoke_library spoke_wheel spoke_development)
if(TARGET spoke_command)
	list(APPEND CPACK_COMPONENTS_ALL spoke_command)
endif()

set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/SpokeDebianFiles.cmake)
set(CPACK_SPOKE_CHANGELOG ${spoke_deb_dir}/changelog.Debian)
set(CPACK_SPOKE_COPYRIGHT ${spoke_deb_dir}/copyright)
set(CPACK_SPOKE_STRIP ${CMAKE_STRIP})

# spoke_package(<component> <name> <section> <kind> <contents> <dependencies>)
macro(spoke_package component name section kind contents depends)
	string(TOUPPER spoke_${component} spoke_deb)
	set(CPACK_DEBIAN_${spoke_deb}_PACKAGE_NAME ${name})
	set(CPACK_DEBIAN_${spoke_deb}_PACKAGE_SECTION ${section})
	set(CPACK_DEBIAN_${spoke_deb}_PACKAGE_DEPENDS "${depends}")
	string(CONCAT CPACK_DEBIAN_${spoke_deb}_DESCRIPTION
		"RPC framework with one timing wheel per event loop - ${kind}\n"
		"spoke calls and serves methods over TCP or unix sockets, with the frames\n"
		"of Apache Dubbo or of MessagePack-RPC. One timing wheel per event loop\n"
		"times out requests, retries failed calls and detects silent peers.\n"
		".\n"
		"${contents}")
	set(CPACK_SPOKE_NAME_spoke_${component} ${name})
endmacro()

# The packages must be of the same build.
set(spoke_deb_same
	"${spoke_deb_library} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
spoke_package(library ${spoke_deb_library} libs library "This package has the shared library." "")
spoke_package(development libspoke-dev libdevel development
	"This package has headers, the static library, spoke.pc, a CMake package,\nexamples and the manual page spoke(3)."
	"${spoke_deb_same}, libspoke-wheel-dev (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), libev-dev")
spoke_package(wheel libspoke-wheel-dev libdevel "timing wheel"
	"This package has the timing wheel alone: three headers, a static library and\nspoke-wheel.pc. It needs the C library only."
	"")
spoke_package(command spoke net command
	"This package has the command spoke, which calls, serves, measures and\nwatches services."
	"${spoke_deb_same}")

# The static library depends on it; the shared library is linked with it.
if(TARGET ZooKeeper::st)
	string(APPEND CPACK_DEBIAN_SPOKE_DEVELOPMENT_PACKAGE_DEPENDS ", libzookeeper-st-dev")
endif()
if(TARGET OpenSSL::SSL)
	string(APPEND CPACK_DEBIAN_SPOKE_DEVELOPMENT_PACKAGE_DEPENDS ", libssl-dev")
endif()
# <spoke/value_msgpack.h> is for programs that use msgpack-c.
set(CPACK_DEBIAN_SPOKE_DEVELOPMENT_PACKAGE_SUGGESTS libmsgpack-dev)

set(CPACK_DEBIAN_SPOKE_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_SPOKE_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
file(WRITE ${spoke_deb_dir}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_SPOKE_LIBRARY_PACKAGE_CONTROL_EXTRA ${spoke_deb_dir}/triggers)

string(TIMESTAMP spoke_deb_year "%Y" UTC)
configure_file(${CMAKE_CURRENT_LIST_DIR}/debian-copyright.in ${spoke_deb_dir}/copyright @ONLY)
string(TIMESTAMP spoke_deb_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(${CMAKE_CURRENT_LIST_DIR}/debian-changelog.in ${spoke_deb_dir}/changelog.Debian @ONLY)

include(CPack)
