/* SPDX-License-Identifier: Apache-2.0 */
/* The table of patterns; see pattern.h. */
#include "pattern.h"

#include <string.h>

#define HEADER_LEN 16u
#define KIB 1024u

#define NAMES(name)                                                                                \
	{                                                                                          \
		[ROUTE_TCP] = (name), [ROUTE_UNIX] = "unix-" name, [ROUTE_CUBIC] = "cubic-" name,  \
		[ROUTE_BBR] = "bbr-" name, [ROUTE_SHM] = "shm-" name                               \
	}
#define ALL_ROUTES (ROUTE_BIT(ROUTES) - 1)

const struct pattern patterns[PATTERNS] = {
	{ NAMES("32B-1x1"), 32, 1, 1, true, true, ROUTE_BIT(ROUTE_SHM) },
	{ NAMES("32B-1x64"), 32, 1, 64, true, true, ROUTE_BIT(ROUTE_SHM) },
	{ NAMES("32B-1x256"), 32, 1, 256, true, true, 0 },
	{ NAMES("32B-64x1"), 32, 64, 1, false, false, ROUTE_BIT(ROUTE_UNIX) },
	{ NAMES("32B-64x4"), 32, 64, 4, false, false, 0 },
	{ NAMES("32B-10x10"), 32, 10, 10, true, false, 0 },
	{ NAMES("32B-100x10"), 32, 100, 10, true, false, 0 },
	{ NAMES("32B-10x100"), 32, 10, 100, true, false, 0 },
	{ NAMES("32B-1000x1"), 32, 1000, 1, false, false, ROUTE_BIT(ROUTE_UNIX) },
	{ NAMES("1KiB-1x64"), KIB, 1, 64, false, false, 0 },
	{ NAMES("64KiB-1x1"), 64 * KIB, 1, 1, false, true, 0 },
	{ NAMES("64KiB-1x64"), 64 * KIB, 1, 64, false, false, ALL_ROUTES },
};

const char *route_congestion(enum route route)
{
	static const char *const names[ROUTES] = {
		[ROUTE_CUBIC] = "cubic",
		[ROUTE_BBR] = "bbr",
	};

	return names[route];
}

/* Returns the length of a MessagePack str with its header. */
static uint32_t str_len(uint32_t len)
{
	if (len < 32)
		return len + 1;
	if (len < 256)
		return len + 2;
	return len + (len < 64 * KIB ? 3 : 5);
}

static uint32_t word_len(const char *word)
{
	return str_len((uint32_t)strlen(word));
}

uint32_t pattern_request_len(uint32_t payload)
{
	return HEADER_LEN + word_len("2.0.2") + word_len("demo.EchoService") + word_len("0.0.0") +
	       word_len("echo") + word_len("Ljava/lang/String;") + str_len(payload) + 1 +
	       word_len("timeout") + word_len("1000");
}

/* The marker and the value. */
uint32_t pattern_reply_len(uint32_t payload)
{
	return HEADER_LEN + 1 + str_len(payload);
}
