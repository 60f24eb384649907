/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts how often this process was forked from another one since forks are watched. A child of a
 * bare clone() or vfork() is not noticed.
 */
#ifndef SPOKEI_CORE_HOST_FORKS_H
#define SPOKEI_CORE_HOST_FORKS_H

/* From 1 on. The value changes only in a child, while it has a single thread; any thread reads it.
 */
extern unsigned spokei_forks;

/* Starts counting forks; may be called again. Any thread. */
void spokei_forks_watch(void);

#endif
