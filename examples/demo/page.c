/* SPDX-License-Identifier: Apache-2.0 */
/* The admin page of a process of the demo, with the actions freeze, kill and drain. */
#define _POSIX_C_SOURCE 200809L
#include "examples/demo/page.h"

#include <spoke/admin.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DRAIN_NS UINT64_C(10000000000)

static void freeze(void *arg)
{
	(void)arg;
	(void)raise(SIGSTOP);
}

static void die(void *arg)
{
	(void)arg;
	(void)raise(SIGKILL);
}

static void drain(void *arg)
{
	const struct report *report = arg;

	if (spoke_engine_drain(report->engine, DRAIN_NS))
		spoke_engine_stop(report->engine);
}

const char *page_open(struct report *report, const char *name, const char *listen, bool drains)
{
	const struct spoke_admin_action actions[] = {
		{ .name = "freeze", .sentence = "Freeze (SIGSTOP)", .act = freeze },
		{ .name = "kill", .sentence = "Kill (SIGKILL)", .act = die },
		{ .name = "drain", .sentence = "Drain", .act = drain, .arg = report },
	};
	const struct spoke_admin_options options = {
		.listen = listen,
		.name = name,
		.token = getenv("SPOKE_DEMO_TOKEN"),
		.number = (uint64_t)getpid(),
		.actions = actions,
		.action_count = drains ? 3 : 2,
	};
	struct spoke_admin *admin;

	if (spoke_admin_new(report->engine, &options, &admin)) {
		(void)fprintf(stderr, "%s: cannot open the page: %s\n", name,
			      spoke_engine_why(report->engine));
		return NULL;
	}
	/* A token of the driver is not printed here: until the acts are over the pages are
	 * read-only. */
	report_event(report, SPOKE_EVENT_OF_NONE, TAG_ADMIN, 0, spoke_admin_address(admin),
		     "page at http://%s/%s%s", spoke_admin_address(admin),
		     options.token ? "" : "#token=", options.token ? "" : spoke_admin_token(admin));
	return spoke_admin_address(admin);
}
