/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a recorded status, and damaged variants of it. */
#include "examples/spoke/json.h"
#include "examples/spoke/status_view.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FILE_MAX = 65536,
	DAMAGES = 1000
};

static size_t load(const char *path, char *text)
{
	FILE *file = fopen(path, "r");
	size_t len;

	assert_non_null(file);
	len = fread(text, 1, FILE_MAX - 1, file);
	(void)fclose(file);
	assert_true(len > 0);
	text[len] = '\0';
	return len;
}

static void draw(struct screen *screen, struct spoke_value status)
{
	screen_clear(screen);
	status_view_head(screen, status, "127.0.0.1:9090");
	status_view_body(screen, status);
}

/* Parses and draws a text, which is overwritten. Returns false if it is invalid. */
static bool draw_text(struct screen *screen, char *text, size_t len)
{
	struct spoke_json_error error;
	struct spoke_builder builder;
	struct spoke_value status;
	size_t count;
	bool good;

	spoke_builder_init(&builder, spoke_host_env(), NULL);
	good = spoke_json_read(text, len, &builder, &count, &error) == SPOKE_OK &&
	       spoke_builder_finish_value(&builder, &status) == SPOKE_OK;
	if (good)
		draw(screen, status);
	spoke_builder_fini(&builder);
	return good;
}

TEST(status_is_drawn_as_recorded)
{
	static char text[FILE_MAX];
	static char wanted[FILE_MAX];
	struct screen screen;
	size_t len = load(TESTS_STATUS, text);
	size_t wanted_len = load(TESTS_STATUS_TEXT, wanted);

	screen_begin(&screen, false);
	assert_true(draw_text(&screen, text, len));
	assert_int_equal(screen.len, wanted_len);
	assert_memory_equal(screen.text, wanted, wanted_len);
	screen_end(&screen);
}

static void assert_plain(const struct screen *screen)
{
	for (size_t i = 0; i < screen->len; i++)
		assert_true(screen->text[i] == '\n' ||
			    (screen->text[i] >= ' ' && screen->text[i] < 0x7f));
}

static uint64_t roll(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

TEST(damaged_status_is_drawn_as_printable_text)
{
	static const char pieces[] = "0123456789[]{}:,\"-.e\\u tfn\x1b\x9b\x7f";
	static char whole[FILE_MAX];
	static char text[FILE_MAX];
	size_t len = load(TESTS_STATUS, whole);
	struct screen screen;
	uint64_t seed = 3;
	int drawn = 0;

	screen_begin(&screen, false);
	for (int i = 0; i < DAMAGES; i++) {
		memcpy(text, whole, len + 1);
		for (uint64_t n = roll(&seed) % 4; n < 4; n++)
			text[roll(&seed) % len] = pieces[roll(&seed) % (sizeof(pieces) - 1)];
		if (!draw_text(&screen, text, len))
			continue;
		drawn++;
		assert_plain(&screen);
	}
	assert_true(drawn > DAMAGES / 20);
	screen_end(&screen);
}

TEST(missing_fields_are_shown_as_blanks)
{
	static const char *const texts[] = {
		"{}",
		"{\"wheel\":7,\"consumers\":{},\"providers\":[1,null,[]],\"events\":\"no\"}",
		("{\"wheel\":{\"classes\":[{}]},\"consumers\":[{\"endpoints\":[{},3]}],"
		 "\"providers\":[{\"peers\":[{}],\"services\":[1]}],\"events\":[{}, 1]}"),
	};
	struct screen screen;

	screen_begin(&screen, false);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *text = strdup(texts[i]);

		assert_non_null(text);
		assert_true(draw_text(&screen, text, strlen(text)));
		assert_plain(&screen);
		free(text);
	}
	screen_end(&screen);
}

/* Returns the end of an escape sequence of a terminal; no NUL ends the text. */
static const char *skip_escape(const char *at)
{
	assert_int_equal(at[0], '\033');
	assert_int_equal(at[1], '[');
	for (at += 2; (*at >= '0' && *at <= '9') || *at == ';';)
		at++;
	assert_non_null(strchr("HKJm", *at));
	return at + 1;
}

TEST(live_screen_never_exceeds_its_height)
{
	static char text[FILE_MAX];
	struct screen screen;
	size_t len = load(TESTS_STATUS, text);
	unsigned row = 0;
	unsigned column = 0;

	screen_begin(&screen, false);
	screen.live = true;
	assert_true(draw_text(&screen, text, len));
	for (const char *at = screen.text; at < screen.text + screen.len;) {
		if (*at == '\033') {
			at = skip_escape(at);
		} else if (*at == '\r') {
			assert_int_equal(at[1], '\n');
			at += 2;
			row++;
			column = 0;
		} else {
			assert_true(*at >= ' ' && *at < 0x7f);
			at++;
			column++;
		}
		assert_true(row < screen.height);
		assert_true(column <= screen.width);
	}
	assert_true(row + 2 >= screen.height || row > 20);
	screen.live = false;
	screen_end(&screen);
}
