/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signature of requests, as Dubbo's "accesskey" has it: Base64(HMAC-SHA256(secret, text)),
 * where the text is SERVICE:VERSION:GROUP#METHOD#SECRET#TIMESTAMP. It covers neither the arguments
 * nor a number that is used once, so a listener can repeat a request with other
 * arguments for as long as its time is accepted. Pure.
 */
#ifndef SPOKEI_CLUSTER_FILTER_SIGNATURE_H
#define SPOKEI_CLUSTER_FILTER_SIGNATURE_H

#include <spoke/value.h>

#include <stdbool.h>

#define SPOKEI_SIGNATURE 44u      /* bytes of a signature, without a NUL */
#define SPOKEI_SIGNATURE_TIME 20u /* bytes of a time, without a NUL */

/* The attachments. */
#define SPOKEI_SIGNATURE_KEY "signature"
#define SPOKEI_SIGNATURE_KEY_TIME "timestamp" /* ms since 1970, as a text */
#define SPOKEI_SIGNATURE_KEY_ID "ak"
#define SPOKEI_SIGNATURE_KEY_CONSUMER "consumer" /* the application */

/* The signed parts. Version and group are empty if there are none. */
struct spokei_signed {
	struct spoke_span service;
	struct spoke_span version;
	struct spoke_span group;
	struct spoke_span method;
	struct spoke_span time;
};

/* Writes the signature. */
void spokei_signature_make(struct spoke_span secret, const struct spokei_signed *of,
			   char out[SPOKEI_SIGNATURE]);

/* Writes ms since 1970 as text. Returns its length. */
size_t spokei_signature_print_time(uint64_t ms, char out[SPOKEI_SIGNATURE_TIME + 1]);

/* The signer that is accepted. */
struct spokei_signature_check {
	struct spoke_span id;
	struct spoke_span secret;
	uint64_t window_ms; /* how far the time may be from `now_ms`, either way */
	uint64_t now_ms;
};

/* Returns whether the attachments contain the signature of such a request. `of`: without the
 * time. The duration does not depend on how much of a signature is right. */
bool spokei_signature_is_right(const struct spokei_signature_check *check,
			       const struct spokei_signed *of, struct spoke_value attachments);

#endif
