/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the leases of the status, as JSON and as text, and of the metrics. */
#include "cluster/admin/members.h"
#include "cluster/admin/metrics.h"
#include "cluster/admin/status_parts.h"
#include "cluster/lease/view.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#define NAME 80u /* bytes of a name in the text */
#define MS UINT64_C(1000000)

/* --- JSON */

static void show_lease(struct spokei_json *json, const struct spokei_lease_row *row)
{
	char name[SPOKE_LEASE_NAME_MAX + 1];

	memcpy(name, row->name.data, row->name.len);
	name[row->name.len] = '\0';
	spokei_json_open(json, '{');
	spokei_json_put_u64(json, "id", row->id);
	spokei_json_put_text(json, "name", name);
	spokei_json_put_text(json, "state", row->state);
	spokei_json_put_ms(json, "left_ms", row->left_ns);
	spokei_json_put_u64(json, "fence", row->fence);
	spokei_json_close(json, '}');
}

static void show_leases(struct spokei_json *json, const struct spoke_leases *leases,
			struct spokei_rows *rows)
{
	struct spokei_lease_row found[SPOKEI_STATUS_ROWS];
	size_t count = spokei_rows_take(rows, SPOKEI_STATUS_ROWS);
	size_t shown = spokei_leases_rows(leases, found, count);
	struct spoke_leases_look look;
	size_t all;

	rows->left += count - shown;
	spoke_leases_look(leases, &look);
	all = (size_t)look.asked + look.held;
	spokei_json_open(json, '{');
	spokei_json_put_text(json, "store", look.store);
	spokei_json_put_bool(json, "connected", look.connected);
	spokei_json_put_u64(json, "asked", look.asked);
	spokei_json_put_u64(json, "held", look.held);
	spokei_json_put_ms(json, "left_min_ms", look.left_min_ns);
	spokei_json_open_member(json, "shown", '[');
	for (size_t i = 0; i < shown; i++)
		show_lease(json, &found[i]);
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "more", all > shown ? all - shown : 0);
	spokei_json_close(json, '}');
}

void spokei_status_leases(struct spokei_json *json, const struct spoke_engine *engine,
			  struct spokei_rows *rows)
{
	struct spoke_leases *leases = NULL;
	size_t more = 0;

	spokei_json_open_member(json, "leases", '[');
	while ((leases = spokei_members_leases(engine, leases)) != NULL) {
		if (spokei_rows_take(rows, 1) == 1)
			show_leases(json, leases, rows);
		else
			more++;
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "leases_more", more);
}

/* --- text */

static void put_lease(struct spokei_lines *lines, const struct spokei_lease_row *row)
{
	char name[NAME];

	(void)spokei_log_escape(name, sizeof(name), row->name.data, row->name.len);
	spokei_lines_put(lines, "  %-22s %-10s", name, row->state);
	if (row->fence)
		spokei_lines_put(lines, " %" PRIu64 " ms left, fence %" PRIu64, row->left_ns / MS,
				 row->fence);
	spokei_lines_put(lines, "\n");
}

void spokei_status_put_leases(struct spokei_lines *lines, const struct spoke_leases *leases,
			      struct spokei_rows *rows)
{
	struct spokei_lease_row found[SPOKEI_STATUS_ROWS];
	size_t count = spokei_rows_take(rows, SPOKEI_STATUS_ROWS);
	size_t shown = spokei_leases_rows(leases, found, count);
	struct spoke_leases_look look;

	rows->left += count - shown;
	spoke_leases_look(leases, &look);
	spokei_lines_put(lines, "\nLeases at %s, %s: %" PRIu32 " held, %" PRIu32 " asked for\n",
			 look.store, look.connected ? "connected" : "not connected", look.held,
			 look.asked);
	for (size_t i = 0; i < shown; i++)
		put_lease(lines, &found[i]);
	if ((size_t)look.asked + look.held > shown)
		spokei_lines_put(lines, "  and %zu more\n", (size_t)look.asked + look.held - shown);
}

/* --- metrics */

enum of_leases {
	CONNECTED,
	HELD,
	ASKED,
	LEFT,
	OF_LEASES,
};

static void put_value(struct spokei_lines *lines, const struct spoke_leases_look *look,
		      enum of_leases which)
{
	switch (which) {
	case LEFT:
		spokei_metrics_seconds(lines, look->held ? look->left_min_ns : 0);
		return;
	case CONNECTED:
		spokei_lines_put(lines, " %d\n", look->connected);
		return;
	case HELD:
		spokei_lines_put(lines, " %" PRIu32 "\n", look->held);
		return;
	case ASKED:
		spokei_lines_put(lines, " %" PRIu32 "\n", look->asked);
		return;
	case OF_LEASES:
		break;
	}
}

void spokei_metrics_leases(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	static const struct {
		const char *name;
		const char *help;
	} families[OF_LEASES] = {
		[CONNECTED] = { "spoke_leases_connected",
				"1: the store of the leases takes commands." },
		[HELD] = { "spoke_leases_held", "leases that are held." },
		[ASKED] = { "spoke_leases_asked", "leases that are asked for and not granted." },
		[LEFT] = { "spoke_leases_left_min_seconds",
			   "time left of the held lease that ends first; 0: none is held." },
	};

	for (unsigned i = 0; i < OF_LEASES; i++) {
		struct spoke_leases *leases = spokei_members_leases(engine, NULL);

		spokei_metrics_family(lines, families[i].name, "gauge", families[i].help);
		for (unsigned at = 1; leases && at <= SPOKEI_METRICS_ROWS; at++) {
			struct spoke_leases_look look;

			spoke_leases_look(leases, &look);
			spokei_lines_put(lines, "%s{leases=\"%u\"", families[i].name, at);
			spokei_metrics_label(lines, ",", "store", look.store);
			spokei_lines_put(lines, "}");
			put_value(lines, &look, (enum of_leases)i);
			leases = spokei_members_leases(engine, leases);
		}
	}
}
