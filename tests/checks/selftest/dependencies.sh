# SPDX-License-Identifier: Apache-2.0
sed 's/PATH_SUFFIXES libev//' core/cmake/FindLibev.cmake >"$copy/core/cmake/FindLibev.cmake"
red "dependencies build/dev ev-folder" 'form ev-folder: was not found'
