/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver of the demo: starts providers and consumers, injects faults, prints the reported
 * events, and checks the counts. The other programs are in the same directory.
 */
#define _GNU_SOURCE
#include "examples/demo/acts.h"
#include "examples/demo/await.h"
#include "examples/demo/secure.h"
#include "examples/demo/store.h"
#include "examples/demo/story.h"
#include "examples/demo/sums.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/spoke-demo-XXXXXX";

static int remove_entry(const char *path, const struct stat *about, int type, struct FTW *where)
{
	(void)about;
	(void)type;
	(void)where;
	(void)remove(path);
	return 0;
}

static void remove_folder(void)
{
	(void)nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Makes the token that the actions of all pages need. */
static bool make_token(void)
{
	unsigned char bytes[(sizeof(cast.token) - 1) / 2];

	if (getentropy(bytes, sizeof(bytes)))
		return false;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		(void)snprintf(cast.token + (size_t)2 * i, 3, "%02x", bytes[i]);
	return true;
}

static bool play(const struct plan *plan, const char *zookeeper)
{
	char registry[sizeof(folder) + 32];
	struct stage stage = { .plan = plan, .registry = registry, .folder = folder };
	uint64_t end_ns = story_now() + plan->seconds * PLAN_SECOND;

	if (plan->dubbo)
		(void)snprintf(registry, sizeof(registry), "zookeeper://%.32s", zookeeper);
	else
		(void)snprintf(registry, sizeof(registry), "file://%s/providers", folder);
	if (!plan->dubbo && !store_cast(&stage, folder))
		return false;
	if (plan->dubbo ? !acts_play_dubbo(&stage) : !acts_play(&stage))
		return false;
	if (plan->live ? !acts_live(&stage, end_ns) : !await_time(end_ns))
		return false;
	return acts_end(&stage);
}

int main(int argc, char **argv)
{
	struct plan plan;
	enum plan_verdict verdict = plan_read(argc, argv, &plan);
	const char *zookeeper = getenv("SPOKE_DEMO_ZOOKEEPER"); /* its address, from demo.sh */
	bool well;

	if (verdict != PLAN_GO)
		return verdict == PLAN_HELPED ? 0 : 2;
	if (plan.dubbo && zookeeper == NULL) {
		(void)fprintf(stderr, "demo: --dubbo: run sh examples/demo.sh --dubbo\n");
		return 2;
	}
	if (mkdtemp(folder) == NULL) {
		(void)fprintf(stderr, "demo: cannot create the folder %s: %s\n", folder,
			      strerror(errno));
		return 2;
	}
	story_begin(plan.plain);
	cast_begin(argv[0], 20 * (plan.heartbeat_ns + plan.period_ns) + 90 * PLAN_SECOND);
	if (plan.live && !make_token()) {
		(void)fprintf(stderr, "demo: no random numbers: %s\n", strerror(errno));
		return 2;
	}
	if (plan.tls && !secure_make(cast_folder(), folder)) {
		remove_folder();
		return 2;
	}
	cast.live = plan.live;
	cast.thaw_ns = 6 * plan.heartbeat_ns;
	well = play(&plan, zookeeper);
	cast_end_all();
	remove_folder();
	if (cast_interrupted())
		(void)fprintf(stderr, "demo: interrupted; all processes ended\n");
	if (cast_interrupted() || story_broken())
		return 2;
	return sums_show(&plan) && well ? 0 : 1;
}
