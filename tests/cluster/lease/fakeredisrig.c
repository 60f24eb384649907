/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of tests of the Redis in memory: see fakeredisrig.h. */
#include "tests/cluster/lease/fakeredisrig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct fakeredisrig fakeredisrig;

#define rig fakeredisrig

void fakeredisrig_pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

void fakeredisrig_connect(struct fakeredisrig_client *client, const char *at)
{
	struct spoke_address address;

	client->user = (struct spokei_vnet_user){ .net = rig.world.net };
	assert_int_equal(spokei_vnet_table.parse(&client->user, at, &address), 0);
	assert_int_equal(spokei_vnet_table.connect(&client->user, &address, &client->fd),
			 -EINPROGRESS);
	fakeredisrig_pass(0);
	assert_int_equal(spokei_vnet_table.finish(&client->user, client->fd), 0);
}

void fakeredisrig_put(struct fakeredisrig_client *client, const void *bytes, size_t len)
{
	struct iovec part = { (void *)(uintptr_t)bytes, len };

	assert_int_equal(spokei_vnet_table.write(&client->user, client->fd, &part, 1), len);
}

void fakeredisrig_send(struct fakeredisrig_client *client, const char *words)
{
	char text[2048];
	size_t len = 0;
	unsigned count = 1;

	for (const char *at = words; *at; at++)
		count += *at == ' ';
	len += (size_t)snprintf(text, sizeof(text), "*%u\r\n", count);
	for (const char *at = words; count > 0; count--) {
		size_t word = strcspn(at, " ");

		len += (size_t)snprintf(text + len, sizeof(text) - len, "$%zu\r\n%.*s\r\n", word,
					(int)word, at);
		at += word + (count > 1);
	}
	for (size_t i = 0; i < len; i++)
		if (text[i] == '~')
			text[i] = ' ';
	fakeredisrig_put(client, text, len);
}

void fakeredisrig_got(struct fakeredisrig_client *client, const char *expected)
{
	char text[4096] = "";
	size_t len = 0;
	ssize_t got;

	fakeredisrig_pass(0);
	while ((got = spokei_vnet_table.read(&client->user, client->fd, text + len,
					     sizeof(text) - 8 - len)) > 0)
		len += (size_t)got;
	text[len] = '\0';
	if (got != -EAGAIN)
		(void)snprintf(text + len, sizeof(text) - len, "END");
	assert_string_equal(text, expected);
}

void fakeredisrig_answer(const char *words, const char *expected)
{
	fakeredisrig_send(&rig.one, words);
	fakeredisrig_got(&rig.one, expected);
}

int fakeredisrig_set_up(void **state)
{
	(void)state;
	if (!spokei_world_init(&rig.world, 1))
		return -1;
	fakeredis_start(&rig.server, &rig.world, FAKEREDISRIG_AT);
	fakeredisrig_connect(&rig.one, FAKEREDISRIG_AT);
	fakeredisrig_connect(&rig.two, FAKEREDISRIG_AT);
	return 0;
}

int fakeredisrig_tear_down(void **state)
{
	(void)state;
	spokei_vnet_kill(&rig.one.user);
	spokei_vnet_kill(&rig.two.user);
	fakeredis_stop(&rig.replica);
	fakeredis_stop(&rig.server);
	spokei_world_fini(&rig.world);
	memset(&rig, 0, sizeof(rig));
	return 0;
}
