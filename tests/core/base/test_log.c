/* SPDX-License-Identifier: Apache-2.0 */
/* The log: levels, rate limits per class, the hook, truncation and escaping. */
#include "core/base/log.h"
#include "tests/support/test.h"

#define SECOND UINT64_C(1000000000)
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
