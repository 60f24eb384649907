/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and prints the addresses of the network in memory. */
#include "core/virtual/net_name.h"

#include "core/base/address.h"
#include "timer/base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Returns ":PORT" of an IP address, NULL for other names. */
static const char *port_of(const char *name)
{
	return begins(name, "mem:") || begins(name, "unix:") ? NULL : strrchr(name, ':');
}

int spokei_vname_parse(const char *text, struct spoke_address *ret_address)
{
	struct spoke_address real;
	char name[SPOKEI_VNAME_SIZE];
	int error;

	if (begins(text, "mem:")) {
		if (strlen(text) == strlen("mem:") || strlen(text) >= SPOKEI_VNAME_SIZE / 2)
			return -EINVAL;
		spokei_vname_to_address(text, ret_address);
		return 0;
	}
	error = spokei_address_parse(text, &real);
	if (error)
		return error;
	spokei_address_print(&real, name, sizeof(name));
	spokei_vname_to_address(name, ret_address);
	return 0;
}

void spokei_vname_to_address(const char *name, struct spoke_address *ret_address)
{
	size_t len = strlen(name);

	SPOKE_ASSERT(len < sizeof(ret_address->bytes));
	*ret_address = (struct spoke_address){ .len = (uint32_t)len };
	memcpy(ret_address->bytes, name, len);
}

void spokei_vname_of(const struct spoke_address *address, char *ret_name)
{
	SPOKE_ASSERT(address->len < SPOKEI_VNAME_SIZE);
	memcpy(ret_name, address->bytes, address->len);
	ret_name[address->len] = '\0';
}

bool spokei_vname_has_port(const char *name)
{
	return port_of(name) != NULL;
}

bool spokei_vname_wants_port(const char *name)
{
	const char *port = port_of(name);

	return port && strcmp(port, ":0") == 0;
}

void spokei_vname_set_port(char *name, uint16_t port)
{
	size_t len = strlen(name) - strlen(port_of(name));

	(void)snprintf(name + len, SPOKEI_VNAME_SIZE - len, ":%u", (unsigned)port);
}

const char *spokei_vname_of_client(const char *remote)
{
	if (begins(remote, "unix:"))
		return "unix:";
	if (begins(remote, "["))
		return "[::1]:0";
	return "127.0.0.1:0";
}

bool spokei_vname_covers(const char *listening, const char *name)
{
	const char *port = port_of(name);
	const char *listening_port = port_of(listening);

	if (strcmp(listening, name) == 0)
		return true;
	if (port == NULL || listening_port == NULL || strcmp(listening_port, port) != 0)
		return false;
	return begins(listening, begins(name, "[") ? "[::]:" : "0.0.0.0:");
}
