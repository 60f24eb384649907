/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/admin/status.h"

void spokei_history_init(struct spokei_history *history, const struct spoke_engine *engine)
{
	(void)engine;
	history->count = 0;
}

void spokei_history_take(struct spokei_history *history, const struct spoke_engine *engine)
{
	(void)engine;
	history->count++;
}

int spokei_status_write(const struct spoke_engine *engine, const struct spokei_status_of *of,
			struct spokei_buffer *out)
{
	(void)engine;
	(void)of;
	return spokei_buffer_append(out, "{\"spoke\":\"0\"}", 13);
}

int spokei_status_write_text(const struct spoke_engine *engine, const struct spokei_status_of *of,
			     struct spokei_buffer *out)
{
	(void)engine;
	(void)of;
	return spokei_buffer_append(out, "all is <well>\n", 14);
}

int spokei_metrics_write(const struct spoke_engine *engine, const struct spokei_status_of *of,
			 struct spokei_buffer *out)
{
	(void)engine;
	(void)of;
	return spokei_buffer_append(out, "spoke_up 1\n", 11);
}
