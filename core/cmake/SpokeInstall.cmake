# SPDX-License-Identifier: Apache-2.0
# Installs the libraries, their headers, .pc files, the CMake package, the command with its manual and
# completions, examples, and documents; the target uninstall removes them. All references are relative paths, so a tree can be installed to any prefix
# and moved afterwards.
include_guard(GLOBAL)

# Debian has a library directory per architecture, also below /usr/local. GNUInstallDirs uses it for the
# prefix /usr only, but packages for /usr are made from build trees with any prefix.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_INSTALL_LIBDIR AND CMAKE_LIBRARY_ARCHITECTURE
		AND EXISTS /etc/debian_version AND NOT CMAKE_CROSSCOMPILING)
	set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE}
		CACHE PATH "Libraries, below the prefix")
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(spoke_share ${CMAKE_INSTALL_DATAROOTDIR})
set(spoke_examples_dir ${spoke_share}/doc/spoke/examples)
set(spoke_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/spoke)
set(spoke_made ${PROJECT_BINARY_DIR}/install)

# --- the libraries

install(TARGETS spoke EXPORT spoke-shared
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
		COMPONENT spoke_library NAMELINK_COMPONENT spoke_development
	FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT spoke_development
	FILE_SET wheel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT spoke_wheel)
install(TARGETS spoke_static EXPORT spoke-static
	ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT spoke_development
	FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT spoke_development
	FILE_SET wheel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT spoke_wheel)
install(TARGETS spoke_wheel
	ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT spoke_wheel)

install(FILES ${PROJECT_SOURCE_DIR}/cluster/include/spoke/spoke.hpp
	DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/spoke COMPONENT spoke_development)

# spoke_ordinary(<archive> <component>): the LTO code in a static library works only with the same version of
# the same compiler; other compilers refuse to link it. Keeps only the ordinary code.
function(spoke_ordinary archive component)
	install(CODE "
	set(spoke_archive \"${CMAKE_INSTALL_LIBDIR}/${archive}\")
	if(NOT IS_ABSOLUTE \"\${spoke_archive}\")
		string(PREPEND spoke_archive \"\${CMAKE_INSTALL_PREFIX}/\")
	endif()
	execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --remove-section=.gnu.lto_*
		--remove-section=.gnu.debuglto_* --strip-symbol=__gnu_lto_v1
		\"\$ENV{DESTDIR}\${spoke_archive}\" COMMAND_ERROR_IS_FATAL ANY)"
		COMPONENT ${component})
endfunction()
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
	spoke_ordinary(libspoke.a spoke_development)
	spoke_ordinary(libspoke-wheel.a spoke_wheel)
endif()

# --- the CMake package

# Only users of the static library need its dependencies, so each library has its targets in a file of
# its own.
foreach(kind shared static)
	install(EXPORT spoke-${kind} NAMESPACE spoke:: FILE spoke-${kind}.cmake
		DESTINATION ${spoke_cmake_dir} COMPONENT spoke_development)
endforeach()

set(spoke_modules Libev)
if(TARGET ZooKeeper::st)
	list(APPEND spoke_modules ZooKeeper)
endif()
set(spoke_own_modules ${spoke_modules})
if(TARGET OpenSSL::SSL)
	list(APPEND spoke_modules OpenSSL) # CMake has a module for it
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/spoke-config.cmake.in
	${spoke_made}/spoke-config.cmake INSTALL_DESTINATION ${spoke_cmake_dir}
	NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 a minor version may change the API.
if(PROJECT_VERSION_MAJOR EQUAL 0)
	set(spoke_compatibility SameMinorVersion)
else()
	set(spoke_compatibility SameMajorVersion)
endif()
write_basic_package_version_file(${spoke_made}/spoke-config-version.cmake
	COMPATIBILITY ${spoke_compatibility})
set(spoke_files ${spoke_made}/spoke-config.cmake ${spoke_made}/spoke-config-version.cmake)
foreach(module IN LISTS spoke_own_modules)
	list(APPEND spoke_files ${CMAKE_CURRENT_LIST_DIR}/Find${module}.cmake)
endforeach()
install(FILES ${spoke_files} DESTINATION ${spoke_cmake_dir} COMPONENT spoke_development)

# --- spoke.pc and spoke-wheel.pc

# spoke_pc_escape(<variable> <path>): escapes spaces for a .pc file. pkg-config itself escapes the value
# of pcfiledir.
function(spoke_pc_escape ret path)
	string(REPLACE " " "\\ " path ${path})
	set(${ret} ${path} PARENT_SCOPE)
endfunction()

# spoke_link_flags(<variable> <library file>...): the linker flags of libraries, e.g. "-lev".
function(spoke_link_flags ret)
	set(flags)
	foreach(file ${ARGN})
		cmake_path(GET file PARENT_PATH dir)
		cmake_path(GET file STEM name)
		string(REGEX REPLACE "^lib" "" name ${name})
		if(NOT dir IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
			spoke_pc_escape(dir ${dir})
			list(APPEND flags -L${dir})
		endif()
		list(APPEND flags -l${name})
	endforeach()
	list(JOIN flags " " flags)
	set(${ret} ${flags} PARENT_SCOPE)
endfunction()

# spoke_pc_dir(<variable> <directory>): the directory relative to the prefix of the .pc file, if below it.
function(spoke_pc_dir ret dir)
	if(IS_ABSOLUTE ${dir})
		spoke_pc_escape(dir ${dir})
		set(${ret} ${dir} PARENT_SCOPE)
	else()
		set(${ret} "\${prefix}/${dir}" PARENT_SCOPE)
	endif()
endfunction()

spoke_pc_dir(spoke_pc_libdir ${CMAKE_INSTALL_LIBDIR})
spoke_pc_dir(spoke_pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
# Static versions of these need libm.
set(spoke_files ${Libev_LIBRARY})
if(TARGET ZooKeeper::st)
	list(APPEND spoke_files ${ZooKeeper_LIBRARY})
endif()
if(TARGET OpenSSL::SSL)
	list(APPEND spoke_files ${OPENSSL_SSL_LIBRARY} ${OPENSSL_CRYPTO_LIBRARY})
endif()
spoke_link_flags(spoke_pc_private ${spoke_files})
string(APPEND spoke_pc_private " -lm -pthread")

# The prefix is relative to the .pc file. Below /usr it is absolute, because pkg-config omits default
# directories by comparing strings.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
	spoke_pc_escape(spoke_pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
	string(REGEX REPLACE "[^/]+" ".." spoke_pc_up ${CMAKE_INSTALL_LIBDIR})
	set(spoke_pc_prefix "\${pcfiledir}/../${spoke_pc_up}")
endif()
# spoke_pc(<name> <component>)
function(spoke_pc name component)
	configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}.pc.in ${spoke_made}/${name}.pc @ONLY)
	set(spoke_pc_prefix /usr)
	configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}.pc.in ${spoke_made}/usr/${name}.pc @ONLY)
	install(CODE "
	set(spoke_pc_file \"${spoke_made}/${name}.pc\")
	set(spoke_pc_dir \"${CMAKE_INSTALL_LIBDIR}/pkgconfig\")
	if(CMAKE_INSTALL_PREFIX STREQUAL /usr)
		set(spoke_pc_file \"${spoke_made}/usr/${name}.pc\")
	endif()
	if(NOT IS_ABSOLUTE \"\${spoke_pc_dir}\")
		string(PREPEND spoke_pc_dir \"\${CMAKE_INSTALL_PREFIX}/\")
	endif()
	file(INSTALL \"\${spoke_pc_file}\" DESTINATION \"\${spoke_pc_dir}\")"
		COMPONENT ${component})
endfunction()
spoke_pc(spoke spoke_development)
spoke_pc(spoke-wheel spoke_wheel)

# --- the command, manuals, completions, examples

if(TARGET spoke_command)
	# The command finds its library after both are moved.
	cmake_path(SET spoke_bin NORMALIZE ${CMAKE_INSTALL_FULL_BINDIR})
	file(RELATIVE_PATH spoke_bin_to_lib ${spoke_bin} ${CMAKE_INSTALL_FULL_LIBDIR})
	set_target_properties(spoke_command PROPERTIES INSTALL_RPATH "$ORIGIN/${spoke_bin_to_lib}")
	install(TARGETS spoke_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
		COMPONENT spoke_command)
endif()

# spoke_install(<component> <directory> <file in examples/>...)
function(spoke_install component dir)
	set(files ${ARGN})
	list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/examples/)
	install(FILES ${files} DESTINATION ${dir} COMPONENT spoke_${component} OPTIONAL)
endfunction()

spoke_install(development ${CMAKE_INSTALL_MANDIR}/man3 spoke/spoke.3)
spoke_install(development ${spoke_examples_dir}
	ask.c echo_provider.c echo_consumer.c blocking_consumer.c many_engines.c order_provider.c order_consumer.c
	echo.cc)
spoke_install(development ${spoke_examples_dir}/loops
	loops/fd_loop.h loops/fd_loop.c loops/epoll_consumer.c loops/uv_consumer.c)
spoke_install(development ${spoke_examples_dir}/guide guide/provider.c guide/consumer.c)
spoke_install(command ${spoke_examples_dir}/spoke
	spoke/echo-provider.service spoke/echo-provider.socket spoke/spoke.conf)
if(TARGET spoke_command)
	spoke_install(command ${CMAKE_INSTALL_MANDIR}/man1 spoke/spoke.1)
	spoke_install(command ${CMAKE_INSTALL_MANDIR}/man5 spoke/spoke.conf.5)
	spoke_install(command ${spoke_share}/zsh/site-functions spoke/completion/_spoke)
	# bash looks for a file named like the command.
	install(FILES ${PROJECT_SOURCE_DIR}/examples/spoke/completion/spoke.bash
		DESTINATION ${spoke_share}/bash-completion/completions RENAME spoke
		COMPONENT spoke_command OPTIONAL)
endif()

# --- a manual page for each public header and function, made from the comments

find_program(SPOKE_AWK awk)
mark_as_advanced(SPOKE_AWK)
if(SPOKE_AWK)
	install(CODE "
	set(pages \"${spoke_made}/man3\")
	file(REMOVE_RECURSE \"\${pages}\")
	file(MAKE_DIRECTORY \"\${pages}\")
	file(GLOB headers \"${PROJECT_SOURCE_DIR}/*/include/spoke/*.h\")
	foreach(header IN LISTS headers)
		cmake_path(GET header FILENAME name)
		execute_process(COMMAND \"${SPOKE_AWK}\" -v name=\${name} -v version=${PROJECT_VERSION}
			-v \"links=\${pages}\" -f \"${CMAKE_CURRENT_LIST_DIR}/HeaderManual.awk\" \"\${header}\"
			OUTPUT_FILE \"\${pages}/spoke_\${name}.3\" COMMAND_ERROR_IS_FATAL ANY)
	endforeach()"
		COMPONENT spoke_development)
	install(DIRECTORY ${spoke_made}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR}
		COMPONENT spoke_development)
endif()

# The pages of MANUAL.md, each beside the code that it is about.
file(GLOB spoke_pages RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/timer/*.md
	${PROJECT_SOURCE_DIR}/core/*.md ${PROJECT_SOURCE_DIR}/transport/*.md ${PROJECT_SOURCE_DIR}/cluster/*.md
	${PROJECT_SOURCE_DIR}/cluster/*/*.md)
list(JOIN spoke_pages " " spoke_page_names)

# The same, and the documents, as HTML: target reference, written to install/reference of the build directory.
find_program(SPOKE_DOXYGEN doxygen)
mark_as_advanced(SPOKE_DOXYGEN)
if(SPOKE_AWK AND SPOKE_DOXYGEN AND PROJECT_IS_TOP_LEVEL)
	configure_file(${CMAKE_CURRENT_LIST_DIR}/Doxyfile.in ${spoke_made}/Doxyfile @ONLY)
	add_custom_target(reference
		COMMAND ${SPOKE_DOXYGEN} ${spoke_made}/Doxyfile
		COMMAND ${CMAKE_COMMAND} -E echo "${spoke_made}/reference/index.html"
		WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
		COMMENT "Writing the HTML reference"
		VERBATIM)
endif()

# --- the documents, in the folders that their links name

# Also what they name, except programs that need the whole tree: see tests/packaging/documents.sh.
foreach(document README.md GUIDE.md MANUAL.md CHANGELOG.md SECURITY.md ARCHITECTURE.md CONTRIBUTING.md LICENSE
		${spoke_pages} cluster/admin/status.h cluster/admin/settings.h tests/bench/RESULTS.md
		examples/demo/page-dark.webp examples/demo/page-light.webp)
	cmake_path(GET document PARENT_PATH dir)
	install(FILES ${PROJECT_SOURCE_DIR}/${document} DESTINATION ${spoke_share}/doc/spoke/${dir}
		COMPONENT spoke_development)
endforeach()
foreach(folder examples/comet examples/grafana examples/trace tests/bench/results)
	cmake_path(GET folder PARENT_PATH dir)
	install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${spoke_share}/doc/spoke/${dir}
		COMPONENT spoke_development PATTERN CMakeLists.txt EXCLUDE)
endforeach()

# --- the way back

if(PROJECT_IS_TOP_LEVEL)
	add_custom_target(uninstall
		COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
			-P ${CMAKE_CURRENT_LIST_DIR}/SpokeUninstall.cmake
		COMMENT "Removing the last installation"
		VERBATIM)
endif()
