/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one of all fuzz targets on a corpus instead of under a fuzzer. A corpus is a text file with
 * one input a line, in hexadecimal digits; an empty line is the empty input. A file that cannot be
 * read is an error, and so is one without inputs: a missing corpus must not pass.
 *
 *   fuzz_replay NAME CORPUS          runs all inputs
 *   fuzz_replay NAME CORPUS FOLDER   writes each input into a file of the folder, for a fuzzer
 */
#define _POSIX_C_SOURCE 200809L

#include "tests/fuzz/fuzz.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fuzz_target *targets;

void fuzz_add(struct fuzz_target *target)
{
	target->next = targets;
	targets = target;
}

static const struct fuzz_target *find_target(const char *name)
{
	const struct fuzz_target *target = targets;

	while (target && strcmp(target->name, name) != 0)
		target = target->next;
	return target;
}

/* Returns the value of a digit, or -1. */
static int digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Converts `size` pairs of digits. */
static bool read_digits(const char *line, uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		int high = digit(line[2 * i]);
		int low = digit(line[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		data[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static bool write_input(const char *folder, unsigned number, const uint8_t *data, size_t size)
{
	char path[4096];
	int len = snprintf(path, sizeof(path), "%s/%05u", folder, number);
	FILE *file;
	bool done;

	if (len < 0 || (size_t)len >= sizeof(path))
		return false;
	file = fopen(path, "wb");
	if (file == NULL)
		return false;
	done = fwrite(data, 1, size, file) == size;
	return fclose(file) == 0 && done;
}

/* Runs or writes one input, in a block of exactly its length, so that a sanitizer reports an
 * overrun. Returns false if the line is no input or cannot be written. */
static bool take_line(const struct fuzz_target *target, const char *line, size_t len,
		      unsigned number, const char *folder)
{
	size_t size = len / 2;
	uint8_t *data = malloc(size > 0 ? size : 1);
	bool done = data && len % 2 == 0 && read_digits(line, data, size);

	if (done && folder)
		done = write_input(folder, number, data, size);
	else if (done)
		(void)target->run(data, size);
	free(data);
	return done;
}

int main(int argc, char **argv)
{
	const struct fuzz_target *target = argc > 1 ? find_target(argv[1]) : NULL;
	const char *path = argc == 3 || argc == 4 ? argv[2] : "";
	FILE *corpus = fopen(path, "r");
	unsigned number = 0;
	bool done = target && corpus;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	while (done && (len = getline(&line, &room, corpus)) > 0) {
		if (line[len - 1] == '\n')
			len--;
		done = take_line(target, line, (size_t)len, ++number, argc == 4 ? argv[3] : NULL);
	}
	free(line);
	if (corpus)
		(void)fclose(corpus);
	if (!done || number == 0) {
		(void)fprintf(
			stderr,
			"%s: cannot be read, line %u is no input, or there is no such target\n",
			path, number);
		return EXIT_FAILURE;
	}
	(void)printf("%u inputs\n", number);
	return EXIT_SUCCESS;
}
