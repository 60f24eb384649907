/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces transport/conn/heartbeat: no peer is probed or timed out. */
#include "transport/conn/parts.h"

/* --- the idle check */

void spokei_idle_start(struct spokei_idle *idle, uint64_t now_ns)
{
	(void)idle;
	(void)now_ns;
}

void spokei_idle_asked(struct spokei_idle *idle, uint64_t now_ns)
{
	(void)idle;
	(void)now_ns;
}

void spokei_idle_moved(struct spokei_idle *idle, uint64_t now_ns)
{
	(void)idle;
	(void)now_ns;
}

void spokei_idle_handed(struct spokei_idle *idle, uint64_t now_ns)
{
	(void)idle;
	(void)now_ns;
}

uint64_t spokei_idle_due(const struct spokei_idle *idle, uint64_t interval_ns)
{
	(void)idle;
	(void)interval_ns;
	return UINT64_MAX;
}

bool spokei_idle_ripe(const struct spokei_idle *idle, const struct spokei_idle_moment *moment)
{
	(void)idle;
	(void)moment;
	return false;
}

enum spokei_idle_verdict spokei_idle_check(struct spokei_idle *idle,
					   const struct spokei_idle_moment *moment)
{
	(void)idle;
	(void)moment;
	return SPOKEI_IDLE_KEEP;
}

/* --- heartbeats */

int spokei_conn_probe(struct spokei_conn *conn)
{
	(void)conn;
	return 0;
}

int spokei_conn_greeting(const struct spokei_link *link, const struct spokei_wire *wire,
			 struct spokei_greeting **ret_greeting)
{
	(void)link;
	(void)wire;
	(void)ret_greeting;
	return SPOKE_ENOMEM; /* there is none: the path of a peer is not tried */
}

void spokei_conn_ask(struct spokei_conn *conn)
{
	(void)conn;
}

void spokei_conn_announce(struct spokei_conn *conn)
{
	(void)conn;
}

void spokei_conn_heard(struct spokei_conn *conn)
{
	(void)conn;
}

void spokei_conn_check_silence(struct spokei_conn *conn)
{
	(void)conn;
}

void spokei_conn_woke(struct spokei_conn *conn)
{
	(void)conn;
}

void spokei_conn_slim(struct spokei_conn *conn)
{
	(void)conn;
}
