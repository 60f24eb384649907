/* SPDX-License-Identifier: Apache-2.0 */
/* Dates as text (RFC 3339). Pure. */
#ifndef SPOKEI_CORE_TEXT_DATE_H
#define SPOKEI_CORE_TEXT_DATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a date, e.g. "2024-05-01", "2024-05-01T12:00:00.123Z" or "2024-05-01T12:00:00+02:00", as
 * seconds and nanoseconds since 1970. Returns false if it is invalid. */
bool spokei_date_read(const char *text, size_t len, int64_t *ret_seconds, uint32_t *ret_ns);

#endif
