/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-1 and SHA-256 (FIPS 180-4), and HMAC-SHA256 (RFC 2104). SHA-1 is for protocols that require
 * it, such as the handshake of WebSocket; it is broken as protection against forgery: nothing of
 * spoke may rely on it for that. SHA-256 and HMAC are for tokens and signatures of requests. Both
 * take their text in pieces. The duration depends on lengths only. end() wipes the state, which may
 * contain a secret. Pure; any thread.
 */
#ifndef SPOKEI_CORE_TEXT_DIGEST_H
#define SPOKEI_CORE_TEXT_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define SPOKEI_SHA1 20u /* bytes of a digest */

/* Writes the digest of the bytes. */
void spokei_sha1(const void *bytes, size_t len, unsigned char digest[SPOKEI_SHA1]);

#define SPOKEI_SHA256 32u       /* bytes of a digest */
#define SPOKEI_SHA256_BLOCK 64u /* bytes */

struct spokei_sha256 {
	uint32_t hash[8];
	uint64_t len; /* bytes so far; the last of them, less than a block, are in `rest` */
	unsigned char rest[SPOKEI_SHA256_BLOCK];
};

struct spokei_hmac {
	struct spokei_sha256 inner;
	unsigned char outer[SPOKEI_SHA256_BLOCK]; /* the key, as the outer hash begins with it */
};

void spokei_sha256_begin(struct spokei_sha256 *state);
void spokei_sha256_add(struct spokei_sha256 *state, const void *bytes, size_t len);
void spokei_sha256_end(struct spokei_sha256 *state, unsigned char digest[SPOKEI_SHA256]);

/* Writes the digest of the bytes. */
void spokei_sha256(const void *bytes, size_t len, unsigned char digest[SPOKEI_SHA256]);

void spokei_hmac_begin(struct spokei_hmac *state, const void *key, size_t len);
void spokei_hmac_add(struct spokei_hmac *state, const void *bytes, size_t len);
void spokei_hmac_end(struct spokei_hmac *state, unsigned char code[SPOKEI_SHA256]);

#endif
