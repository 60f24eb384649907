/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of secure worlds, for builds without TLS: there are none. */
#include "tests/sim/sim.h"

const char *sim_cert(unsigned which, unsigned set)
{
	(void)which;
	(void)set;
	return NULL;
}
