/* SPDX-License-Identifier: Apache-2.0 */
/* Standard files that are closed, and the limit of open files: most systems begin with 1024, and
 * allow more. */
#include "examples/spoke/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

void files_hold_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

uint64_t files_raise(uint64_t count)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return count;
	if (limit.rlim_cur >= count)
		return limit.rlim_cur;
	limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? count : limit.rlim_cur;
}
