/* SPDX-License-Identifier: Apache-2.0 */
/* Generic calls of Java at a provider, and the types of arguments that handlers see. */
#include "tests/cluster/javarig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define SPAN(literal) spokei_span(literal, sizeof(literal) - 1)

#define STARTS(method)                                                                             \
	"\xa5"                                                                                     \
	"2.0.2\xa6it.Api\xa5"                                                                      \
	"0.0.0" method
#define INVOKE(method)                                                                             \
	STARTS(method)                                                                             \
	"\xd9"                                                                                     \
	"8Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/Object;"
#define ENDS(form) "\x83\xa4path\xa6it.Api\xa9interface\xa6it.Api\xa7generic" form

static char seen[512];
static char types[256];
static struct spoke_request *held;

static void note(struct spoke_request *request, void *arg)
{
	struct spoke_span method = spoke_request_method(request);
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;
	size_t len;

	(void)arg;
	len = (size_t)snprintf(seen, sizeof(seen), "%.*s", (int)method.len,
			       (const char *)method.data);
	while (spoke_cursor_next(&args, &value)) {
		seen[len++] = ' ';
		len += spoke_value_print(value, seen + len, sizeof(seen) - len);
	}
	len = spoke_request_types(request, types, sizeof(types));
	assert_int_equal(len, strlen(types));
	if (method.len == 4 && memcmp(method.data, "hold", 4) == 0) {
		assert_int_equal(spoke_request_keep(request), 0);
		held = request;
		return;
	}
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void provide(void)
{
	static const struct spoke_handler handler = { .handle = note };

	javarig_provide(&handler, 1);
}

static void ask(struct spoke_span body)
{
	seen[0] = '\0';
	javarig_frame(JAVA_TWO_WAY | SPOKEI_CODEC_MSGPACK, 0, 7, body);
}

FIXTURE(javarig_set_up, javarig_tear_down);

TEST(generic_call_reaches_handler_of_its_method)
{
	provide();
	ask(SPAN(INVOKE("\xa7$invoke") "\xa3sum\x92\xa3int\xa3int\x92\x01\x02" ENDS("\xa4true")));
	assert_string_equal(seen, "sum 1 2");
	assert_string_equal(types, "II");
	ask(SPAN(INVOKE("\xac$invokeAsync") "\xa4user\x91\xa9it.Person\x91\x82\xa4name\xa3"
					    "bob\xa5"
					    "class\xa9it.Person" ENDS("\xa4true")));
	assert_string_equal(seen, "user {\"name\": \"bob\", \"class\": \"it.Person\"}");
	assert_string_equal(types, "Lit/Person;");
	ask(SPAN(INVOKE("\xa7$invoke") "\xa3zap\x90\x90" ENDS("\xaaraw.return")));
	assert_string_equal(seen, "zap");
	assert_string_equal(types, "");
	ask(SPAN(INVOKE("\xa7$invoke") "\xa3zap\xc0\x91\x05" ENDS("\xc0")));
	assert_string_equal(seen, "zap 5");
	assert_string_equal(types, "");
}

TEST(names_of_java_types_become_descriptors)
{
	provide();
	ask(SPAN(INVOKE("\xa7$invoke") "\xa1m\x9e\xa7"
				       "boolean\xa4"
				       "byte\xa4"
				       "char\xa5short\xa3int\xa4long\xa5"
				       "float\xa6"
				       "double\xb0java.lang.String\xa5int[]\xad"
				       "it.Person[][]\xa2[J\xac[Lit.Person;\xa0\x9e\x01\x01\x01"
				       "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01" ENDS(
					       "\xa4true")));
	assert_string_equal(types, "ZBCSIJFDLjava/lang/String;[I[[Lit/Person;[J[Lit/Person;L;");
}

TEST(handler_sees_types_that_the_caller_declared)
{
	char cut[8];

	provide();
	ask(SPAN(STARTS("\xa4over") "\xa1I\x01\x80"));
	assert_string_equal(types, "I");
	ask(SPAN(STARTS("\xa4over") "\xa1J\x01\x80"));
	assert_string_equal(types, "J");
	ask(SPAN(STARTS("\xa4over") "\xa0\x80"));
	assert_string_equal(types, "");
	ask(SPAN(STARTS("\xa4hold") "\xb2Ljava/lang/String;\xc0\x80"));
	assert_string_equal(types, "Ljava/lang/String;");
	assert_int_equal(spoke_request_types(held, cut, sizeof(cut)), 18);
	assert_string_equal(cut, "Ljava/l");
	assert_int_equal(spoke_request_types(held, NULL, 0), 18);
	spoke_reply(held, (struct spoke_value){ NULL, 0 });
}

TEST(other_forms_of_generic_calls_are_explained)
{
	static const struct spoke_span bodies[] = {
#define BODY(form)                                                                                 \
	{ INVOKE("\xa7$invoke") "\xa3zap\x90\x90" ENDS(form),                                      \
	  sizeof(INVOKE("\xa7$invoke") "\xa3zap\x90\x90" ENDS(form)) - 1 }
		BODY("\xa4gson"),
		BODY("\xa4"
		     "bean"),
		BODY("\xaanativejava"), BODY("\xadprotobuf-json")
	};

	provide();
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		ask(bodies[i]);
		assert_string_equal(seen, "");
		javarig_expect_text(40, "this form of generic calls is for Java providers only; "
					"use generic=true");
	}
	/* Other bad requests have their own text. */
	ask(SPAN(INVOKE("\xa7$invoke") "\xa3zap\x91\xa3int\x90" ENDS("\xa4true")));
	javarig_expect_text(40, spoke_strerror(SPOKE_EBADREQUEST));
}

TEST(one_way_generic_call_is_not_answered)
{
	struct spokei_message message;

	provide();
	javarig_frame(JAVA_ONE_WAY | SPOKEI_CODEC_MSGPACK, 0, 7,
		      SPAN(INVOKE("\xa7$invoke") "\xa3sum\x92\xa3int\xa3int\x92\x01\x02" ENDS(
			      "\xa4true")));
	assert_string_equal(seen, "sum 1 2");
	assert_null(javarig_next(&message).data);
}
