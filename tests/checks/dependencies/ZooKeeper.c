/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <zookeeper/zookeeper.h>

int main(void)
{
	return printf("%d %s\n", zoo_state(NULL), FOUND_VERSION) < 0;
}
