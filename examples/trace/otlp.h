/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends spans to a collector by OTLP over HTTP, as JSON. A thread posts what the engines have put
 * into a queue, so no engine waits. It needs POSIX threads and sockets only: copy the four files
 * otlp* into your program.
 *
 *     struct otlp *otlp = otlp_new(&(struct otlp_options){ .service = "shop" });
 *     struct spoke_tracer_options with = { .ended = otlp_span, .arg = otlp };
 */
#ifndef EXAMPLES_TRACE_OTLP_H
#define EXAMPLES_TRACE_OTLP_H

#include <spoke/trace.h>

struct otlp;

/* 0 or NULL selects the default. Texts are borrowed. */
struct otlp_options {
	const char *host;    /* of the collector; "127.0.0.1" */
	const char *port;    /* "4318" */
	const char *service; /* name of this program; "spoke" */
	unsigned queue_max;  /* spans that wait; 2048; more are dropped and counted */
	unsigned batch_max;  /* spans of one request; 512 */
	unsigned period_ms;  /* the longest time that a span waits; 1000 */
	unsigned timeout_ms; /* of connecting, sending and the answer, each; 3000 */
	unsigned attempts;   /* for a batch that the collector does not take now; 3 */
};

struct otlp_counts {
	unsigned long sent;    /* spans that the collector has taken */
	unsigned long dropped; /* spans without room in the queue, or without memory */
	unsigned long failed;  /* spans that the collector did not take */
	char why[128];         /* the last failure; "": none */
};

/* Returns NULL without memory or a thread. */
struct otlp *otlp_new(const struct otlp_options *options);

/* Takes a span; the callback of a tracer, whose `arg` is the exporter. Any thread. */
void otlp_span(void *arg, const struct spoke_trace_span *span);

/* Sends the rest, ends the thread and frees the exporter. Blocks for attempts x 3 timeouts at most
 * for each batch. Free the engines first. NULL is allowed. */
void otlp_free(struct otlp *otlp, struct otlp_counts *ret_counts);

#endif
