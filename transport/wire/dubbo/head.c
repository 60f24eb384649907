/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Dubbo's header by two tables, one of flags and one of statuses. */
#include "transport/wire/dubbo/head.h"

/* The largest length of a body, which Java reads as a signed number. */
#define SKIP_MAX ((size_t)INT32_MAX)

/* Indexed by the upper three bits. A reply cannot require a reply; peers send all other
 * combinations. */
static const bool flags_known[8] = {
	[0x00u >> 5] = true, /* reply */
	[0x20u >> 5] = true, /* answer to an event */
	[0x80u >> 5] = true, /* one-way call */
	[0xa0u >> 5] = true, /* one-way event */
	[0xc0u >> 5] = true, /* call */
	[0xe0u >> 5] = true, /* event */
};

/*
 * The statuses of replies. Java peers use 35 and 90 only internally, so from outside they have no
 * particular meaning. Java also answers 70 for an unknown version or group.
 */
static const struct {
	uint8_t status;
	int error;
} statuses[] = {
	{ SPOKEI_DUBBO_OK, 0 },    { 25, SPOKE_EBADREPLY }, /* the result cannot be serialized */
	{ 30, SPOKE_EEXPIRED },                             /* timeout on the caller's side */
	{ 31, SPOKE_EEXPIRED },                             /* timeout on the provider's side */
	{ 35, SPOKE_ESERVER },                              /* connection inactive */
	{ 40, SPOKE_EBADREQUEST },                          /* bad request */
	{ 50, SPOKE_EBADREPLY },                            /* bad reply */
	{ 60, SPOKE_ENOSERVICE },                           /* no such service */
	{ 70, SPOKE_ESERVER },                              /* error of the service */
	{ 80, SPOKE_ESERVER },                              /* error of the server */
	{ 90, SPOKE_ESERVER },                              /* error of the client */
	{ 100, SPOKE_EREFUSED },                            /* no thread available */
};

static const size_t statuses_len = sizeof(statuses) / sizeof(statuses[0]);

bool spokei_dubbo_status_known(uint8_t status)
{
	for (size_t i = 0; i < statuses_len; i++)
		if (statuses[i].status == status)
			return true;
	return false;
}

int spokei_dubbo_status_error(uint8_t status)
{
	for (size_t i = 0; i < statuses_len; i++)
		if (statuses[i].status == status)
			return statuses[i].error;
	return SPOKE_EPROTOCOL;
}

/* Checks magic, flags and status, as far as they have arrived. */
static bool prefix_is_known(const unsigned char *at, size_t len)
{
	if (len > 0 && at[0] != SPOKEI_DUBBO_MAGIC)
		return false;
	if (len > 1 && at[1] != SPOKEI_DUBBO_MAGIC_2)
		return false;
	if (len > 2 && !flags_known[at[2] >> 5])
		return false;
	if (len > 3 && at[2] & SPOKEI_DUBBO_REQUEST)
		return at[3] == 0;
	return len <= 3 || spokei_dubbo_status_known(at[3]);
}

/* The first bytes of a two-way call and of a reply with status OK, in any serialization. */
#define FIRST_MASK UINT64_C(0xffffe0ff00000000)
#define FIRST_CALL UINT64_C(0xdabbc00000000000)
#define FIRST_REPLY UINT64_C(0xdabb001400000000)

int spokei_dubbo_head_read(const struct spokei_wire_limits *limits, struct spoke_span bytes,
			   struct spokei_dubbo_head *ret)
{
	const unsigned char *at = bytes.data;
	uint64_t first = bytes.len < SPOKEI_DUBBO_HEAD_LEN ? 0 : spokei_get_64(at) & FIRST_MASK;
	size_t body_len;

	if (SPOKEI_UNLIKELY(first != FIRST_CALL && first != FIRST_REPLY)) {
		if (!prefix_is_known(at, bytes.len))
			return SPOKE_EPROTOCOL;
		if (bytes.len < SPOKEI_DUBBO_HEAD_LEN)
			return SPOKEI_CUT_MORE;
	}
	body_len = (size_t)spokei_get_32(at + 12);
	if (at[2] & SPOKEI_DUBBO_EVENT && body_len > limits->event_max)
		return SPOKE_ETOOLARGE;
	*ret = spokei_dubbo_head_take(at);
	if ((uint64_t)body_len + SPOKEI_DUBBO_HEAD_LEN > limits->frame_max)
		return body_len > SKIP_MAX ? SPOKE_ETOOLARGE : SPOKEI_CUT_SKIP;
	return 0;
}
