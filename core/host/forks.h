/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often this process was forked from another since forks are watched. A child made by a bare
 * clone() or by vfork() is not noticed.
 */
#ifndef SPOKEI_CORE_HOST_FORKS_H
#define SPOKEI_CORE_HOST_FORKS_H

/* From 1 on. It changes in the child only, while that has a single thread; any thread reads it. */
extern unsigned spokei_forks;

/* From now on forks are counted; again is fine. Any thread. */
void spokei_forks_watch(void);

#endif
