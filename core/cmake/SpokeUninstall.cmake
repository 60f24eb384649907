# SPDX-License-Identifier: Apache-2.0
# cmake -DMANIFEST=<install_manifest.txt> -P SpokeUninstall.cmake
# Removes the files that the last "cmake --install" of a build directory installed, and the folders that
# are empty then. DESTDIR counts as it did for the installation.
if(NOT EXISTS ${MANIFEST})
	message(FATAL_ERROR "nothing was installed from here: ${MANIFEST} does not exist")
endif()
file(STRINGS ${MANIFEST} files)

set(dirs)
foreach(file IN LISTS files)
	set(path "$ENV{DESTDIR}${file}")
	if(EXISTS "${path}" OR IS_SYMLINK "${path}")
		message(STATUS "Removing: ${path}")
		file(REMOVE "${path}")
	endif()
	# Folders of spoke's own may contain others; bin, lib and the like stay.
	cmake_path(GET path PARENT_PATH dir)
	while(dir MATCHES "/spoke(/|$)")
		list(APPEND dirs "${dir}")
		cmake_path(GET dir PARENT_PATH dir)
	endwhile()
endforeach()

# The deepest folder first. rmdir refuses folders that are not empty.
list(REMOVE_DUPLICATES dirs)
list(SORT dirs ORDER DESCENDING)
foreach(dir IN LISTS dirs)
	execute_process(COMMAND rmdir "${dir}" OUTPUT_QUIET ERROR_QUIET)
endforeach()
file(REMOVE ${MANIFEST})
