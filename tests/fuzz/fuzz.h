/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry of a fuzz target. It is libFuzzer's in the programs fuzz_NAME, which are compiled with
 * FUZZ_ALONE. In fuzz_replay, which has all targets, each registers itself.
 *
 *     FUZZ(wheel)
 *     {
 *             ... data, size ...
 *             return 0;
 *     }
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program unless a law holds. */
static inline void demand(bool holds, const char *law)
{
	if (holds)
		return;
	(void)fprintf(stderr, "broken: %s\n", law);
	abort();
}

#ifdef FUZZ_ALONE
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#define FUZZ(target) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
#else
struct fuzz_target {
	const char *name;
	int (*run)(const uint8_t *data, size_t size);
	struct fuzz_target *next;
};

/* Called before main(). */
void fuzz_add(struct fuzz_target *target);

#define FUZZ(target)                                                                               \
	static int fuzz_##target(const uint8_t *data, size_t size);                                \
	__attribute__((constructor)) static void add_##target(void)                                \
	{                                                                                          \
		static struct fuzz_target entry = { #target, fuzz_##target, NULL };                \
		fuzz_add(&entry);                                                                  \
	}                                                                                          \
	static int fuzz_##target(const uint8_t *data, size_t size)
#endif

#endif
