/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the descriptors of the side under test. */
#define _GNU_SOURCE
#include "tests/integration/harness.h"

#include <spoke/host.h>

#include <errno.h>

void stage_forbid_descriptors(struct stage *stage)
{
	const struct spoke_env *env = spoke_host_env();
	struct spokei_vnet_user *user = &stage->processes[0].user;
	struct rlimit limit = stage->files;
	int lowest = -1;

	if (stage_is_virtual(stage)) {
		user->fds_max = user->fds;
		return;
	}
	assert_int_equal(env->net->spare(env->ctx, &lowest), 0);
	env->net->close(env->ctx, lowest);
	limit.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(env->net->spare(env->ctx, &lowest), -EMFILE);
}

void stage_allow_descriptors(struct stage *stage)
{
	if (stage_is_virtual(stage))
		stage->processes[0].user.fds_max = 0;
	else
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &stage->files), 0);
}
