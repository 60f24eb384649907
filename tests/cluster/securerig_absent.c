/* SPDX-License-Identifier: Apache-2.0 */
/* The same without the library of TLS: its settings are skipped. */
#include "tests/cluster/securerig.h"

const struct spokei_stream_kind secure_stream = { .name = "secure" };

bool secure_begin(struct secure *secure, struct spokei_world *world, const char *folder)
{
	(void)secure;
	(void)world;
	(void)folder;
	return false;
}

void secure_end(const struct secure *secure)
{
	(void)secure;
}
