/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-1-3 by Aumasson and Bernstein: a keyed hash for tables whose keys peers choose. Without
 * the key, a peer cannot find texts with one hash. Draw the key from the random numbers of the
 * environment. Pure.
 */
#ifndef SPOKEI_CORE_BASE_SIPHASH_H
#define SPOKEI_CORE_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* Returns the hash of the bytes; all its bits are equally good. */
uint64_t spokei_siphash(const uint64_t key[2], const void *bytes, size_t len);

#endif
