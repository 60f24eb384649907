/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the gateways for browsers of the status, as JSON and as text, and of the metrics. */
#include "cluster/admin/members.h"
#include "cluster/admin/metrics.h"
#include "cluster/admin/status_parts.h"
#include "cluster/comet/view.h"

#include <stdio.h>

#define ADDRESS 160u /* bytes of an address as text */

static uint64_t figure(const struct spoke_comet *comet, int number)
{
	return spoke_comet_figure(comet, (enum spoke_comet_figure)number);
}

/* --- JSON */

static void show_comet(struct spokei_json *json, const struct spoke_comet *comet)
{
	char address[ADDRESS];

	if (spoke_comet_address(comet, 0, address, sizeof(address)) == 0)
		address[0] = '\0';
	spokei_json_open(json, '{');
	spokei_json_put_text(json, "address", address);
	spokei_json_put_bool(json, "draining", spokei_comet_drains(comet));
	for (int i = 0; i < SPOKE_COMET_FIGURE_COUNT; i++)
		spokei_json_put_u64(json, spoke_comet_figure_name((enum spoke_comet_figure)i),
				    figure(comet, i));
	spokei_json_close(json, '}');
}

void spokei_status_comets(struct spokei_json *json, const struct spoke_engine *engine,
			  struct spokei_rows *rows)
{
	const struct spoke_comet *comet = NULL;

	spokei_json_open_member(json, "gateways", '[');
	while ((comet = spokei_members_comet(engine, comet)) != NULL &&
	       spokei_rows_take(rows, 1) == 1)
		show_comet(json, comet);
	spokei_json_close(json, ']');
}

/* --- text */

void spokei_status_put_comet(struct spokei_lines *lines, const struct spoke_comet *comet)
{
	char address[ADDRESS];

	if (spoke_comet_address(comet, 0, address, sizeof(address)) == 0)
		(void)snprintf(address, sizeof(address), "no address");
	spokei_lines_put(lines,
			 "\nGateway at %s%s: %" PRIu64 " users, %" PRIu64 " of them online\n",
			 address, spokei_comet_drains(comet) ? ", draining" : "",
			 figure(comet, SPOKE_COMET_FIGURE_USERS),
			 figure(comet, SPOKE_COMET_FIGURE_ONLINE));
	spokei_lines_put(lines,
			 "  connections: %" PRIu64 " event streams, %" PRIu64
			 " WebSockets, %" PRIu64 " polls; %" PRIu64 " behind\n",
			 figure(comet, SPOKE_COMET_FIGURE_EVENTS),
			 figure(comet, SPOKE_COMET_FIGURE_SOCKETS),
			 figure(comet, SPOKE_COMET_FIGURE_POLLS),
			 figure(comet, SPOKE_COMET_FIGURE_BEHIND));
	spokei_lines_put(lines,
			 "  messages: %" PRIu64 " pushed, %" PRIu64 " written, %" PRIu64
			 " times lost; %" PRIu64 " in memory, %" PRIu64 " bytes\n",
			 figure(comet, SPOKE_COMET_FIGURE_PUSHED),
			 figure(comet, SPOKE_COMET_FIGURE_WRITTEN),
			 figure(comet, SPOKE_COMET_FIGURE_LOST),
			 figure(comet, SPOKE_COMET_FIGURE_MESSAGES),
			 figure(comet, SPOKE_COMET_FIGURE_BYTES));
}

/* --- metrics */

static void put_family(struct spokei_lines *lines, const struct spoke_engine *engine, int number)
{
	const bool grows = number > SPOKE_COMET_FIGURE_BYTES;
	const struct spoke_comet *comet = spokei_members_comet(engine, NULL);
	char name[96];
	char help[128];

	(void)snprintf(name, sizeof(name), "spoke_comet_%s%s",
		       spoke_comet_figure_name((enum spoke_comet_figure)number),
		       grows ? "_total" : "");
	(void)snprintf(help, sizeof(help), "%s.",
		       spoke_comet_figure_sentence((enum spoke_comet_figure)number));
	spokei_metrics_family(lines, name, grows ? "counter" : "gauge", help);
	for (unsigned at = 1; comet && at <= SPOKEI_METRICS_ROWS; at++) {
		spokei_lines_put(lines, "%s{gateway=\"%u\"} %" PRIu64 "\n", name, at,
				 figure(comet, number));
		comet = spokei_members_comet(engine, comet);
	}
}

/* A program without gateways has none of these families. */
void spokei_metrics_comets(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	if (spokei_members_comet(engine, NULL) == NULL)
		return;
	for (int i = 0; i < SPOKE_COMET_FIGURE_COUNT; i++)
		put_family(lines, engine, i);
}
