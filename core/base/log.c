/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters log lines. A line is formatted only after the checks whether a hook is set and whether
 * its class has a token left.
 */
#include "core/base/log.h"

#include <stdarg.h>
#include <stdio.h>

static const char ellipsis[] = "...";

static const char *const level_names[] = {
	[SPOKE_LOG_ERROR] = "error",
	[SPOKE_LOG_WARN] = "warn",
	[SPOKE_LOG_INFO] = "info",
	[SPOKE_LOG_DEBUG] = "debug",
};

#define LEVELS (sizeof(level_names) / sizeof(level_names[0]))

typedef void (*hook_fn)(void *ctx, const struct spoke_log_line *line);

void spokei_log_init(struct spokei_log *log, const struct spoke_env *env, uint64_t now_ns)
{
	*log = (struct spokei_log){ .env = env };
	log->level_max = spokei_log_preset(log);
	for (int i = 0; i < SPOKEI_LOG_CLASSES; i++)
		log->buckets[i] = spokei_bucket_make(SPOKEI_LOG_RATE, SPOKEI_LOG_RATE, now_ns);
}

enum spoke_log_level spokei_log_preset(const struct spokei_log *log)
{
	return log->env->log ? SPOKE_LOG_INFO : SPOKE_LOG_WARN;
}

void spokei_log_reset(struct spokei_log *log)
{
	log->off = false;
	log->level_max = spokei_log_preset(log);
	(void)!spokei_log_choose(log, NULL);
}

const char *spokei_log_level_name(enum spoke_log_level level)
{
	return (size_t)level < LEVELS ? level_names[level] : "";
}

/* Sets the level; false: the text is no level. */
static bool set_level(struct spokei_log *log, const char *text)
{
	size_t level = 0;

	log->off = strcmp(text, "off") == 0;
	if (log->off)
		return true;
	while (level < LEVELS && strcmp(text, level_names[level]) != 0)
		level++;
	if (level == LEVELS)
		return false;
	log->level_max = (enum spoke_log_level)level;
	return true;
}

int spokei_log_choose(struct spokei_log *log, const char *level)
{
	const struct spoke_env *env = log->env;
	const char *variable;

	if (level)
		return set_level(log, level) ? SPOKE_OK : SPOKE_EINVAL;
	variable = env->log || env->variable == NULL ? NULL : env->variable(env->ctx, "SPOKE_LOG");
	/* A program does not fail because of its environment. */
	if (variable && *variable && !set_level(log, variable)) {
		(void)set_level(log, level_names[SPOKE_LOG_INFO]);
		spokei_log_wanted(log, "log",
				  "SPOKE_LOG: not a level; use error, warn, info, debug or off");
	}
	return SPOKE_OK;
}

/* Returns the function that takes the lines; NULL: none. */
static hook_fn hook_of(const struct spokei_log *log)
{
	if (log->off)
		return NULL;
	return log->env->log ? log->env->log : log->env->print;
}

/* Returns whether a line of this class may be written now; counts it as suppressed if not. */
static bool admit_line(struct spokei_log *log, enum spokei_log_class log_class, uint64_t now_ns)
{
	if (!log->busy && spokei_bucket_take(&log->buckets[log_class], 1, now_ns))
		return true;
	log->suppressed[log_class]++;
	return false;
}

/* Replaces bytes that could end a line or move a cursor. Rooms escape texts of peers; a text that
 * is forgotten still forges no line. */
static void hide_controls(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

/* Formats the text; a text that is too long ends in dots. */
SPOKEI_PRINTF(2, 0)
static void write_text(char text[SPOKEI_LOG_TEXT_MAX], const char *format, va_list args)
{
	int len = vsnprintf(text, SPOKEI_LOG_TEXT_MAX, format, args);

	if (len < 0)
		text[0] = '\0';
	else if ((size_t)len >= SPOKEI_LOG_TEXT_MAX)
		memcpy(text + SPOKEI_LOG_TEXT_MAX - sizeof(ellipsis), ellipsis, sizeof(ellipsis));
	hide_controls(text);
}

static void write_line(struct spokei_log *log, const struct spoke_log_line *line)
{
	log->busy = true;
	hook_of(log)(log->env->ctx, line);
	log->busy = false;
}

void spokei_log(struct spokei_log *log, enum spoke_log_level level, const char *module,
		enum spokei_log_class log_class, uint64_t now_ns, const char *format, ...)
{
	char text[SPOKEI_LOG_TEXT_MAX];
	struct spoke_log_line line = { .level = level, .module = module, .text = text };
	va_list args;

	SPOKE_ASSERT((unsigned)log_class < SPOKEI_LOG_CLASSES);
	if (level > log->level_max || hook_of(log) == NULL)
		return;
	if (!admit_line(log, log_class, now_ns))
		return;
	va_start(args, format);
	write_text(text, format, args);
	va_end(args);
	line.suppressed = log->suppressed[log_class];
	log->suppressed[log_class] = 0;
	write_line(log, &line);
}

void spokei_log_wanted(struct spokei_log *log, const char *module, const char *text)
{
	const struct spoke_log_line line = {
		.level = SPOKE_LOG_INFO,
		.module = module,
		.text = text,
	};

	if (line.level <= log->level_max && !log->busy && hook_of(log))
		write_line(log, &line);
}

/* Writes the escaped text of one byte; returns its length, 1 to 4. */
static size_t escape_byte(char text[4], unsigned char byte)
{
	static const char digits[] = "0123456789abcdef";

	text[0] = '\\';
	if (byte == '\\' || byte == '"') {
		text[1] = (char)byte;
		return 2;
	}
	if (byte >= 0x20 && byte < 0x7f) {
		text[0] = (char)byte;
		return 1;
	}
	text[1] = 'x';
	text[2] = digits[byte >> 4];
	text[3] = digits[byte & 0xf];
	return 4;
}

size_t spokei_log_escape(char *out, size_t size, const void *bytes, size_t len)
{
	const unsigned char *from = bytes;
	size_t used = 0;
	size_t cut = 0; /* length up to which the dots still fit */

	if (size == 0)
		return 0;
	for (size_t i = 0; i < len; i++) {
		char text[4];
		size_t text_len = escape_byte(text, from[i]);

		if (text_len >= size - used) {
			if (size < sizeof(ellipsis))
				break;
			memcpy(out + cut, ellipsis, sizeof(ellipsis));
			return cut + sizeof(ellipsis) - 1;
		}
		memcpy(out + used, text, text_len);
		used += text_len;
		if (size - used >= sizeof(ellipsis))
			cut = used;
	}
	out[used] = '\0';
	return used;
}

size_t spokei_log_escape_end(char *out, size_t size, const void *bytes, size_t len)
{
	const unsigned char *from = bytes;
	size_t dots = sizeof(ellipsis) - 1;
	size_t whole = 0; /* length of the text */
	size_t begin = len;
	size_t used = 0; /* length of the text from `begin` on */
	char text[4];

	for (size_t i = 0; i < len; i++)
		whole += escape_byte(text, from[i]);
	if (whole < size || size <= dots + 1)
		return spokei_log_escape(out, size, bytes, len);
	while (used + escape_byte(text, from[begin - 1]) < size - dots)
		used += escape_byte(text, from[--begin]);
	memcpy(out, ellipsis, dots);
	return dots + spokei_log_escape(out + dots, size - dots, from + begin, len - begin);
}
