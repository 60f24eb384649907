/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of the machine for the environment, and parkers that are allocated on the heap. The
 * context is not used.
 */
#ifndef SPOKEI_CORE_HOST_THREADS_H
#define SPOKEI_CORE_HOST_THREADS_H

#include <spoke/env.h>

extern const struct spoke_threads spokei_host_threads;

#endif
