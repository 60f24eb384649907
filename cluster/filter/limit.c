/* SPDX-License-Identifier: Apache-2.0 */
/* Limits a method: the functions that are not on the hot path. */
#include "cluster/filter/limit.h"

#include "cluster/filter/admission.h"
#include "core/base/log.h"

#include <stdio.h>

#define NAME_TEXT 128u

void spokei_limit_init(struct spokei_limit *limit, uint32_t active_max, uint32_t per_second)
{
	*limit = (struct spokei_limit){
		/* Full at any later time. */
		.bucket = spokei_bucket_make(per_second, per_second, 0),
	};
	spokei_limit_change(limit, active_max, per_second);
}

void spokei_limit_change(struct spokei_limit *limit, uint32_t active_max, uint32_t per_second)
{
	bool by_time = active_max == SPOKEI_LIMIT_AUTO && limit->room;

	if (by_time && limit->admission == NULL)
		*limit->room = (struct spokei_admission){ .margin = 0 };
	limit->admission = by_time ? limit->room : NULL;
	limit->active_max = by_time ? 0 : active_max;
	limit->is_set = active_max > 0 || per_second > 0;
	if (limit->bucket.rate != per_second)
		limit->bucket = spokei_bucket_make(per_second, per_second, 0);
}

size_t spokei_limit_print(const struct spokei_limit *limit, enum spokei_limit_reached reached,
			  const char *active_name, struct spoke_span method, char *text,
			  size_t size)
{
	bool rate = reached == SPOKEI_LIMIT_RATE;
	char name[NAME_TEXT];
	int len;

	(void)spokei_log_escape(name, sizeof(name), method.data, method.len);
	if (reached == SPOKEI_LIMIT_TIME)
		len = snprintf(text, size, "%s: %s=auto: too busy to answer in time", name,
			       active_name);
	else
		len = snprintf(text, size, "%s: %s%s=%u reached", name, active_name,
			       rate ? ".tps" : "", rate ? limit->bucket.rate : limit->active_max);
	SPOKE_ASSERT(len >= 0);
	return (size_t)len < size ? (size_t)len : size - 1;
}
