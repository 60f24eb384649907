# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=<file> -DOUTPUT=<file.c> -DHEADER=<header> -DNAME=<name> -P EmbedFile.cmake
# Writes the bytes of a file as a C array.
#
# A script (*.js) becomes smaller. It loses the lines that begin with a comment, except the first; tabs
# at the beginning of lines; blanks beside operators and brackets; line ends after { ; and , and before };
# and ; or , before }. const becomes let, and declarations are joined. So strings contain no blanks, and
# only a declaration ends with }; before another one.
file(READ ${INPUT} bytes HEX)
if(INPUT MATCHES "[.]js$")
	string(REGEX REPLACE "(..)" "\\1," bytes "${bytes}")
	string(REGEX REPLACE "0a,(09,)+" "0a," bytes "${bytes}")
	string(REGEX REPLACE "0a,2f,2f,(([1-9a-f].|0[0-9b-f]),)*" "" bytes "${bytes}")
	string(REPLACE "0a,0a," "0a," bytes "${bytes}")
	string(REPLACE "63,6f,6e,73,74,20," "6c,65,74,20," bytes "${bytes}")
	# = > < & | + - ! ? : ; , { } [ ] ( ) and blank
	set(marks "(3d|3e|3c|26|7c|2b|2d|21|3f|3a|3b|2c|7b|7d|5b|5d|28|29|20)")
	string(REGEX REPLACE "20,(${marks},)" "\\1" bytes "${bytes}")
	string(REGEX REPLACE "(${marks},)20," "\\1" bytes "${bytes}")
	string(REGEX REPLACE "((7b|3b|2c),)0a," "\\1" bytes "${bytes}")
	string(REGEX REPLACE "(3b,|2c,)?(0a,)?(7d,)" "\\3" bytes "${bytes}")
	string(REPLACE "7d,3b,6c,65,74,20," "7d,2c," bytes "${bytes}")
	# let and a blank or [, then neither ; nor { nor }
	set(plain "(6c,65,74,(20|5b),(([0-24-689a-f].|[37][0-9ac-f]),)*)")
	unset(before)
	while(NOT before STREQUAL bytes)
		set(before "${bytes}")
		string(REGEX REPLACE "${plain}3b,6c,65,74,20," "\\12c," bytes "${bytes}")
	endwhile()
	string(REPLACE "," "" bytes "${bytes}")
endif()
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"${HEADER}\"

const unsigned char ${NAME}[] = {
${bytes}
};
const size_t ${NAME}_len = sizeof(${NAME});
")
