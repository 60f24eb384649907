/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target on files instead of under a fuzzer. Each argument is a file, or a directory
 * whose files are used in the order of their names. An unreadable file is an error, and so is an
 * empty directory: a missing corpus must not pass.
 */
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The fuzz target, with libFuzzer's name and signature. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct replay {
	unsigned runs;
	unsigned errors;
};

static void note_error(struct replay *replay, const char *path)
{
	perror(path);
	replay->errors++;
}

/* Returns the length of an open file, or -1 with errno set. */
static long file_len(FILE *file)
{
	long len;

	if (fseek(file, 0, SEEK_END) != 0)
		return -1;
	len = ftell(file);
	if (len < 0 || fseek(file, 0, SEEK_SET) != 0)
		return -1;
	return len;
}

/* Passes the file to the target in a block of exactly its length, so that a sanitizer reports an
 * overrun. */
static int run_bytes(FILE *file, size_t len)
{
	uint8_t *data = malloc(len > 0 ? len : 1);
	int result = -1;

	if (data == NULL)
		return -1;
	if (fread(data, 1, len, file) == len) {
		result = 0;
		(void)LLVMFuzzerTestOneInput(data, len);
	} else if (!ferror(file)) {
		errno = EIO;
	}
	free(data);
	return result;
}

static void run_file(struct replay *replay, const char *path)
{
	FILE *file = fopen(path, "rb");
	long len;

	if (file == NULL) {
		note_error(replay, path);
		return;
	}
	len = file_len(file);
	if (len < 0 || run_bytes(file, (size_t)len) != 0)
		note_error(replay, path);
	else
		replay->runs++;
	(void)fclose(file);
}

static void run_entry(struct replay *replay, const char *dir, const char *name)
{
	char path[4096];
	int len = snprintf(path, sizeof(path), "%s/%s", dir, name);

	if (len < 0 || (size_t)len >= sizeof(path)) {
		errno = ENAMETOOLONG;
		note_error(replay, name);
		return;
	}
	run_file(replay, path);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void run_path(struct replay *replay, const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_visible, alphasort);

	if (count < 0 && errno == ENOTDIR) {
		run_file(replay, path);
		return;
	}
	if (count < 0) {
		note_error(replay, path);
		return;
	}
	for (int i = 0; i < count; i++) {
		run_entry(replay, path, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	struct replay replay = { 0 };

	for (int i = 1; i < argc; i++)
		run_path(&replay, argv[i]);
	(void)printf("%u inputs replayed, %u errors\n", replay.runs, replay.errors);
	if (replay.runs == 0)
		(void)fprintf(stderr, "no input to replay\n");
	return replay.runs > 0 && replay.errors == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
