/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's buffers of open streams: 33 KiB a stream. To allocate them for each record costs an
 * eighth of a small record's time, and to keep them twice the memory of an idle stream. So streams
 * keep them while they are busy: few at a time, and not longer than two seconds after the last
 * record.
 */
#include "core/engine/engine.h"
#include "transport/stream/tls/parts.h"

#define WARM_MAX 64u
#define LOOK_NS UINT64_C(1000000000)

static struct spokei_tls_link *link_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_tls_link, warm);
}

void spokei_tls_cool(struct spokei_tls_link *link)
{
	if (link->warm.next) {
		spokei_list_remove(&link->warm);
		link->tls->warm_count--;
	}
	/* It keeps them while there is a part of a record in them, until the next one. */
	if (link->ssl)
		(void)SSL_free_buffers(link->ssl);
}

static void look(struct spoke_alarm *alarm);

/* Returns whether there is a timer. */
static bool look_later(struct spokei_tls *tls)
{
	return spoke_alarm_after(tls->engine, &tls->look, LOOK_NS, look) == SPOKE_OK;
}

static void cool_all(struct spokei_tls *tls)
{
	while (!spokei_list_empty(&tls->warm))
		spokei_tls_cool(link_at(tls->warm.next));
}

/* Streams without a record since the last look give up their buffers. */
static void look(struct spoke_alarm *alarm)
{
	struct spokei_tls *tls = spoke_container_of(alarm, struct spokei_tls, look);
	struct spoke_list *next;

	for (struct spoke_list *at = tls->warm.next; at != &tls->warm; at = next) {
		struct spokei_tls_link *link = link_at(at);

		next = at->next;
		if (!link->used)
			spokei_tls_cool(link);
		link->used = false;
	}
	if (!spokei_list_empty(&tls->warm) && !look_later(tls))
		cool_all(tls);
}

void spokei_tls_warm_up(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;

	if (tls->warm_count == WARM_MAX)
		spokei_tls_cool(link_at(tls->warm.next));
	if (tls->warm_count == 0 && !look_later(tls)) {
		spokei_tls_cool(link);
		return;
	}
	spokei_list_append(&tls->warm, &link->warm);
	tls->warm_count++;
}
