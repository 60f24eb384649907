/* SPDX-License-Identifier: Apache-2.0 */
/* provider.c: serves demo.Greeter with the settings of greeter.conf. */
#include <spoke/spoke.h>

#include <stdio.h>

static void greet(struct spoke_request *request, void *greeting)
{
	char name[200], text[256];

	if (SPOKE_READ_REQUEST(request, SPOKE_TEXT(name)))
		return;
	(void)snprintf(text, sizeof(text), "%s, %s", (const char *)greeting, name);
	SPOKE_REPLY(request, text);
}

int main(void)
{
	struct spoke_handler greeter = { .method = "greet", .handle = greet, .arg = "hello" };
	struct spoke_program *program = spoke_program_new("greeter.conf");

	spoke_program_serve(program, "dubbo://127.0.0.1:0", "demo.Greeter", &greeter, 1);
	return spoke_program_run(program);
}
