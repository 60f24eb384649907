/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the lists of slow calls and requests of the status. */
#include "core/engine/slow.h"

#include "cluster/admin/status_parts.h"
#include "core/engine/figures.h"

static void show_row(struct spokei_json *json, const struct spokei_slow_row *row)
{
	const struct spokei_figures *figures = row->figures;
	uint64_t now_ns = figures->engine->begin_ns;

	spokei_json_open(json, '{');
	spokei_json_put_u64(json, "number", row->number);
	spokei_json_put_ms(json, "ago_ms", now_ns > row->at_ns ? now_ns - row->at_ns : 0);
	spokei_json_put_text(json, "side", spokei_figures_side_name(figures->side));
	spokei_json_put_text(json, "service", figures->service);
	spokei_json_put_text(json, "method", figures->method);
	spokei_json_put_text(json, "peer", row->peer);
	spokei_json_put_u64(json, "queued_ns", row->queued_ns);
	spokei_json_put_u64(json, "took_ns", row->took_ns);
	spokei_json_put_text(json, "error", row->error ? spoke_errname(row->error) : "");
	spokei_json_close(json, '}');
}

void spokei_status_slow(struct spokei_json *json, const struct spoke_engine *engine)
{
	const struct spokei_slow *slow = engine->slow;
	uint64_t count = slow ? slow->count : 0;
	uint64_t shown = count < SPOKEI_SLOW_ROWS ? count : SPOKEI_SLOW_ROWS;

	spokei_json_open_member(json, "slow", '{');
	spokei_json_put_u64(json, "count", count);
	spokei_json_open_member(json, "last", '[');
	for (uint64_t i = 0; i < shown; i++)
		show_row(json, &slow->last[(count - i) % SPOKEI_SLOW_ROWS]);
	spokei_json_close(json, ']');
	spokei_json_open_member(json, "slowest", '[');
	for (size_t i = 0; slow && i < slow->slowest_count; i++)
		show_row(json, &slow->slowest[i]);
	spokei_json_close(json, ']');
	spokei_json_close(json, '}');
}
