/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers by HTTP: heads, and small texts of what was wrong. Every answer says that it is not to be
 * kept, guessed at, framed, or used by other sites, and that the connection ends with it. Appends
 * to a buffer, and touches nothing else.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_RESPONSE_H
#define SPOKEI_TRANSPORT_HTTP_RESPONSE_H

#include "core/memory/buffer.h"

#define SPOKEI_ANSWER_STREAM SIZE_MAX /* in place of a length: until the connection ends */
#define SPOKEI_ANSWER_NONCE 33u       /* bytes of its text, with the NUL */

/* What the head of an answer says; zero-initialised: no such header. */
struct spokei_answer {
	int status;
	const char *type;  /* of the body */
	size_t len;        /* of the body */
	const char *allow; /* the methods there are, of 405 */
	const char *nonce; /* what scripts and styles of the body carry to be let run; NULL: none */
};

/* Returns 0, SPOKE_ENOMEM or SPOKE_ETOOLARGE, as all of these do. */
SPOKE_MUST_USE int spokei_answer_head(struct spokei_buffer *out,
				      const struct spokei_answer *answer);

/* A whole answer whose body is a sentence. `head_only`: without the body. */
SPOKE_MUST_USE int spokei_answer_text(struct spokei_buffer *out, int status, const char *allow,
				      const char *sentence, bool head_only);

/* Text for a place in HTML, as text or in quotation marks. */
SPOKE_MUST_USE int spokei_answer_escape(struct spokei_buffer *out, const void *text, size_t len);

#endif
