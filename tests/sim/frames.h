/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parser of the oracle's own: splits a byte stream into frames and finds the mark of a call in
 * them. It shares no code with the product. It reads the sixteen bytes of Dubbo's header and
 * searches the body for the mark.
 */
#ifndef TESTS_SIM_FRAMES_H
#define TESTS_SIM_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SIM_HEAD = 16,  /* bytes of the header */
	SIM_KEPT = 256, /* bytes of a frame that are kept */
	SIM_TAIL = 192, /* last bytes of a frame that are kept: they contain the ids */
	SIM_MARK = 16,  /* bytes of a mark: the first bytes of arguments and of results */
};

/* Writes the mark of a call's number; reads a mark. Returns 0 if there is none, or it is damaged.
 */
void sim_mark_write(unsigned char *bytes, uint64_t number);
uint64_t sim_mark_read(const unsigned char *bytes);

enum sim_frame_kind {
	SIM_REQUEST,
	SIM_REPLY,
	SIM_PROBE,
	SIM_PROBE_ANSWER,
	SIM_READONLY,
	SIM_CANCEL,
	SIM_ASIDE, /* the sender prefers no requests ... */
	SIM_BACK,  /* ... or takes them again */
	SIM_NAME,  /* the sender remembers requests, and names its instance */
	SIM_OTHER,
};

struct sim_frame {
	enum sim_frame_kind kind;
	uint64_t id;
	bool two_way;
	uint8_t status;
	uint64_t number; /* of the call whose mark the frame has; 0: none */
	/* Set in a request that contains the ids of its call, in two halves, and of its attempt,
	 * and the instance that may have run it before; else 0. */
	uint64_t call_hash;
	uint64_t call_id;
	unsigned attempt;
	uint64_t timeout_ms; /* if they are looked for */
	bool repeat;
	uint32_t instance; /* also of a name */
	bool unknown;      /* a reply: the provider does not know whether an earlier attempt ran */
};

/* One direction of a connection, as one side sees it. */
struct sim_frames {
	bool broken;        /* the rest of the stream cannot be parsed */
	bool timed;         /* looks for the timeouts of requests */
	size_t frame_max;   /* a longer frame is skipped */
	uint64_t have;      /* bytes of the current frame; 0: at a boundary */
	uint64_t need;      /* length of the current frame; 0: its header is incomplete */
	uint64_t frame_len; /* of the last complete frame */
	unsigned char kept[SIM_KEPT];
	unsigned char tail[SIM_TAIL]; /* end of the current frame, if it is longer than the array */
};

/* Parses the next bytes; calls `whole` for each frame that ends in them. */
void sim_frames_feed(struct sim_frames *frames, const unsigned char *bytes, size_t len,
		     void (*whole)(void *arg, const struct sim_frame *frame), void *arg);

/* Returns whether the incomplete frame could have this id. */
bool sim_frames_may_be(const struct sim_frames *frames, uint64_t id);

#endif
