/* SPDX-License-Identifier: Apache-2.0 */
/* Hides the secrets of messages before spoke tap prints them: tokens and signatures. */
#ifndef COMMAND_TAP_SECRET_H
#define COMMAND_TAP_SECRET_H

#include <spoke/frames.h>

#include <stdbool.h>

/* A message without its secrets. */
struct tap_secret {
	struct spoke_frame frame; /* the rest is memory of it */
	struct spoke_builder args;
	struct spoke_builder attachments;
	char *bytes;
};

/*
 * Copies a message with "***" in place of the arguments of `$token`, of all arguments of a query of
 * HTTP with a secret parameter, and of attachments whose name ends like that of a secret: "token",
 * "secret", "signature", as spoke_url_print() hides them. In its bytes asterisks stand for each
 * byte of these values, and of such header lines and parameters of HTTP, and cookies. Beyond the
 * first eight values, and in a body that could not be decoded, visible bytes after such names
 * become asterisks. Attachments and bytes are copied on demand, else they stay as they are; without
 * memory a copy is empty. The views are borrowed from `frame` and from *ret. Undo with
 * tap_secret_fini().
 */
void tap_secret_hide(const struct spoke_frame *frame, bool attachments, bool bytes,
		     struct tap_secret *ret);

/* Frees the copies. */
void tap_secret_fini(struct tap_secret *secret);

/* Copies bytes of no known message, with asterisks as in a body that could not be decoded. A value
 * whose name lies in other bytes is not found. Returns NULL if there is no memory; else free it. */
char *tap_secret_guess(struct spoke_span bytes);

#endif
