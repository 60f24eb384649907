# SPDX-License-Identifier: Apache-2.0
mkdir -p "$copy/build/dev"
echo 'int spokei_plant; int plant;' | gcc -shared -fPIC -x c -o "$copy/build/dev/libspoke.so" -
red symbols '+spokei_plant' \
	'plant: exported, but'
