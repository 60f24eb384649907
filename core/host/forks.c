/* SPDX-License-Identifier: Apache-2.0 */
/* Counts forks by a handler that runs in each child. */
#include "core/host/forks.h"

#include <pthread.h>

unsigned spokei_forks = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
	spokei_forks++;
}

static void watch_forks(void)
{
	/* Fails only without memory; then a child is taken for its parent. */
	(void)pthread_atfork(NULL, NULL, count_fork);
}

void spokei_forks_watch(void)
{
	(void)pthread_once(&once, watch_forks);
}
