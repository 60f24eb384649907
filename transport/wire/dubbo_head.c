/* SPDX-License-Identifier: Apache-2.0 */
/* The header as it is read: two tables, one of flags and one of statuses. */
#include "transport/wire/dubbo_head.h"

/* By the upper three bits: a reply that wants a reply is impossible, the rest is said by peers. */
static const bool flags_known[8] = {
	[0x00u >> 5] = true, /* reply */
	[0x20u >> 5] = true, /* answer to an event */
	[0x80u >> 5] = true, /* one-way call */
	[0xa0u >> 5] = true, /* one-way event */
	[0xc0u >> 5] = true, /* call */
	[0xe0u >> 5] = true, /* event */
};

/*
 * The statuses of replies. A Java peer gives 35 and 90 to itself only, so that they mean nothing in
 * particular when they come from outside; 70 is also what it says of a version or group that it has
 * not got.
 */
static const struct {
	uint8_t status;
	int error;
} statuses[] = {
	{ SPOKEI_DUBBO_OK, 0 },
	{ 25, SPOKE_EBADREPLY },   /* the result cannot be written in this serialization */
	{ 30, SPOKE_EEXPIRED },    /* timeout of the caller's side */
	{ 31, SPOKE_EEXPIRED },    /* timeout of the called side */
	{ 35, SPOKE_ESERVER },     /* connection inactive */
	{ 40, SPOKE_EBADREQUEST }, /* bad request */
	{ 50, SPOKE_EBADREPLY },   /* bad reply */
	{ 60, SPOKE_ENOSERVICE },  /* no such service */
	{ 70, SPOKE_ESERVER },     /* error of the service */
	{ 80, SPOKE_ESERVER },     /* error of the server */
	{ 90, SPOKE_ESERVER },     /* error of the client */
	{ 100, SPOKE_EREFUSED },   /* no thread for it */
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

uint8_t spokei_dubbo_error_status(int error)
{
	switch (error) {
	case SPOKE_OK:
		return SPOKEI_DUBBO_OK;
	case SPOKE_EBADREQUEST:
		return 40;
	case SPOKE_EBADREPLY:
		return 50;
	case SPOKE_ENOSERVICE:
		return 60;
	case SPOKE_EREFUSED:
		return 100;
	case SPOKE_EEXPIRED:
		return 31;
	case SPOKE_ETOOLARGE:
		return 25;
	default:
		return 80;
	}
}

static uint64_t read_32(const unsigned char *at)
{
	return (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];
}

/* Magic, flags and status, as far as they are there. */
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

int spokei_dubbo_head_read(const struct spokei_wire_limits *limits, struct spoke_span bytes,
			   struct spokei_dubbo_head *ret)
{
	const unsigned char *at = bytes.data;
	struct spokei_dubbo_head head;

	if (!prefix_is_known(at, bytes.len))
		return SPOKE_EPROTOCOL;
	if (bytes.len < SPOKEI_DUBBO_HEAD_LEN)
		return SPOKEI_CUT_MORE;
	head.flags = at[2];
	head.status = at[3];
	head.id = read_32(at + 4) << 32 | read_32(at + 8);
	head.body_len = (size_t)read_32(at + 12);
	if (limits->frame_max < SPOKEI_DUBBO_HEAD_LEN ||
	    head.body_len > limits->frame_max - SPOKEI_DUBBO_HEAD_LEN)
		return SPOKE_ETOOLARGE;
	if (head.flags & SPOKEI_DUBBO_EVENT && head.body_len > limits->event_max)
		return SPOKE_ETOOLARGE;
	*ret = head;
	return 0;
}
