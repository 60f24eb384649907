/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and checks signatures of requests. */
#include "cluster/filter/signature.h"

#include "core/text/digest.h"
#include "core/text/encoding.h"
#include "core/text/secret.h"

#include <inttypes.h>
#include <stdio.h>

#define GROUP 3u /* bytes that are four characters of base64 */

static void add(struct spokei_hmac *hmac, struct spoke_span text)
{
	spokei_hmac_add(hmac, text.data, text.len);
}

/* Version and group without a value leave their colon. */
void spokei_signature_make(struct spoke_span secret, const struct spokei_signed *of,
			   char out[SPOKEI_SIGNATURE])
{
	unsigned char code[SPOKEI_SHA256];
	struct spokei_hmac hmac;

	spokei_hmac_begin(&hmac, secret.data, secret.len);
	add(&hmac, of->service);
	spokei_hmac_add(&hmac, ":", 1);
	add(&hmac, of->version);
	spokei_hmac_add(&hmac, ":", 1);
	add(&hmac, of->group);
	spokei_hmac_add(&hmac, "#", 1);
	add(&hmac, of->method);
	spokei_hmac_add(&hmac, "#", 1);
	add(&hmac, secret);
	spokei_hmac_add(&hmac, "#", 1);
	add(&hmac, of->time);
	spokei_hmac_end(&hmac, code);
	for (size_t i = 0; i < sizeof(code); i += GROUP)
		spokei_base64_write(code + i, sizeof(code) - i, out + i / GROUP * 4);
}

size_t spokei_signature_print_time(uint64_t ms, char out[SPOKEI_SIGNATURE_TIME + 1])
{
	return (size_t)snprintf(out, SPOKEI_SIGNATURE_TIME + 1, "%" PRIu64, ms);
}

/* --- checks */

static struct spoke_span text_of(struct spoke_value attachments, const char *key)
{
	struct spoke_value value;
	struct spoke_span text = { NULL, 0 };

	if (spoke_value_get(attachments, key, &value) != SPOKE_OK ||
	    spoke_value_str(value, &text) != SPOKE_OK)
		return (struct spoke_span){ NULL, 0 };
	return text;
}

/* Returns whether the time is near enough. Digits only: neither signs nor blanks. */
static bool is_timely(const struct spokei_signature_check *check, struct spoke_span time)
{
	const unsigned char *digits = time.data;
	uint64_t ms = 0;

	if (time.len == 0 || time.len >= SPOKEI_SIGNATURE_TIME)
		return false;
	for (size_t i = 0; i < time.len; i++) {
		unsigned digit = digits[i] - (unsigned)'0';

		if (digit > 9)
			return false;
		ms = ms * 10 + digit;
	}
	return ms > check->now_ms ? ms - check->now_ms <= check->window_ms
				  : check->now_ms - ms <= check->window_ms;
}

/* Compares texts of any lengths in a time that depends on the lengths only. */
static bool is_same(struct spoke_span given, struct spoke_span wanted)
{
	unsigned char one[SPOKEI_SHA256];
	unsigned char other[SPOKEI_SHA256];

	spokei_sha256(given.data, given.len, one);
	spokei_sha256(wanted.data, wanted.len, other);
	return spokei_secret_same(one, other, sizeof(one));
}

bool spokei_signature_is_right(const struct spokei_signature_check *check,
			       const struct spokei_signed *of, struct spoke_value attachments)
{
	struct spoke_span given = text_of(attachments, SPOKEI_SIGNATURE_KEY);
	struct spoke_span id = text_of(attachments, SPOKEI_SIGNATURE_KEY_ID);
	struct spokei_signed with_time = *of;
	char wanted[SPOKEI_SIGNATURE];
	bool right;

	with_time.time = text_of(attachments, SPOKEI_SIGNATURE_KEY_TIME);
	if (given.len != SPOKEI_SIGNATURE || !is_timely(check, with_time.time))
		return false;
	spokei_signature_make(check->secret, &with_time, wanted);
	right = spokei_secret_same(given.data, wanted, sizeof(wanted));
	right = is_same(id, check->id) && right;
	spokei_secret_wipe(wanted, sizeof(wanted));
	return right;
}
