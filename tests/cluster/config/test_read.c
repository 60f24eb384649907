/* SPDX-License-Identifier: Apache-2.0 */
/* Reading config files: valid settings, and the messages about invalid ones. */
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <spoke/config.h>
#include <spoke/host.h>
#include <spoke/registry.h>

#include <stdio.h>
#include <string.h>

static struct memory memory;
static char told[4096];
static unsigned told_count;

static void tell(void *arg, const char *sentence)
{
	size_t len = strlen(told);

	(void)arg;
	told_count++;
	(void)snprintf(told + len, sizeof(told) - len, "%s\n", sentence);
}

/* Uses the real network functions to parse addresses. */
static void begin(void)
{
	memory_init(&memory);
	memory.env.net = spoke_host_env()->net;
	told[0] = '\0';
}

static int read_bytes(const char *text, size_t len, struct spoke_config **ret_config)
{
	begin();
	told_count = 0;
	return spoke_config_parse(&memory.env, "a.conf", (struct spoke_span){ text, len }, tell,
				  NULL, ret_config);
}

static struct spoke_config *right(const char *text)
{
	struct spoke_config *config = NULL;

	assert_int_equal(read_bytes(text, strlen(text), &config), SPOKE_OK);
	assert_string_equal(told, "");
	return config;
}

static void drop(struct spoke_config *config)
{
	spoke_config_free(config);
	assert_int_equal(memory.bytes, 0);
}

static void wrong(const char *text, const char *sentences)
{
	struct spoke_config *config = NULL;

	assert_int_equal(read_bytes(text, strlen(text), &config), SPOKE_ESYNTAX);
	assert_null(config);
	assert_string_equal(told, sentences);
	assert_int_equal(memory.bytes, 0);
}

static void says(const char *text, const char *section, const char *key, const char *value)
{
	struct spoke_config *config = right(text);
	const char *found = spoke_config_get(config, section, key);

	if (value)
		assert_string_equal(found, value);
	else
		assert_null(found);
	drop(config);
}

/* --- valid settings */

TEST(file_values_are_returned)
{
	static const char text[] = "# how calls are made\n[registry]\n"
				   "url = file:///run/spoke/providers\n\n"
				   "  [ consumer ]  # of all services\n"
				   "\theartbeat    = 5s\n"
				   "retry.period=2s # a pause\n"
				   "; another comment\n"
				   "[service.demo.EchoService]\n"
				   "version = 1.0#b\n"
				   "[method.demo.EchoService.echo]\n"
				   "timeout = 200ms\n"
				   "[consumer]\nlazy = yes";
	struct spoke_config *config = right(text);

	assert_string_equal(spoke_config_get(config, "registry", "url"),
			    "file:///run/spoke/providers");
	assert_string_equal(spoke_config_get(config, "consumer", "heartbeat"), "5s");
	assert_string_equal(spoke_config_get(config, "consumer", "retry.period"), "2s");
	assert_string_equal(spoke_config_get(config, "consumer", "lazy"), "yes");
	assert_string_equal(spoke_config_get(config, "service.demo.EchoService", "version"),
			    "1.0#b");
	assert_string_equal(spoke_config_get(config, "method.demo.EchoService.echo", "timeout"),
			    "200ms");
	assert_null(spoke_config_get(config, "consumer", "timeout"));
	assert_null(spoke_config_get(config, "service.demo.Other", "version"));
	assert_null(spoke_config_get(config, "service", "version"));
	assert_null(spoke_config_get(config, "nowhere", "timeout"));
	assert_null(spoke_config_get(config, "registry", "retry.period"));
	drop(config);
}

TEST(empty_file_is_valid)
{
	says("", "consumer", "timeout", NULL);
	says("\n\n# only a comment", "consumer", "timeout", NULL);
	says("[consumer]", "consumer", "timeout", NULL);
}

TEST(crlf_and_byte_order_mark_are_accepted)
{
	says("\xef\xbb\xbf[consumer]\r\ntimeout = 5s\r\n", "consumer", "timeout", "5s");
	says("[consumer]\ntimeout = 5s\r", "consumer", "timeout", "5s");
}

TEST(quotes_preserve_their_content)
{
	says("[provider]\napplication = \" a # b \" # c", "provider", "application", " a # b ");
	says("[provider]\napplication = \"a \\\"b\\\" \\\\ \\c\"", "provider", "application",
	     "a \"b\" \\ \\c");
	says("[provider]\napplication = a \"b\"", "provider", "application", "a \"b\"");
}

TEST(every_kind_of_value_is_parsed)
{
	says("[provider]\nlisten = dubbo://0.0.0.0:20880, unix:/a?shared=true, fd://3\n",
	     "provider", "listen", "dubbo://0.0.0.0:20880, unix:/a?shared=true, fd://3");
	says("[consumer]\ncluster = failback", "consumer", "cluster", "failback");
	says("[consumer]\nheartbeat = 0", "consumer", "heartbeat", "0");
	says("[provider]\nqueued.max = 8MiB", "provider", "queued.max", "8MiB");
}

TEST(engine_uses_file_where_options_are_zero)
{
	struct spoke_engine_options options = { .late_ns = 7 };
	struct spoke_config *config = right("[engine]\ntick = 5ms\nlate = 1s\ntimers.max = 100\n"
					    "spin = 50us\npool.threads = 64\npool.queue = 1000\n");

	spoke_config_engine(config, &options);
	assert_int_equal(options.tick_ns, 5000000);
	assert_int_equal(options.late_ns, 7);
	assert_int_equal(options.timers_max, 100);
	assert_int_equal(options.spin_ns, 50000);
	assert_int_equal(options.pool_threads, 64);
	assert_int_equal(options.pool_queue, 1000);
	/* spin_ns is not set for an engine on a user's loop, because the combination is rejected.
	 */
	options = (struct spoke_engine_options){ .native = &options };
	spoke_config_engine(config, &options);
	assert_int_equal(options.spin_ns, 0);
	drop(config);
}

/* --- invalid settings */

TEST(all_errors_are_reported_at_once)
{
	wrong("retries = 3\n"
	      "[consumer]\n"
	      "heartbeat = 5\n"
	      "retry.perid = 5s\n"
	      "timeout = 1s\n"
	      "timeout = 2s\n"
	      "requests.max = 4\n"
	      "cluster = failbak\n"
	      "frame.max = 65MiB\n"
	      "listen\n"
	      "[servce.demo.Echo]\n"
	      "timout = 1s\n"
	      "[method.a.b]\n"
	      "timeout =  # none\n"
	      "sticky = maybe\n"
	      "[provider\n"
	      "executes = many\n"
	      "executes = 5\n"
	      "[somewhere]\n"
	      "x = 1\n",
	      "a.conf:1: retries = 3: before the first section; write a section above it, e.g. "
	      "[consumer]\n"
	      "a.conf:3: heartbeat = 5: a duration needs a unit; write 5ms or 5s\n"
	      "a.conf:4: retry.perid = 5s: no such key; did you mean retry.period?\n"
	      "a.conf:6: timeout = 2s: already set in line 5; keep one of them\n"
	      "a.conf:7: requests.max = 4: not allowed here; write requests.max in "
	      "[provider]\n"
	      "a.conf:8: cluster = failbak: not known; use failover, failfast, failsafe, failback, "
	      "forking, broadcast or available\n"
	      "a.conf:9: frame.max = 65MiB: too large; it goes from 1KiB to 64MiB\n"
	      "a.conf:10: neither a section nor a key; write key = value\n"
	      "a.conf:11: [servce.demo.Echo]: no such section; did you mean "
	      "[service.NAME]?\n"
	      "a.conf:12: timout = 1s: no such key; did you mean timeout?\n"
	      "a.conf:14: timeout = : missing value; write one or remove the line\n"
	      "a.conf:15: sticky = maybe: neither yes nor no; write true or false\n"
	      "a.conf:16: not a section; write e.g. [consumer]\n"
	      "a.conf:17: executes = many: neither a count nor auto; write a whole number, e.g. 8\n"
	      "a.conf:18: executes = 5: already set in line 17; keep one of them\n"
	      "a.conf:19: [somewhere]: no such section; use [consumer], [service.NAME], "
	      "[method.NAME], [provider], [registry], [lease], [comet], [engine]\n");
	assert_int_equal(told_count, 16);
}

TEST(each_error_has_its_message)
{
	static const struct {
		const char *text;
		const char *sentence;
	} cases[] = {
		{ "[consumer\n", "a.conf:1: not a section; write e.g. [consumer]\n" },
		{ "[consumer] x\n", "a.conf:1: not a section; write e.g. [consumer]\n" },
		{ "[service]", "a.conf:1: [service]: no such section; did you mean "
			       "[service.NAME]?\n" },
		{ "[method.]", "a.conf:1: [method.]: no such section; did you mean "
			       "[method.NAME]?\n" },
		{ "[x]", "a.conf:1: [x]: no such section; use [consumer], [service.NAME], "
			 "[method.NAME], [provider], [registry], [lease], [comet], [engine]\n" },
		{ "[consumer]\nregistry.retry.period = 1s",
		  "a.conf:2: registry.retry.period = 1s: not allowed here; write "
		  "retry.period in [registry]\n" },
		{ "[method.echo]\nheartbeat = 1s",
		  "a.conf:2: heartbeat = 1s: not allowed here; write heartbeat in "
		  "[consumer], [provider]\n" },
		{ "[consumer]\nTIMEOUT = 1s", "a.conf:2: TIMEOUT = 1s: no such key; did "
					      "you mean timeout?\n" },
		{ "[engine]\nfrobnicate = 1", "a.conf:2: frobnicate = 1: no such key; "
					      "see spoke config --explain\n" },
		{ "[consumer]\nheartbeat = 1ms",
		  "a.conf:2: heartbeat = 1ms: too small; it goes from 10ms to 596h, or 0 "
		  "for none\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		wrong(cases[i].text, cases[i].sentence);
}

TEST(values_are_checked_by_meaning)
{
	static const struct {
		const char *text;
		const char *sentence;
	} cases[] = {
		{ "[provider]\napplication = \"x",
		  "a.conf:2: application = \"x: missing closing quotation mark\n" },
		{ "[provider]\napplication = \"x\" y",
		  "a.conf:2: application = \"x\" y: text after the closing quotation mark; write "
		  "\\\" inside quotes\n" },
		{ "[provider]\nlisten = dubbo://1.2.3.4:1,, unix:/x",
		  "a.conf:2: listen = dubbo://1.2.3.4:1,, unix:/x: not a list; write values "
		  "separated by commas, e.g. one, two\n" },
		{ "[provider]\nlisten = dubbo://1.2.3.4:99999",
		  "a.conf:2: listen = dubbo://1.2.3.4:99999: a port is at most 65535\n" },
		{ "[provider]\nlisten = http://1.2.3.4:80",
		  "a.conf:2: listen = http://1.2.3.4:80: unknown scheme; use dubbo, "
		  "msgpack-rpc or tcp\n" },
		{ "[provider]\nlisten = unix:/a, dubbo://1.2.3.4?heartbeat=1s",
		  "a.conf:2: listen = unix:/a, dubbo://1.2.3.4?heartbeat=1s: an address may only "
		  "have the parameters shared, http, tls, mode, allow.from and deny.from; write "
		  "others "
		  "as keys of [provider]\n" },
		{ "[provider]\nlisten = dubbo://otherhost:1",
		  "a.conf:2: listen = dubbo://otherhost:1: not a numeric address, or the path is "
		  "too long; write one, e.g. dubbo://0.0.0.0:20880 or "
		  "unix:/run/echo.sock\n" },
		{ "[provider]\nlisten = shm:/a, shm:/b?tls=off, shm:/c?tls=on",
		  "a.conf:2: listen = shm:/a, shm:/b?tls=off, shm:/c?tls=on: shared memory has no "
		  "TLS; write tls=off, or use unix:/PATH\n" },
		{ "[provider]\nadvertise = \"a b\"", "a.conf:2: advertise = a b: not a host\n" },
		{ "[provider]\nadvertise = :", "a.conf:2: advertise = :: not a host\n" },
		{ "[provider]\nadvertise = 1:2:3", "a.conf:2: advertise = 1:2:3: not a host\n" },
		{ "[provider]\nadvertise = 0.0.0.0", "a.conf:2: advertise = 0.0.0.0: write a host "
						     "that consumers can reach, without a port\n" },
		{ "[engine]\nadmin = nonsense:port",
		  "a.conf:2: admin = nonsense:port: not a numeric address; write e.g. "
		  "127.0.0.1:9090, https://10.0.0.1:9090 or unix:/run/page.sock\n" },
		{ "[method.a b]", "a.conf:1: [method.a b]: a name may not contain blanks or "
				  "quotation marks; write e.g. demo.EchoService.echo\n" },
		{ "[method..x]", "a.conf:1: [method..x]: a part of the name is empty; write e.g. "
				 "demo.EchoService.echo\n" },
		{ "[service.x.y.]\ntimeout = 1",
		  "a.conf:1: [service.x.y.]: a part of the name is empty; write e.g. "
		  "demo.EchoService.echo\n"
		  "a.conf:2: timeout = 1: a duration needs a unit; write 1ms or 1s\n" },
		{ "[registry]\nurl = z k://user:secret@x",
		  "a.conf:2: url = ...: a scheme is made of letters, digits and + - . only\n" },
		{ "[registry]\nurl = consul://x",
		  "a.conf:2: url = consul://x: not a registry; write " SPOKE_REGISTRY_URLS "\n" },
		{ "[provider]\napplication = a\x01",
		  "a.conf:2: application = a\\x01: not a text; write printable characters\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		wrong(cases[i].text, cases[i].sentence);
}

TEST(hosts_of_digits_that_are_no_address_are_rejected)
{
	wrong("[provider]\nlisten = dubbo://999.1.1.1:1",
	      "a.conf:2: listen = dubbo://999.1.1.1:1: this is no IPv4 address; write one, e.g. "
	      "127.0.0.1\n");
	wrong("[provider]\nadvertise = 999.1.1.1",
	      "a.conf:2: advertise = 999.1.1.1: this is no IPv4 address; write e.g. 10.0.0.1, or "
	      "a name\n");
}

TEST(nul_byte_is_rejected)
{
	static const char text[] = "[consumer]\ntimeout = 1s\0\n";
	struct spoke_config *config;

	assert_int_equal(read_bytes(text, sizeof(text) - 1, &config), SPOKE_ESYNTAX);
	assert_string_equal(told, "a.conf:2: contains a NUL byte; is this the right file?\n");
}

/* --- limits */

static char many[2u << 20];

/* Reads many lines, each a number of `digits` digits between two texts. */
static int read_many(const char *head, const char *before, int digits, const char *behind,
		     unsigned count)
{
	struct spoke_config *config = NULL;
	size_t len = (size_t)snprintf(many, sizeof(many), "%s", head);
	int error;

	for (unsigned i = 0; i < count; i++)
		len += (size_t)snprintf(many + len, sizeof(many) - len, "%s%0*u%s", before, digits,
					i, behind);
	error = read_bytes(many, len, &config);
	spoke_config_free(config);
	assert_int_equal(memory.bytes, 0);
	return error;
}

TEST(limits_of_file_are_enforced)
{
	assert_int_equal(read_many("", "[service.s", 1, "]\n", 1024), SPOKE_OK);
	assert_int_equal(read_many("", "[service.s", 1, "]\n", 1025), SPOKE_ESYNTAX);
	assert_string_equal(told, "a.conf:1025: too many sections; at most 1024\n");
	assert_int_equal(read_many("", "[service.s", 1,
				   "]\ntimeout=1s\nforks=1\nretries=1\ntps=1\n", 1024),
			 SPOKE_OK);
	assert_int_equal(read_many("", "[service.s", 1,
				   "]\ntimeout=1s\nforks=1\nretries=1\ntps=1\nactives=1\n", 1000),
			 SPOKE_ESYNTAX);
	assert_int_equal(told_count, 904);
	assert_int_equal(read_many("", "wrong ", 1, "\n", 2000), SPOKE_ESYNTAX);
	assert_int_equal(told_count, 1000);
	assert_int_equal(read_many("", "# ", 60, "\n", 16644), SPOKE_OK);
	assert_int_equal(read_many("", "# ", 60, "\n", 16645), SPOKE_ETOOLARGE);
	assert_string_equal(told, "a.conf: the file is too large; at most 1048576 "
				  "bytes\n");
	assert_int_equal(read_many("[provider]\n", "application = ", 5000, "\n", 1), SPOKE_ESYNTAX);
	assert_string_equal(told, "a.conf:2: the line is too long; at most 4096 bytes\n");
	assert_int_equal(read_many("[provider]\n", "application = ", 2049, "\n", 1), SPOKE_ESYNTAX);
	assert_non_null(strstr(told, "...: too long; it has at most 2048 bytes\n"));
}

TEST(enomem_is_reported)
{
	static const char text[] = "[provider]\nlisten = dubbo://0.0.0.0:1\n[consumer]\nlazy = 1\n";
	unsigned failed = 0;
	int error = SPOKE_ENOMEM;

	while (error == SPOKE_ENOMEM) {
		struct spoke_config *config = NULL;

		begin();
		memory.fail_at = ++failed;
		error = spoke_config_parse(&memory.env, "a.conf",
					   (struct spoke_span){ text, sizeof(text) - 1 }, tell,
					   NULL, &config);
		if (error)
			assert_non_null(strstr(told, "out of memory"));
		spoke_config_free(config);
		assert_int_equal(memory.bytes, 0);
	}
	assert_int_equal(error, SPOKE_OK);
	assert_true(failed > 5);
}

TEST(callback_is_optional)
{
	struct spoke_config *config = NULL;

	memory_init(&memory);
	assert_int_equal(spoke_config_parse(&memory.env, "a", (struct spoke_span){ "x", 1 }, NULL,
					    NULL, &config),
			 SPOKE_ESYNTAX);
	assert_int_equal(spoke_config_parse(&memory.env, NULL, (struct spoke_span){ "", 0 }, NULL,
					    NULL, &config),
			 SPOKE_EINVAL);
	assert_null(config);
	spoke_config_free(NULL);
}

/* --- the table */

TEST(every_key_is_described_and_accepts_its_default)
{
	struct spoke_config_key key;
	size_t count = 0;

	for (; spoke_config_key(count, &key); count++) {
		char text[512];
		char section[64];
		int numbered = strcmp(key.kind, "text") != 0 && strcmp(key.kind, "list") != 0;

		assert_true(strlen(key.sentence) > 5);
		assert_true(strlen(key.sections) >= 5);
		assert_true(strlen(key.sections) < sizeof(key.sections) - 1);
		assert_true(strlen(key.preset) < sizeof(key.preset) - 1);
		assert_true(strlen(key.range) < sizeof(key.range) - 1);
		if (!numbered || strpbrk(key.preset, ",(/"))
			continue;
		assert_true(strlen(key.preset) > 0);
		(void)snprintf(section, sizeof(section), "%.*s", (int)strcspn(key.sections, ","),
			       key.sections);
		(void)snprintf(text, sizeof(text), "[%s]\n%s = %s\n", section, key.name,
			       strcmp(key.preset, "0s") == 0 ? "0" : key.preset);
		says(text, section, key.name, strcmp(key.preset, "0s") == 0 ? "0" : key.preset);
	}
	assert_true(count > 45);
}
