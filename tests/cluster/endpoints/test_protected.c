/* SPDX-License-Identifier: Apache-2.0 */
/* Lists without a usable provider, and registry.protect. */
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/test.h"

static const struct spoke_consumer_options presets;

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(only_own_disabled_providers_empty_a_protected_list)
{
	static const char *const foreign[] = {
		"dubbo://127.0.0.1:20880/demo.Other?disabled=true",
		A "?disabled=true&group=other",
		A "?disabled=true&version=2",
	};

	dirrig_start(0);
	dirrig_consume("", &presets);
	dirrig_beat(MS);
	dirrig.consumer->directory->settings.protects = true;
	LIST(A);
	dirrig_pass(10 * MS);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		LIST(foreign[i]);
		assert_int_equal(dirrig_call(), SPOKE_OK);
	}
	LIST(A "?disabled=true");
	assert_int_equal(dirrig_call(), SPOKE_ENOPROVIDER);
}
