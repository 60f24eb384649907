/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary folders of tests: see folder.h. */
#define _GNU_SOURCE
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void folder_make(char *path)
{
	static const char pattern[] = "/tmp/spoke-test-XXXXXX";

	assert_non_null(mkdtemp(memcpy(path, pattern, sizeof(pattern))));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

void folder_remove(const char *path)
{
	assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}
