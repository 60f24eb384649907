/* SPDX-License-Identifier: Apache-2.0 */
/* Issues certificates in a virtual process. */
#include "tests/transport/stream/issuer.h"

#include "tests/support/scene.h"
#include "tests/support/test.h"

struct issuer issuer;

RIG_STEP(issuer_set_up)
{
	const struct issue_options options = { .name = "authority" };

	scene_open(&issuer.world, 1);
	spokei_world_process_init(&issuer.process, &issuer.world);
	assert_int_equal(issue_make(&issuer.process.env, &options, &issuer.ca), 0);
}

RIG_STEP(issuer_tear_down)
{
	spokei_world_process_fini(&issuer.process);
	spokei_world_fini(&issuer.world);
}

int issuer_issue(const char *names, uint32_t days)
{
	const struct issue_options options = {
		.name = "provider",
		.names = names,
		.days = days,
		.key = ISSUE_ED25519,
		.ca = issuer.ca.cert,
		.ca_key = issuer.ca.key,
	};

	return issue_make(&issuer.process.env, &options, &issuer.issued);
}
