/* SPDX-License-Identifier: Apache-2.0 */
/* Writes status and metrics of an engine, and reads them back. */
#include "tests/cluster/admin/statusrig.h"

#include "tests/cluster/admin/promread.h"

#include <string.h>

struct spokei_status_of statusrig_of;
struct spokei_history statusrig_history;

static struct spokei_buffer out;

int statusrig_set_up(void **state)
{
	if (clusterrig_set_up(state))
		return -1;
	spokei_buffer_init(&out, &clusterrig.faulty.env, 1u << 20);
	spokei_history_init(&statusrig_history, clusterrig.engine);
	statusrig_of = (struct spokei_status_of){
		.name = "a \"test\"",
		.number = 42,
		.born_ns = spoke_engine_now(clusterrig.engine),
		.history = &statusrig_history,
	};
	return 0;
}

int statusrig_tear_down(void **state)
{
	spokei_buffer_fini(&out);
	return clusterrig_tear_down(state);
}

/* Appends a NUL. */
static const char *text_of_out(void)
{
	const char *text;

	assert_int_equal(spokei_buffer_append(&out, "", 1), 0);
	text = (const char *)spokei_buffer_data(&out);
	return text ? text : "";
}

struct jsonread statusrig_look_at(struct spoke_engine *engine)
{
	const char *text;
	const char *wrong;
	size_t len;
	size_t at;

	spokei_engine_refresh(engine);
	spokei_buffer_truncate(&out, 0);
	assert_int_equal(spokei_status_write(engine, &statusrig_of, &out), 0);
	len = spokei_buffer_len(&out);
	text = text_of_out();
	wrong = jsonread_check(text, len, &at);
	if (wrong)
		fail_msg("%s, at %zu: %.60s", wrong, at, text + at);
	assert_null(strpbrk(text, "\n<"));
	return jsonread_of(text, len);
}

struct jsonread statusrig_look(void)
{
	return statusrig_look_at(clusterrig.engine);
}

const char *statusrig_metrics(struct spoke_engine *engine)
{
	const char *text;
	const char *wrong;
	unsigned line;

	spokei_engine_refresh(engine);
	spokei_buffer_truncate(&out, 0);
	assert_int_equal(spokei_metrics_write(engine, &statusrig_of, &out), 0);
	text = (const char *)spokei_buffer_data(&out);
	wrong = promread_check(text, spokei_buffer_len(&out), &line);
	if (wrong)
		fail_msg("line %u: %s", line, wrong);
	return text_of_out();
}

void statusrig_drop(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply_error(request, 1, "nothing");
}
