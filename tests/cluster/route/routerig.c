/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of tests of routing rules: see routerig.h. */
#include "tests/cluster/route/routerig.h"

#include "core/base/span.h"
#include "tests/support/test.h"

#include <spoke/value.h>

struct routerig routerig;

static unsigned char attachments[256];
static char tag[SPOKEI_ROUTE_TAG_MAX];

static void parse(const char *text, struct spoke_url *ret)
{
	spoke_url_fini(ret);
	assert_int_equal(spoke_url_parse(&routerig.memory.env, text, strlen(text), ret, NULL), 0);
}

int routerig_set_up(void **state)
{
	static const unsigned char args[] = "\xa2hi";

	(void)state;
	routerig = (struct routerig){ 0 };
	memory_init(&routerig.memory);
	parse("consumer://127.0.0.1/h9.Alpha?application=cr&interface=h9.Alpha&side=consumer",
	      &routerig.consumer);
	routerig.call.consumer = &routerig.consumer;
	routerig.call.method = spokei_span_of("who");
	routerig.call.args = spokei_span(args, sizeof(args) - 1);
	return 0;
}

int routerig_tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SPOKEI_ROUTE_SOURCES; i++)
		routerig_rule((enum spokei_route_source)i, NULL);
	for (unsigned i = 0; i < ROUTERIG_PROVIDERS; i++)
		spoke_url_fini(&routerig.urls[i]);
	spoke_url_fini(&routerig.consumer);
	assert_int_equal(routerig.memory.bytes, 0);
	return 0;
}

void routerig_provide(const char *const *urls)
{
	for (routerig.count = 0; urls[routerig.count]; routerig.count++)
		parse(urls[routerig.count], &routerig.urls[routerig.count]);
}

int routerig_try_rule(enum spokei_route_source source, const char *text)
{
	const char *category = source == SPOKEI_ROUTE_TAGS ? SPOKEI_RULE_TAGS
							   : SPOKEI_RULE_CONDITIONS;

	*routerig.why = '\0';
	spokei_route_free(routerig.rules.of[source]);
	routerig.rules.of[source] = NULL;
	if (text == NULL)
		return SPOKE_OK;
	return spokei_route_read(&routerig.memory.env, category, text, &routerig.rules.of[source],
				 routerig.why);
}

void routerig_rule(enum spokei_route_source source, const char *text)
{
	if (routerig_try_rule(source, text))
		fail_msg("%s: %s", text, routerig.why);
}

void routerig_attach(const char *pairs)
{
	struct spoke_builder builder;
	struct spoke_span bytes;
	size_t count = *pairs != '\0';

	routerig.call.tag = spokei_span(NULL, 0);
	for (const char *at = pairs; *at; at++)
		count += *at == ',';
	spoke_builder_init_fixed(&builder, attachments, sizeof(attachments), NULL);
	spoke_pack_map(&builder, count);
	for (; count > 0; count--) {
		size_t key = strcspn(pairs, "=");
		size_t len = strcspn(pairs + key + 1, ",");

		spoke_pack_str(&builder, pairs, key);
		spoke_pack_str(&builder, pairs + key + 1, len);
		if (spokei_span_is(spokei_span(pairs, key), SPOKEI_ROUTE_FORCE_KEY))
			routerig.call.force_tag = true;
		if (spokei_span_is(spokei_span(pairs, key), SPOKEI_ROUTE_TAG_KEY)) {
			memcpy(tag, pairs + key + 1, len);
			routerig.call.tag = spokei_span(tag, len);
		}
		pairs += key + len + 2;
	}
	assert_int_equal(spoke_builder_finish(&builder, &bytes), 0);
	routerig.call.attachments = (struct spoke_value){ bytes.data, bytes.len };
}

unsigned routerig_decide(uint64_t dice)
{
	struct spokei_route_provider providers[ROUTERIG_PROVIDERS];
	struct spokei_route_choice choice;
	uint8_t members[ROUTERIG_PROVIDERS];
	const struct spokei_route_field field = { providers, routerig.count, members };
	unsigned left = 0;
	uint32_t tried = 0;

	for (unsigned i = 0; i < routerig.count; i++)
		providers[i] = (struct spokei_route_provider){
			&routerig.urls[i], spoke_url_get(&routerig.urls[i], SPOKEI_ROUTE_TAG_KEY)
		};
	spokei_route_choose(&routerig.rules, &routerig.call, dice, &choice);
	spokei_route_apply(&routerig.rules, &choice, routerig.call.consumer, &field,
			   &routerig.verdict);
	while (routerig.verdict.empty != UINT16_MAX) {
		spokei_route_draw_again(&routerig.rules, routerig.verdict.empty, &tried, dice,
					&choice);
		spokei_route_apply(&routerig.rules, &choice, routerig.call.consumer, &field,
				   &routerig.verdict);
	}
	for (unsigned i = 0; i < routerig.count; i++)
		left |= (unsigned)members[i] << i;
	return left;
}
