/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream of bytes says, read by nothing of the product: Dubbo's sixteen bytes before each
 * body, and of the body the mark of a call, which is found by looking for it.
 */
#ifndef TESTS_SIM_FRAMES_H
#define TESTS_SIM_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SIM_HEAD = 16,  /* bytes before a body */
	SIM_KEPT = 256, /* of a frame, which is looked at */
	SIM_TAIL = 96,  /* of its end, the same: what attempts say of themselves */
	SIM_MARK = 16,  /* bytes of a mark: of arguments and of answers the first ones */
};

/* Writes the mark of a call's number, and reads it; 0: it is none, or damaged. */
void sim_mark_write(unsigned char *bytes, uint64_t number);
uint64_t sim_mark_read(const unsigned char *bytes);

enum sim_frame_kind {
	SIM_REQUEST,
	SIM_REPLY,
	SIM_PROBE,
	SIM_PROBE_ANSWER,
	SIM_READONLY,
	SIM_OTHER,
};

struct sim_frame {
	enum sim_frame_kind kind;
	uint64_t id;
	bool two_way;
	uint8_t status;
	uint64_t number; /* of the call whose mark it bears; 0: none */
	/* Of a request that names its call and its attempt; else 0. */
	uint64_t call_id;
	unsigned attempt;
};

/* One direction of a connection, as one side has it. */
struct sim_frames {
	bool broken;        /* no byte means anything any more */
	size_t frame_max;   /* beyond: broken */
	uint64_t have;      /* bytes of the present frame; 0: at a boundary */
	uint64_t need;      /* all of them; 0: the head is not whole */
	uint64_t frame_len; /* of the last one that was whole */
	unsigned char kept[SIM_KEPT];
	unsigned char tail[SIM_TAIL]; /* of one that is longer than this */
};

/* Goes over bytes that follow; `whole` is told of each frame that ends in them. */
void sim_frames_feed(struct sim_frames *frames, const unsigned char *bytes, size_t len,
		     void (*whole)(void *arg, const struct sim_frame *frame), void *arg);

/* May the frame that has begun and is not whole have this id? */
bool sim_frames_may_be(const struct sim_frames *frames, uint64_t id);

#endif
