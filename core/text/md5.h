/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MD5 (RFC 1321), as Dubbo uses it: for the points of its hash ring, and for revisions. Not used
 * for security. Pure.
 */
#ifndef SPOKEI_CORE_TEXT_MD5_H
#define SPOKEI_CORE_TEXT_MD5_H

#include <stddef.h>
#include <stdint.h>

struct spokei_md5 {
	uint32_t words[4]; /* the digest as little-endian words */
};

struct spokei_md5 spokei_md5(const void *bytes, size_t len);

#endif
