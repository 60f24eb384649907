/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of addresses: what is read as one, and which machines lie in it. */
#include "core/text/range.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <string.h>

static struct spoke_span span_of(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

/* Returns whether the text is a range, and the machine lies in it. */
static bool contains(const char *text, const char *machine)
{
	struct spokei_machine other = { .kind = SPOKEI_MACHINE_UNIX };
	struct spokei_range range;

	assert_null(spokei_range_read(span_of(text), &range));
	if (strcmp(machine, "unix") != 0)
		assert_true(spokei_machine_read(span_of(machine), &other));
	return spokei_range_has(&range, &other);
}

TEST(range_contains_both_edges_and_nothing_beyond)
{
	static const struct {
		const char *range;
		const char *first;
		const char *last;
		const char *before;
		const char *after;
	} rows[] = {
		{ "10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0" },
		{ "10.1.2.0/23", "10.1.2.0", "10.1.3.255", "10.1.1.255", "10.1.4.0" },
		{ "10.1.2.4/30", "10.1.2.4", "10.1.2.7", "10.1.2.3", "10.1.2.8" },
		{ "10.1.2.4/31", "10.1.2.4", "10.1.2.5", "10.1.2.3", "10.1.2.6" },
		{ "10.1.2.4/32", "10.1.2.4", "10.1.2.4", "10.1.2.3", "10.1.2.5" },
		{ "10.1.2.4", "10.1.2.4", "10.1.2.4", "10.1.2.3", "10.1.2.5" },
		{ "128.0.0.0/1", "128.0.0.0", "255.255.255.255", "127.255.255.255", "::1" },
		{ "0.0.0.0/0", "0.0.0.0", "255.255.255.255", "::", "ffff::" },
		{ "2001:db8::/32", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
		  "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::" },
		{ "2001:db8::/63", "2001:db8::", "2001:db8:0:1:ffff:ffff:ffff:ffff",
		  "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8:0:2::" },
		{ "2001:db8::/64", "2001:db8::", "2001:db8::ffff:ffff:ffff:ffff",
		  "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8:0:1::" },
		{ "2001:db8::/65", "2001:db8::", "2001:db8::7fff:ffff:ffff:ffff",
		  "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::8000:0:0:0" },
		{ "::1/128", "::1", "::1", "::", "::2" },
		{ "::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "1.2.3.4",
		  "::ffff:1.2.3.4" },
		{ "8000::/1", "8000::", "ffff::", "7fff::", "128.0.0.0" },
		{ "unix", "unix", "unix", "127.0.0.1", "::1" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		assert_true(contains(rows[i].range, rows[i].first));
		assert_true(contains(rows[i].range, rows[i].last));
		assert_false(contains(rows[i].range, rows[i].before));
		assert_false(contains(rows[i].range, rows[i].after));
	}
}

TEST(mapped_addresses_are_ipv4_in_ranges_and_peers)
{
	assert_true(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
	assert_true(contains("10.0.0.0/8", "::ffff:a01:203"));
	assert_true(contains("::ffff:10.0.0.0/104", "10.255.0.1"));
	assert_false(contains("::ffff:10.0.0.0/104", "11.0.0.0"));
	assert_true(contains("::ffff:0:0/96", "255.0.0.1"));
	assert_true(contains("::ffff:10.1.2.3", "10.1.2.3"));
	assert_false(contains("::/1", "10.1.2.3"));
	assert_false(contains("::10.0.0.0/104", "10.1.2.3"));
}

struct wrong {
	const char *text;
	const char *why;
};

static void assert_refused(const struct wrong *rows, size_t count)
{
	struct spokei_range range;

	for (size_t i = 0; i < count; i++) {
		const char *why = spokei_range_read(span_of(rows[i].text), &range);

		assert_non_null(why);
		assert_non_null(strstr(why, rows[i].why));
	}
}

TEST(text_that_is_no_address_is_refused)
{
	static const struct wrong rows[] = {
		{ "", "not an address" },
		{ "/8", "not an address" },
		{ "10", "not an address" },
		{ "10.0.0", "not an address" },
		{ "10.0.0.0.0", "not an address" },
		{ "10.0.0.", "not an address" },
		{ ".10.0.0", "not an address" },
		{ "10.0.0.256", "not an address" },
		{ "10.0.0.4294967296", "not an address" },
		{ "010.0.0.0/8", "not an address" },
		{ "10.0.0.00", "not an address" },
		{ "0x0a.0.0.0", "not an address" },
		{ " 10.0.0.0", "not an address" },
		{ "10.0.0.0 ", "not an address" },
		{ "10.0.0.0:80", "not an address" },
		{ "host.test", "not an address" },
		{ "*", "not an address" },
		{ "unix:", "not an address" },
		{ "UNIX", "not an address" },
		{ "[::1]", "not an address" },
		{ ":", "not an address" },
		{ ":1", "not an address" },
		{ "1:", "not an address" },
		{ ":::", "not an address" },
		{ "1::2::3", "not an address" },
		{ "1:2:3:4:5:6:7", "not an address" },
		{ "1:2:3:4:5:6:7:", "not an address" },
		{ "1:2:3:4:5:6:7:8:9", "not an address" },
		{ "1:2:3:4::5:6:7:8", "not an address" },
		{ "12345::", "not an address" },
		{ "::g", "not an address" },
		{ "::1.2.3", "not an address" },
		{ "::1.2.3.4.5", "not an address" },
		{ "::1.2.3.4:5", "not an address" },
		{ "1:2:3:4:5:6:7:1.2.3.4", "not an address" },
		{ "fe80::1%eth0", "not an address" },
	};

	assert_refused(rows, LENGTH(rows));
}

TEST(wrong_prefix_is_refused_with_the_reason)
{
	static const struct wrong rows[] = {
		{ "10.0.0.0/", "0 to 32" },
		{ "10.0.0.0/33", "0 to 32" },
		{ "10.0.0.0/-1", "0 to 32" },
		{ "10.0.0.0/08", "0 to 32" },
		{ "10.0.0.0/8x", "0 to 32" },
		{ "10.0.0.0/8/8", "0 to 32" },
		{ "10.0.0.0/255.0.0.0", "0 to 32" },
		{ "10.0.0.0/99999999999999999999", "0 to 32" },
		{ "::/129", "0 to 128" },
		{ "10.0.0.1/8", "beyond its prefix" },
		{ "0.0.0.1/0", "beyond its prefix" },
		{ "10.0.0.1/31", "beyond its prefix" },
		{ "2001:db8::1/64", "beyond its prefix" },
		{ "2001:db8:0:1::/63", "beyond its prefix" },
		{ "::ffff:10.0.0.1/104", "beyond its prefix" },
		{ "::ffff:10.0.0.0/95", "at least 96" },
	};

	assert_refused(rows, LENGTH(rows));
}

TEST(address_has_the_same_number_in_every_form)
{
	static const char *const forms[][2] = {
		{ "2001:db8::1", "2001:0DB8:0:0:0:0:0:1" },
		{ "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0" },
		{ "::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8" },
		{ "::", "0:0:0:0:0:0:0:0" },
		{ "64:ff9b::1.2.3.4", "64:ff9b::102:304" },
		{ "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304" },
		{ "::ffff:1.2.3.4", "1.2.3.4" },
	};

	for (size_t i = 0; i < LENGTH(forms); i++) {
		struct spokei_machine machines[2];

		for (unsigned j = 0; j < 2; j++)
			assert_true(spokei_machine_read(span_of(forms[i][j]), &machines[j]));
		assert_int_equal(machines[0].kind, machines[1].kind);
		assert_int_equal(machines[0].high, machines[1].high);
		assert_int_equal(machines[0].low, machines[1].low);
	}
}

/* Returns whether the peer with this address lies in the range. */
static bool has_peer(const struct spoke_env *env, const char *text, const char *peer)
{
	struct spokei_machine machine;
	struct spoke_address address;
	struct spokei_range range;

	assert_int_equal(env->net->parse(env->ctx, peer, &address), 0);
	machine = spokei_machine_of(env, &address);
	assert_null(spokei_range_read(span_of(text), &range));
	return spokei_range_has(&range, &machine);
}

TEST(peers_of_each_network_have_machines)
{
	const struct spoke_env *envs[2] = { spoke_host_env() };
	struct spokei_world_process process;
	struct spokei_world world;

	scene_open(&world, 1);
	spokei_world_process_init(&process, &world);
	envs[1] = &process.env;
	for (unsigned i = 0; i < 2; i++) {
		assert_true(has_peer(envs[i], "10.0.0.0/8", "10.1.2.3:80"));
		assert_false(has_peer(envs[i], "10.0.0.0/8", "11.1.2.3:80"));
		assert_true(has_peer(envs[i], "10.0.0.0/8", "[::ffff:10.1.2.3]:80"));
		assert_true(has_peer(envs[i], "2001:db8::/32", "[2001:db8::7]:80"));
		assert_true(has_peer(envs[i], "fe80::/10", "[fe80::1%1]:80"));
		assert_true(has_peer(envs[i], "unix", "unix:/run/x.sock"));
		assert_true(has_peer(envs[i], "unix", "unix:@x"));
		assert_false(has_peer(envs[i], "0.0.0.0/0", "unix:@x"));
		assert_false(has_peer(envs[i], "unix", "127.0.0.1:1"));
	}
	assert_false(has_peer(&process.env, "unix", "mem:a"));
	assert_false(has_peer(&process.env, "::/0", "mem:a"));
	spokei_world_process_fini(&process);
	spokei_world_fini(&world);
}

/* Is the system's address of a unix client, which has no name. */
TEST(client_without_name_is_of_this_machine)
{
	const struct spoke_env *env = spoke_host_env();
	struct spoke_address address;
	struct spokei_machine machine;

	assert_int_equal(env->net->parse(env->ctx, "unix:@x", &address), 0);
	address.len = sizeof(unsigned short);
	machine = spokei_machine_of(env, &address);
	assert_int_equal(machine.kind, SPOKEI_MACHINE_UNIX);
	address.len = 0;
	machine = spokei_machine_of(env, &address);
	assert_int_equal(machine.kind, SPOKEI_MACHINE_OTHER);
}

TEST(address_is_printed_in_one_form)
{
	static const struct {
		const char *text;
		const char *expected;
	} cases[] = {
		{ "10.0.0.1", "10.0.0.1" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "2001:DB8:0:0:0:0:0:1", "2001:db8::1" },
		{ "::", "::" },
		{ "::1", "::1" },
		{ "1::", "1::" },
		{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
		{ "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },
		{ "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
		{ "::ffff:10.0.0.1", "10.0.0.1" },
	};
	char text[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct spoke_span given = { cases[i].text, strlen(cases[i].text) };
		struct spokei_machine machine;

		assert_true(spokei_machine_read(given, &machine));
		assert_int_equal(spokei_machine_print(&machine, text, sizeof(text)),
				 strlen(cases[i].expected));
		assert_string_equal(text, cases[i].expected);
		assert_int_equal(spokei_machine_print(&machine, text, strlen(cases[i].expected)),
				 0);
	}
}
