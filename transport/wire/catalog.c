/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registration lines of the wires. No two wires begin with the same byte. Constant; any thread.
 */
#include "transport/wire/catalog.h"

#include "transport/wire/dubbo/dubbo.h"
#include "transport/wire/http/http.h"
#include "transport/wire/mprpc.h"

static const struct spokei_wire *const wires[] = {
	&spokei_wire_dubbo,
	&spokei_wire_mprpc,
	&spokei_wire_http,
};

#define WIRES (sizeof(wires) / sizeof(wires[0]))

const struct spokei_wire *spokei_catalog_sniff(unsigned char first)
{
	for (size_t i = 0; i < WIRES; i++)
		if (wires[i]->knows(first))
			return wires[i];
	return NULL;
}

const struct spokei_wire *spokei_catalog_wire(const char *name)
{
	for (size_t i = 0; i < WIRES; i++)
		if (!wires[i]->in_order && strcmp(wires[i]->name, name) == 0)
			return wires[i];
	return NULL;
}
