/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A blocking call in three lines: asks demo.EchoService once and prints the answer.
 *
 *     ask [url]
 */
#include <spoke/client.h>

#include <stdio.h>

int main(int argc, char **argv)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	char text[64];
	int error;

	spoke_dial(argc > 1 ? argv[1] : "dubbo://127.0.0.1:20880/demo.EchoService", &client);
	spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer);
	error = SPOKE_READ_ANSWER(&answer, SPOKE_TEXT(text));
	puts(error ? answer.why : text);
	spoke_answer_free(&answer);
	spoke_client_free(client);
	return error != 0;
}
