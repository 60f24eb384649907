/* SPDX-License-Identifier: Apache-2.0 */
/* Formats a line of the access log. */
#include "cluster/provider/access_line.h"

#include "core/base/log.h"

#include <stdio.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)
#define DAY_S UINT64_C(86400)
#define NAME_TEXT 256u /* bytes of a service or method, escaped, with the NUL */
#define SHORT_TEXT 64u /* of a version or group */
#define PEER_TEXT 160u
#define AS_TEXT 160u

/* Converts days since 1970 to a date. Years begin in March here, so that the leap day is the last
 * one; 400 years have 146,097 days. */
static void civil(uint64_t days, unsigned *year, unsigned *month, unsigned *day)
{
	uint64_t since = days + 719468; /* from the 1st of March of the year 0 */
	uint64_t era = since / 146097;
	uint64_t of_era = since % 146097;
	uint64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	uint64_t of_year = of_era - (365 * years + years / 4 - years / 100);
	uint64_t months = (5 * of_year + 2) / 153; /* since March */

	*day = (unsigned)(of_year - (153 * months + 2) / 5 + 1);
	*month = (unsigned)(months < 10 ? months + 3 : months - 9);
	*year = (unsigned)(years + era * 400 + (*month <= 2));
}

void spokei_access_print_time(uint64_t wall_ns, char text[SPOKEI_ACCESS_TIME])
{
	uint64_t ms = wall_ns / NS_PER_MS;
	uint64_t second = ms / 1000;
	unsigned of_day = (unsigned)(second % DAY_S);
	unsigned year;
	unsigned month;
	unsigned day;

	civil(second / DAY_S, &year, &month, &day);
	(void)snprintf(text, SPOKEI_ACCESS_TIME, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", year, month,
		       day, of_day / 3600, of_day / 60 % 60, of_day % 60, (unsigned)(ms % 1000));
}

size_t spokei_access_print_line(const struct spokei_access_line *line,
				char text[SPOKEI_ACCESS_LINE])
{
	char peer[PEER_TEXT];
	char service[NAME_TEXT];
	char version[SHORT_TEXT];
	char group[SHORT_TEXT];
	char method[NAME_TEXT];
	char identity[AS_TEXT] = "";
	uint64_t took_us = line->took_ns / NS_PER_US;
	int len;

	(void)spokei_log_escape_end(peer, sizeof(peer), line->peer, strlen(line->peer));
	(void)spokei_log_escape_end(service, sizeof(service), line->service.data,
				    line->service.len);
	(void)spokei_log_escape(version, sizeof(version), line->version.data, line->version.len);
	(void)spokei_log_escape(group, sizeof(group), line->group.data, line->group.len);
	(void)spokei_log_escape(method, sizeof(method), line->method.data, line->method.len);
	if (line->identity)
		(void)spokei_log_escape_end(identity, sizeof(identity), line->identity,
					    strlen(line->identity));
	len = snprintf(text, SPOKEI_ACCESS_LINE,
		       "%s \"%s\" \"%s\" \"%s\" \"%s\" \"%s\" %zu %s %llu.%03u%s%s%s%s", line->time,
		       peer, service, version, group, method, line->arg_len,
		       spoke_errname(line->error), (unsigned long long)(took_us / 1000),
		       (unsigned)(took_us % 1000), line->abandoned ? " abandoned" : "",
		       line->identity ? " as \"" : "", identity, line->identity ? "\"" : "");
	SPOKE_ASSERT(len > 0 && (unsigned)len < SPOKEI_ACCESS_LINE - 1);
	return (size_t)len;
}
