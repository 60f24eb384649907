/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that cost a provider much for their bytes: a provider in the virtual world that is fed
 * with them, frames to begin with, and changes to make of them.
 */
#ifndef BENCH_HOSTILE_H
#define BENCH_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HOSTILE_FRAME_MAX 8192u

enum hostile_wire {
	HOSTILE_DUBBO, /* the length in the head is set for each frame */
	HOSTILE_MPRPC,
	HOSTILE_HTTP, /* the length in the head is set if it has a line for it */
	HOSTILE_WIRES
};

struct hostile_frame {
	char name[24]; /* of the frame that it was made of */
	enum hostile_wire wire;
	size_t len;
	unsigned char bytes[HOSTILE_FRAME_MAX];
};

/* --- rig.c */

/* What a provider makes of a frame that comes again and again. */
struct hostile_cost {
	double ns;        /* CPU time for each byte */
	double answers;   /* for each frame */
	unsigned conns;   /* that were needed, because the provider closes them */
	uint64_t handled; /* by the handler */
};

/* A provider with a token; its peers have none. */
void hostile_begin(bool token);
void hostile_end(void);

/* Measures a frame `times` times; the least of them counts. */
struct hostile_cost hostile_measure(const struct hostile_frame *frame, unsigned times);

/* Sends a frame, again and again, on one connection. Returns how many bytes the provider has taken.
 * All its work is in hostile_turn(), whose instructions callgrind counts. */
size_t hostile_feed(const struct hostile_frame *frame);
void hostile_turn(void);

/* --- seeds.c */

/* Makes the first frame to begin with, or the one after `at`. Returns false after the last one. */
bool hostile_seed(size_t at, struct hostile_frame *ret);

/* An echo of 32 characters, as consumers of spoke and of Java send it. */
void hostile_echo(bool hessian2, struct hostile_frame *ret);

/* --- mutate.c */

/* Sets the length in the head. */
void hostile_fix(struct hostile_frame *frame);

/* Changes a frame at random, with bytes of another one too. */
void hostile_mutate(struct hostile_frame *frame, const struct hostile_frame *other, uint64_t *dice);

uint64_t hostile_dice(uint64_t *dice);

/* Reads and writes a line: name, wire, hexadecimal digits. */
bool hostile_read(const char *line, struct hostile_frame *ret);
void hostile_print(const struct hostile_frame *frame, FILE *file);

#endif
