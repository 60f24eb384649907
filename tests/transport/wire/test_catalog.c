/* SPDX-License-Identifier: Apache-2.0 */
/* Looks wires up by first byte and by name. */
#include "tests/support/test.h"
#include "transport/wire/catalog.h"
#include "transport/wire/dubbo/dubbo.h"
#include "transport/wire/http/http.h"
#include "transport/wire/mprpc.h"

TEST(first_byte_determines_wire)
{
	for (unsigned first = 0; first < 256; first++) {
		const struct spokei_wire *expected = NULL;

		if (first == 0xda)
			expected = &spokei_wire_dubbo;
		else if (first == 0x93 || first == 0x94 || first == 0xdc || first == 0xdd)
			expected = &spokei_wire_mprpc;
		else if (first != 0 && strchr("GHPODCT", (int)first))
			expected = &spokei_wire_http;
		assert_ptr_equal(spokei_catalog_sniff((unsigned char)first), expected);
	}
}

TEST(first_bytes_of_wires_are_disjoint)
{
	for (unsigned first = 0; first < 256; first++)
		assert_true(spokei_wire_dubbo.knows((unsigned char)first) +
				    spokei_wire_mprpc.knows((unsigned char)first) +
				    spokei_wire_http.knows((unsigned char)first) <=
			    1);
}

TEST(wire_is_found_by_whole_name)
{
	static const char *const unknown[] = { "",        "dubb",         "dubbo2", "Dubbo",
					       "msgpack", "msgpack-rpc ", "unix",   "http" };

	assert_ptr_equal(spokei_catalog_wire("dubbo"), &spokei_wire_dubbo);
	assert_ptr_equal(spokei_catalog_wire("msgpack-rpc"), &spokei_wire_mprpc);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_null(spokei_catalog_wire(unknown[i]));
}

TEST(every_wire_has_all_functions)
{
	const struct spokei_wire *const wires[] = { &spokei_wire_dubbo, &spokei_wire_mprpc,
						    &spokei_wire_http, &spokei_wire_http_off };

	for (size_t i = 0; i < sizeof(wires) / sizeof(wires[0]); i++) {
		assert_true(wires[i]->name && wires[i]->knows && wires[i]->next);
		assert_true(wires[i]->prefix && wires[i]->write);
		assert_true(wires[i]->probes == (wires[i]->length != NULL));
		assert_true(wires[i]->id_first < wires[i]->id_max);
	}
}

TEST(wire_declares_its_features)
{
	assert_true(spokei_wire_dubbo.probes && spokei_wire_dubbo.deadlines);
	assert_false(spokei_wire_mprpc.probes || spokei_wire_mprpc.deadlines);
	assert_true(spokei_wire_dubbo.id_first == 0 && spokei_wire_dubbo.id_max == UINT64_MAX);
	assert_true(spokei_wire_mprpc.id_first == 1 && spokei_wire_mprpc.id_max == UINT32_MAX);
}
