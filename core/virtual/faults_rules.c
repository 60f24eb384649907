/* SPDX-License-Identifier: Apache-2.0 */
/* The rules by which calls of a faulty environment fail. */
#include "core/virtual/faults.h"

#include "timer/base.h"

#include <string.h>

int spokei_faults_check(struct spokei_faults *faulty, enum spokei_faults_kind kind)
{
	struct spokei_faults_rule *rule = &faulty->rules[kind];
	int error = rule->error;

	faulty->calls[kind]++;
	if (error == 0)
		return 0;
	if (rule->skip > 0) {
		rule->skip--;
		return 0;
	}
	if (!rule->for_ever)
		rule->error = 0;
	faulty->failed[kind]++;
	return error;
}

void spokei_faults_fail(struct spokei_faults *faulty, enum spokei_faults_kind kind, uint64_t nth,
			int error, bool for_ever)
{
	SPOKE_ASSERT(nth > 0 && error < 0);
	faulty->rules[kind] = (struct spokei_faults_rule){ nth - 1, error, for_ever };
}

void spokei_faults_heal(struct spokei_faults *faulty)
{
	memset(faulty->rules, 0, sizeof(faulty->rules));
}

const char *spokei_faults_kind_name(enum spokei_faults_kind kind)
{
	static const char *const names[SPOKEI_FAULTS_KINDS] = {
		"memory",      "connect",      "finish",      "listen",         "accept",
		"read",        "write",        "shut",        "spare",          "local",
		"peer",        "parse",        "resolve",     "file read",      "file replace",
		"file append", "file watch",   "file lock",   "file is locked", "file sweep",
		"loop open",   "thread start", "parker open", "guard",          "signal open",
		"notify",      "credentials",  "host id",     "share",          "shared",
	};

	return names[kind];
}
