/* SPDX-License-Identifier: Apache-2.0 */
#include <ev.h>
#include <stdio.h>

int main(void)
{
	return printf("%d %s\n", ev_version_major(), FOUND_VERSION) < 0;
}
