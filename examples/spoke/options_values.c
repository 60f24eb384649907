/* SPDX-License-Identifier: Apache-2.0 */
/* Converts option values: durations, sizes, counts, shares, numbers. */
#include "examples/spoke/options.h"

#include <spoke/call.h>
#include <spoke/link.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest time of a timer. */
#define DURATION_MAX_NS UINT64_C(2147483647000000)
#define HEARTBEAT_MIN_NS UINT64_C(10000000)

struct unit {
	const char *name;
	double factor;
};

static const struct unit durations[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 6e10 }, { "h", 3.6e12 },
};

static const struct unit sizes[] = {
	{ "", 1 }, { "B", 1 }, { "KiB", 1024 }, { "MiB", 1048576 }, { "GiB", 1073741824 },
};

/* Reads a decimal number and a unit of the table. */
static bool read_units(const char *text, const struct unit *units, size_t count, double *ret)
{
	size_t digits = strspn(text, "0123456789.");
	char number[32];
	char *end;

	if (!digits || digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	*ret = strtod(number, &end);
	if (*end)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(text + digits, units[i].name) == 0) {
			*ret *= units[i].factor;
			return true;
		}
	}
	return false;
}

bool options_read_duration(const char *text, uint64_t *ret_ns)
{
	double ns;

	if (!read_units(text, durations, sizeof(durations) / sizeof(durations[0]), &ns) ||
	    ns > (double)DURATION_MAX_NS)
		return false;
	*ret_ns = (uint64_t)ns;
	return true;
}

bool options_duration(const struct options *options, uint64_t max, uint64_t *ret_ns)
{
	double ns;

	if (!max)
		max = DURATION_MAX_NS;
	if (strcmp(options->value, "0") == 0) {
		*ret_ns = 0;
		return true;
	}
	if (!read_units(options->value, durations, sizeof(durations) / sizeof(durations[0]), &ns)) {
		(void)options_wrong(
			options,
			"not a duration; write a number and a unit, e.g. 250ms, 1.5s or 2m");
		return false;
	}
	if (ns > (double)max) {
		char what[64];

		(void)snprintf(what, sizeof(what), "must be at most %.9gs", (double)max / 1e9);
		(void)options_wrong(options, what);
		return false;
	}
	*ret_ns = (uint64_t)ns;
	return true;
}

bool options_heartbeat(const struct options *options, uint64_t *ret_ns)
{
	if (!options_duration(options, 0, ret_ns))
		return false;
	if (*ret_ns == 0) {
		*ret_ns = SPOKE_OFF;
		return true;
	}
	if (*ret_ns < HEARTBEAT_MIN_NS)
		(void)options_wrong(options, "must be at least 10ms, or 0 for no heartbeats");
	return *ret_ns >= HEARTBEAT_MIN_NS;
}

bool options_size(const struct options *options, uint64_t max, uint64_t *ret_bytes)
{
	double bytes;

	if (!max)
		max = UINT64_C(1) << 50;
	if (!read_units(options->value, sizes, sizeof(sizes) / sizeof(sizes[0]), &bytes)) {
		(void)options_wrong(options,
				    "not a size; write a number and an optional unit, e.g. "
				    "512, 64KiB or 8MiB");
		return false;
	}
	if (bytes > (double)max) {
		char what[64];

		(void)snprintf(what, sizeof(what), "must be at most %.0f bytes", (double)max);
		(void)options_wrong(options, what);
		return false;
	}
	*ret_bytes = (uint64_t)bytes;
	return true;
}

bool options_count(const struct options *options, uint64_t min, uint64_t max, uint64_t *ret_count)
{
	const char *text = options->value;
	size_t digits = strspn(text, "0123456789");
	char what[96];
	unsigned long long count;

	errno = 0;
	count = digits && !text[digits] ? strtoull(text, NULL, 10) : 0;
	if (!digits || text[digits]) {
		(void)options_wrong(options, "not a count; write a number, e.g. 8");
		return false;
	}
	if (!max)
		max = UINT64_MAX;
	if (errno || count < min || count > max) {
		(void)snprintf(what, sizeof(what), "must be from %llu to %llu",
			       (unsigned long long)min, (unsigned long long)max);
		(void)options_wrong(options, what);
		return false;
	}
	*ret_count = count;
	return true;
}

bool options_share(const struct options *options, double *ret_share)
{
	static const struct unit shares[] = { { "", 1 }, { "%", 0.01 } };
	double share;

	if (!read_units(options->value, shares, 2, &share) || share > 1) {
		(void)options_wrong(options, "not a share; write e.g. 0.1 or 10%");
		return false;
	}
	*ret_share = share;
	return true;
}

bool options_number(const struct options *options, double min, double max, double *ret_number)
{
	char *end;
	double number = strtod(options->value, &end);
	char what[64];

	if (end == options->value || *end || !isfinite(number)) {
		(void)options_wrong(options, "not a number; write e.g. 2.5");
		return false;
	}
	if (number < min || number > max) {
		(void)snprintf(what, sizeof(what), "must be from %g to %g", min, max);
		(void)options_wrong(options, what);
		return false;
	}
	*ret_number = number;
	return true;
}

bool options_timeout(const struct options *options, uint64_t *ret_ns)
{
	if (!options_duration(options, 0, ret_ns))
		return false;
	if (!*ret_ns)
		(void)options_wrong(options, "must be positive, e.g. 250ms");
	return *ret_ns > 0;
}

bool options_retries(const struct options *options, uint32_t *ret_retries)
{
	uint64_t count;

	if (!options_count(options, 0, 100, &count))
		return false;
	*ret_retries = count ? (uint32_t)count : SPOKE_NONE;
	return true;
}
