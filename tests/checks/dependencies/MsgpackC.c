/* SPDX-License-Identifier: Apache-2.0 */
#include <msgpack.h>
#include <stdio.h>

int main(void)
{
	return printf("%d %s\n", msgpack_version_major(), FOUND_VERSION) < 0;
}
