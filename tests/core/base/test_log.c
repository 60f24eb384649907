/* SPDX-License-Identifier: Apache-2.0 */
/* Error numbers with their names and sentences, the log, and addresses as text. */
#include "core/base/address.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "tests/support/test.h"

#include <spoke/error.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* --- error numbers, names and sentences */

static const struct {
	const char *name;
	int number;
	const char *sentence;
} errors[] = {
#define ROW(name, number, sentence) { #name, number, sentence },
	SPOKE_ERRORS(ROW)
#undef ROW
};

#define ERROR_COUNT (sizeof(errors) / sizeof(errors[0]))

TEST(error_names_and_sentences_are_unique)
{
	for (size_t i = 0; i < ERROR_COUNT; i++) {
		assert_string_equal(spoke_errname(errors[i].number), errors[i].name);
		assert_string_equal(spoke_strerror(errors[i].number), errors[i].sentence);
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(errors[i].name, errors[j].name);
			assert_string_not_equal(errors[i].sentence, errors[j].sentence);
		}
	}
}

TEST(error_numbers_never_change)
{
	assert_int_equal(SPOKE_EINVAL, -1);
	assert_int_equal(SPOKE_ESYNTAX, -18);
	assert_int_equal(SPOKE_ERESOLVE, -100);
	assert_int_equal(SPOKE_ETIMEOUT, -105);
	assert_int_equal(SPOKE_EREMOTE, -200);
	assert_int_equal(SPOKE_ESERVER, -206);
	assert_int_equal(SPOKE_EFORBIDDEN, -207);
}

TEST(zero_means_success)
{
	assert_string_equal(spoke_errname(SPOKE_OK), "OK");
	assert_string_equal(spoke_strerror(SPOKE_OK), "success");
	assert_false(spoke_error_is_local(SPOKE_OK));
	assert_false(spoke_error_is_transport(SPOKE_OK));
	assert_false(spoke_error_is_remote(SPOKE_OK));
}

TEST(unassigned_numbers_are_unknown_errors)
{
	static const int numbers[] = { 1,    22,   -98,  -99,     -150,   -199,
				       -298, -299, -300, INT_MAX, INT_MIN };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_string_equal(spoke_errname(numbers[i]), "UNKNOWN");
		assert_string_equal(spoke_strerror(numbers[i]), "unknown error");
		assert_false(spoke_error_is_local(numbers[i]));
		assert_false(spoke_error_is_transport(numbers[i]));
		assert_false(spoke_error_is_remote(numbers[i]));
	}
}

TEST(each_error_is_in_exactly_one_range)
{
	for (size_t i = 0; i < ERROR_COUNT; i++) {
		int number = errors[i].number;

		assert_int_equal(spoke_error_is_local(number), number >= -99);
		assert_int_equal(spoke_error_is_transport(number),
				 number <= -100 && number >= -199);
		assert_int_equal(spoke_error_is_remote(number), number <= -200);
	}
}

TEST(row_of_an_error_decides_what_follows)
{
	static const struct {
		int error, dubbo, http, fate, blame;
	} cases[] = {
		{ SPOKE_OK, 20, 200, SPOKEI_FATE_ANSWERED, SPOKEI_BLAME_ANSWER },
		{ SPOKE_ELIMIT, 80, 500, SPOKEI_FATE_WRITTEN, SPOKEI_BLAME_NONE },
		{ SPOKE_ELEASE, 80, 500, SPOKEI_FATE_ANSWERED, SPOKEI_BLAME_NONE },
		{ SPOKE_ELOST, 80, 500, SPOKEI_FATE_WRITTEN, SPOKEI_BLAME_LOSS },
		{ SPOKE_ETIMEOUT, 80, 504, SPOKEI_FATE_WRITTEN, SPOKEI_BLAME_FAILURE },
		{ SPOKE_EREMOTE, 20, 500, SPOKEI_FATE_ANSWERED, SPOKEI_BLAME_ANSWER },
		{ SPOKE_EREFUSED, 100, 503, SPOKEI_FATE_SAFE, SPOKEI_BLAME_REFUSAL },
		{ -99, 80, 500, SPOKEI_FATE_WRITTEN, SPOKEI_BLAME_FAILURE }, /* unknown */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct spokei_error *row = spokei_error_of(cases[i].error);

		assert_int_equal(row->dubbo_status, cases[i].dubbo);
		assert_int_equal(row->http_status, cases[i].http);
		assert_int_equal(row->fate, cases[i].fate);
		assert_int_equal(row->blame, cases[i].blame);
	}
}

/* --- the log: levels, rate limits per class, the hook, truncation and escaping */

#define START (3 * SECOND)
/* A log hook that keeps the last line. */
struct book {
	struct spoke_env env;
	struct spokei_log log;
	unsigned lines;
	struct spoke_log_line last;
	char text[SPOKEI_LOG_TEXT_MAX];
	bool answers; /* logs from within the hook */
};

static void book_write(void *ctx, const struct spoke_log_line *line)
{
	struct book *book = ctx;

	book->lines++;
	book->last = *line;
	assert_true(strlen(line->text) < sizeof(book->text));
	memcpy(book->text, line->text, strlen(line->text) + 1);
	if (book->answers)
		spokei_log(&book->log, SPOKE_LOG_ERROR, "book", SPOKEI_LOG_PEER, START, "again");
}

static void book_open(struct book *book)
{
	*book = (struct book){ .env = { .ctx = book, .log = book_write } };
	spokei_log_init(&book->log, &book->env, START);
}

/* Logs `count` lines of one class at the same time. Returns how many reached the hook. */
static unsigned write_lines(struct book *book, enum spokei_log_class log_class, unsigned count,
			    uint64_t now_ns)
{
	unsigned before = book->lines;

	for (unsigned i = 0; i < count; i++)
		spokei_log(&book->log, SPOKE_LOG_WARN, "test", log_class, now_ns, "line %u", i);
	return book->lines - before;
}

TEST(control_bytes_forge_no_line)
{
	struct book book;

	book_open(&book);
	spokei_log(&book.log, SPOKE_LOG_WARN, "conn", SPOKEI_LOG_PEER, START, "user %s",
		   "\n\r\t\x1b[2J\x7f\xc3\xa4");
	assert_string_equal(book.text, "user ????[2J?\xc3\xa4");
}

TEST(log_line_has_level_module_and_text)
{
	struct book book;

	book_open(&book);
	spokei_log(&book.log, SPOKE_LOG_WARN, "conn", SPOKEI_LOG_PEER, START, "%s sent %d", "x", 7);
	assert_int_equal(book.lines, 1);
	assert_int_equal(book.last.level, SPOKE_LOG_WARN);
	assert_string_equal(book.last.module, "conn");
	assert_string_equal(book.text, "x sent 7");
	assert_true(book.last.suppressed == 0);
}

TEST(log_without_hook_does_nothing)
{
	struct book book;

	book_open(&book);
	book.env.log = NULL;
	assert_int_equal(write_lines(&book, SPOKEI_LOG_PEER, 100, START), 0);
	book.env.log = book_write;
	assert_int_equal(write_lines(&book, SPOKEI_LOG_PEER, 1, START), 1);
	assert_true(book.last.suppressed == 0);
}

TEST(lines_above_level_cost_no_token)
{
	struct book book;

	book_open(&book);
	for (int i = 0; i < 100; i++)
		spokei_log(&book.log, SPOKE_LOG_DEBUG, "test", SPOKEI_LOG_CALL, START, "fine");
	assert_int_equal(book.lines, 0);
	assert_int_equal(write_lines(&book, SPOKEI_LOG_CALL, 1, START), 1);
	assert_true(book.last.suppressed == 0);
	book.log.level_max = SPOKE_LOG_DEBUG;
	spokei_log(&book.log, SPOKE_LOG_DEBUG, "test", SPOKEI_LOG_CALL, START, "fine");
	assert_string_equal(book.text, "fine");
}

TEST(chosen_level_applies_to_the_hook)
{
	struct book book;

	book_open(&book);
	assert_int_equal(spokei_log_choose(&book.log, NULL), 0);
	assert_int_equal(write_lines(&book, SPOKEI_LOG_PEER, 1, START), 1);
	assert_int_equal(spokei_log_choose(&book.log, "error"), 0);
	assert_int_equal(write_lines(&book, SPOKEI_LOG_PEER, 1, START), 0);
	assert_int_equal(spokei_log_choose(&book.log, "warn"), 0);
	assert_int_equal(write_lines(&book, SPOKEI_LOG_PEER, 1, START), 1);
	assert_int_equal(spokei_log_choose(&book.log, "off"), 0);
	assert_int_equal(write_lines(&book, SPOKEI_LOG_PEER, 1, START), 0);
	assert_int_equal(spokei_log_choose(&book.log, "WARN"), SPOKE_EINVAL);
	assert_string_equal(spokei_log_level_name(SPOKE_LOG_DEBUG), "debug");
}

TEST(each_class_writes_ten_lines_per_second)
{
	struct book book;

	book_open(&book);
	for (int i = 0; i < SPOKEI_LOG_CLASSES; i++)
		assert_int_equal(write_lines(&book, (enum spokei_log_class)i, 1000, START), 10);
	for (uint64_t at = 1; at <= 100; at++)
		(void)write_lines(&book, SPOKEI_LOG_PEER, 3, START + at * SECOND / 20);
	assert_int_equal(book.lines, SPOKEI_LOG_CLASSES * 10 + 50);
}

TEST(next_line_reports_suppressed_count_once)
{
	struct book book;

	book_open(&book);
	assert_int_equal(write_lines(&book, SPOKEI_LOG_PEER, 52, START), 10);
	assert_true(book.last.suppressed == 0);
	assert_int_equal(write_lines(&book, SPOKEI_LOG_LIFE, 1, START), 1);
	assert_true(book.last.suppressed == 0);
	assert_int_equal(write_lines(&book, SPOKEI_LOG_PEER, 1, START + SECOND), 1);
	assert_true(book.last.suppressed == 42);
	assert_int_equal(write_lines(&book, SPOKEI_LOG_PEER, 1, START + SECOND), 1);
	assert_true(book.last.suppressed == 0);
}

TEST(log_hook_does_not_recurse)
{
	struct book book;

	book_open(&book);
	book.answers = true;
	assert_int_equal(write_lines(&book, SPOKEI_LOG_PEER, 1, START), 1);
	assert_int_equal(write_lines(&book, SPOKEI_LOG_PEER, 1, START), 1);
	assert_true(book.last.suppressed == 1);
}

TEST(too_long_line_is_cut_with_dots)
{
	struct book book;

	book_open(&book);
	spokei_log(&book.log, SPOKE_LOG_WARN, "m", SPOKEI_LOG_PEER, START, "%0511d", 1);
	assert_int_equal(strlen(book.text), 511);
	assert_string_equal(book.text + 508, "001");
	spokei_log(&book.log, SPOKE_LOG_WARN, "m", SPOKEI_LOG_PEER, START, "%0512d", 1);
	assert_int_equal(strlen(book.text), 511);
	assert_string_equal(book.text + 507, "0...");
}

TEST(escape_writes_printable_ascii)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} cases[] = {
		{ "", 0, "" },
		{ "plain text ~", 12, "plain text ~" },
		{ "a\nb\r\t", 5, "a\\x0ab\\x0d\\x09" },
		{ "\0\x1f\x7f\x80\xff", 5, "\\x00\\x1f\\x7f\\x80\\xff" },
		{ "\x1b[31m", 5, "\\x1b[31m" },
		{ "say \"\\x00\"", 10, "say \\\"\\\\x00\\\"" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[64];
		size_t len = spokei_log_escape(out, sizeof(out), cases[i].bytes, cases[i].len);

		assert_string_equal(out, cases[i].text);
		assert_int_equal(len, strlen(cases[i].text));
	}
}

TEST(escape_stays_within_any_size)
{
	static const char bytes[] = "ab\ncd\"ef";
	static const char whole[] = "ab\\x0acd\\\"ef";
	static const char *const texts[] = {
		/* The longest prefix that leaves room for the dots. */
		NULL,    "",      "a",     "ab",         "...",         "a...",         "ab...",
		"ab...", "ab...", "ab...", "ab\\x0a...", "ab\\x0ac...", "ab\\x0acd...",
	};

	for (size_t size = 0; size <= sizeof(whole) + 2; size++) {
		char out[sizeof(whole) + 3];
		size_t len;

		memset(out, '#', sizeof(out));
		len = spokei_log_escape(out, size, bytes, sizeof(bytes) - 1);
		for (size_t i = size; i < sizeof(out); i++)
			assert_int_equal(out[i], '#');
		if (size == 0)
			continue;
		assert_int_equal(out[len], '\0');
		assert_string_equal(out, size < sizeof(whole) ? texts[size] : whole);
		assert_int_equal(len, strlen(out));
	}
}

TEST(escape_end_keeps_the_end_at_any_size)
{
	static const char bytes[] = "ab\ncd\"ef";
	static const char whole[] = "ab\\x0acd\\\"ef";
	static const char *const texts[] = {
		NULL,          "",      "a",         "ab",         "...",         "...f",
		"...ef",       "...ef", "...\\\"ef", "...d\\\"ef", "...cd\\\"ef", "...cd\\\"ef",
		"...cd\\\"ef",
	};

	for (size_t size = 0; size <= sizeof(whole) + 2; size++) {
		char out[sizeof(whole) + 3];
		size_t len;

		memset(out, '#', sizeof(out));
		len = spokei_log_escape_end(out, size, bytes, sizeof(bytes) - 1);
		for (size_t i = size; i < sizeof(out); i++)
			assert_int_equal(out[i], '#');
		if (size == 0)
			continue;
		assert_string_equal(out, size < sizeof(whole) ? texts[size] : whole);
		assert_int_equal(len, strlen(out));
	}
}

/* --- socket addresses as text: valid forms, invalid forms, and printing */

enum {
	TEXT_SIZE = 200,
	PATH_LEN_MAX = 107, /* sun_path without its NUL */
};

TEST(each_address_kind_is_parsed_and_printed)
{
	static const struct {
		const char *text;
		const char *printed; /* NULL: same as the input */
	} cases[] = {
		{ "127.0.0.1:20880", NULL },
		{ "0.0.0.0:0", NULL },
		{ "255.255.255.255:65535", NULL },
		{ "[::1]:20880", NULL },
		{ "[::]:0", NULL },
		{ "[fe80::1%7]:1", NULL },
		{ "[fe80::1%lo]:1", "[fe80::1%1]:1" },
		{ "[2001:DB8:0:0:0:0:0:1]:65535", "[2001:db8::1]:65535" },
		{ "[::ffff:1.2.3.4]:9", NULL },
		{ "unix:/run/x", NULL },
		{ "unix:relative", NULL },
		{ "unix:@name", NULL },
		{ "unix:/with:colon and space", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spoke_address address;
		char text[TEXT_SIZE];

		assert_int_equal(spokei_address_parse(cases[i].text, &address), 0);
		assert_in_range(address.len, 1, sizeof(address.bytes));
		spokei_address_print(&address, text, sizeof(text));
		assert_string_equal(text, cases[i].printed ? cases[i].printed : cases[i].text);
	}
}

TEST(invalid_address_is_rejected_without_output)
{
	static const char *const none[] = {
		"",
		":",
		":1",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:x",
		"127.0.0.1:1x",
		"127.0.0.1:-1",
		"127.0.0.1:+1",
		"127.0.0.1: 1",
		"127.0.0.1:65536",
		"127.0.0.1:00",
		"127.0.0.1:080",
		"127.0.0.1:4294967297",
		"127.0.0.1:18446744073709551617",
		"127.1:1",
		"0x7f.0.0.1:1",
		"127.0.0.256:1",
		" 127.0.0.1:1",
		"1.2.3.4:5:6",
		"localhost:1",
		"::1:1",
		"[::1]",
		"[::1]:",
		"[::1:1",
		"[]:1",
		"[:::]:1",
		"[::1]1",
		"[127.0.0.1]:1",
		"[::1%]:1",
		"[::1%no such interface]:1",
		"[::1%4294967296]:1",
		"unix:",
		"unix:@",
		"unix",
		"UNIX:/x",
		"[1111111111111111111111111111111111111111111111111111111111111111111111111]:1",
	};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct spoke_address address = { .len = 77 };

		if (spokei_address_parse(none[i], &address) != -EINVAL)
			fail_msg("\"%s\" is taken for an address", none[i]);
		assert_int_equal(address.len, 77);
	}
}

TEST(unix_path_may_have_system_maximum)
{
	struct spoke_address address;
	char text[TEXT_SIZE] = "unix:";
	char back[TEXT_SIZE];

	for (int kind = 0; kind < 2; kind++) {
		memset(text + 5, 'x', PATH_LEN_MAX);
		text[5] = kind ? '@' : '/';
		text[5 + PATH_LEN_MAX] = '\0';
		assert_int_equal(spokei_address_parse(text, &address), 0);
		spokei_address_print(&address, back, sizeof(back));
		assert_string_equal(text, back);
		text[5 + PATH_LEN_MAX] = 'x';
		text[6 + PATH_LEN_MAX] = '\0';
		assert_int_equal(spokei_address_parse(text, &address), -ENAMETOOLONG);
	}
}

TEST(address_print_stays_within_size)
{
	struct spoke_address address = { 0 };
	char text[TEXT_SIZE];

	for (unsigned family = 0; family < 256; family++) {
		memset(address.bytes, 0xff, sizeof(address.bytes));
		address.bytes[0] = (unsigned char)family;
		address.bytes[1] = 0;
		for (address.len = 0; address.len <= sizeof(address.bytes); address.len++) {
			for (size_t size = 1; size < 20; size += 6) {
				memset(text, '#', sizeof(text));
				spokei_address_print(&address, text, size);
				assert_true(strlen(text) < size);
				assert_int_equal(text[size], '#');
			}
		}
	}
	address.len = 2;
	memset(address.bytes, 0, sizeof(address.bytes));
	spokei_address_print(&address, text, sizeof(text));
	assert_string_equal(text, "?");
}

TEST(long_unix_path_keeps_its_end)
{
	struct spoke_address address;
	char text[24];

	assert_int_equal(spokei_address_parse("unix:/run/shop/orders/a.sock", &address), 0);
	spokei_address_print(&address, text, 24);
	assert_string_equal(text, "unix:...p/orders/a.sock");
	spokei_address_print(&address, text, 10);
	assert_string_equal(text, "unix:...k");
	spokei_address_print(&address, text, 7);
	assert_string_equal(text, "unix:/");
}

TEST(only_unix_socket_is_renamed_when_memory_is_shared)
{
	static const char *const cases[][2] = {
		{ "unix:/run/x", "shm:/run/x" },
		{ "unix:@x", "shm:@x" },
		{ "unix:...p/a", "shm:...p/a" },
		{ "unix:", "shm:" },
		{ "shm:/run/x", "shm:/run/x" },
		{ "127.0.0.1:80", "127.0.0.1:80" },
		{ "unix", "unix" },
		{ "", "" },
	};
	char text[TEXT_SIZE];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(text, sizeof(text), "%s", cases[i][0]);
		spokei_address_share(text);
		assert_string_equal(text, cases[i][1]);
	}
}
