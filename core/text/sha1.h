/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-1 (FIPS 180-4), for protocols that require it, such as the handshake of WebSocket. SHA-1 is
 * broken as protection against forgery: nothing of spoke may rely on it for that. Pure.
 */
#ifndef SPOKEI_CORE_TEXT_SHA1_H
#define SPOKEI_CORE_TEXT_SHA1_H

#include <stddef.h>

#define SPOKEI_SHA1 20u /* bytes of a digest */

/* Writes the digest of the bytes. */
void spokei_sha1(const void *bytes, size_t len, unsigned char digest[SPOKEI_SHA1]);

#endif
