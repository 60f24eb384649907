/* SPDX-License-Identifier: Apache-2.0 */
/* consumer.c: calls demo.Greeter twice a second with the settings of greeter.conf. */
#include <spoke/spoke.h>

#include <stdio.h>

static void settled(void *out, const struct spoke_ticket_result *how)
{
	(void)fprintf(out, "ticket settled: %s\n", spoke_ticket_settlement_name(how->settlement));
}

static void done(void *out, const struct spoke_result *result)
{
	char text[256];

	(void)spoke_result_print(result, text, sizeof(text));
	(void)fprintf(out, "%s\n", text);
}

static void call(void *greet)
{
	int error = spoke_call_with(greet, SPOKE_ARGS("world"), done, stderr);

	if (error)
		(void)fprintf(stderr, "call failed: %s\n", spoke_strerror(error));
}

int main(void)
{
	struct spoke_consumer_options options = { .url = "consumer://any/demo.Greeter",
						  .settled = settled,
						  .settled_arg = stderr };
	struct spoke_program *program = spoke_program_new("greeter.conf");
	struct spoke_consumer *greeter = spoke_program_consumer(program, &options);
	struct spoke_method *greet = spoke_program_method(program, greeter, "greet", NULL);

	spoke_program_every(program, UINT64_C(500000000), call, greet);
	return spoke_program_run(program);
}
