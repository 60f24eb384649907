# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=<file> -DOUTPUT=<file.c> -DHEADER=<header> -DNAME=<name> -P EmbedFile.cmake
# Writes the bytes of a file as a C array.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"${HEADER}\"

const unsigned char ${NAME}[] = {
${bytes}
};
const size_t ${NAME}_len = sizeof(${NAME});
")
