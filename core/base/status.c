/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of negative error numbers of the system. */
#define _POSIX_C_SOURCE 200809L /* the strerror_r() of POSIX, which returns a number */
#include "core/base/status.h"

#include <stdio.h>
#include <string.h>

const char *spokei_status_text(int status, char text[SPOKEI_STATUS_TEXT])
{
	if (strerror_r(-status, text, SPOKEI_STATUS_TEXT) != 0)
		(void)snprintf(text, SPOKEI_STATUS_TEXT, "error %d", -status);
	return text;
}
