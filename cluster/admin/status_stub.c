/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/admin/status.h"

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
