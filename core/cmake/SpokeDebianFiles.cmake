# SPDX-License-Identifier: Apache-2.0
# Run by cpack on the files of each package before it is made: applies the rules of Debian policy.
if(NOT CPACK_GENERATOR STREQUAL DEB)
	return()
endif()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
	set(name ${CPACK_SPOKE_NAME_${component}})
	set(usr ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)

	file(COPY ${CPACK_SPOKE_COPYRIGHT} ${CPACK_SPOKE_CHANGELOG}
		DESTINATION ${usr}/share/doc/${name}
		FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
	# Sets permissions independent of the umask.
	execute_process(COMMAND find ${usr}/.. -type d -exec chmod 755 {} +
		COMMAND_ERROR_IS_FATAL ANY)
	file(GLOB texts ${usr}/share/doc/${name}/changelog.Debian ${usr}/share/man/man*/*)
	execute_process(COMMAND gzip -9nf ${texts} COMMAND_ERROR_IS_FATAL ANY)

	file(GLOB_RECURSE archives ${usr}/lib/*.a)
	foreach(archive IN LISTS archives)
		execute_process(COMMAND ${CPACK_SPOKE_STRIP} --strip-debug --remove-section=.comment
			--enable-deterministic-archives ${archive} COMMAND_ERROR_IS_FATAL ANY)
	endforeach()

	# The command needs no RUNPATH, because its library is in a default directory.
	file(GLOB programs ${usr}/bin/*)
	foreach(program IN LISTS programs)
		file(RPATH_REMOVE FILE ${program})
	endforeach()

	if(EXISTS ${usr}/share/zsh/site-functions)
		file(RENAME ${usr}/share/zsh/site-functions ${usr}/share/zsh/vendor-completions)
	endif()
endforeach()
