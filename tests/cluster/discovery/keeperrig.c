/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of keeper tests: see keeperrig.h. */
#include "tests/cluster/discovery/keeperrig.h"
#include "core/memory/buffer.h"
#include "tests/support/scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct keeperrig keeperrig;

/* --- files */

static ssize_t read_file(void *ctx, const char *path, void *bytes, size_t size)
{
	(void)ctx;
	assert_string_equal(path, "cache");
	if (keeperrig.file == NULL)
		return -ENOENT;
	if (keeperrig.file_len > size)
		return -EFBIG;
	memcpy(bytes, keeperrig.file, keeperrig.file_len);
	return (ssize_t)keeperrig.file_len;
}

static int replace_file(void *ctx, const char *path, const void *bytes, size_t len, bool is_private)
{
	(void)ctx;
	assert_true(is_private);
	assert_string_equal(path, "cache");
	keeperrig.writes++;
	if (keeperrig.file_error)
		return keeperrig.file_error;
	free(keeperrig.file);
	keeperrig.file = malloc(len + 1);
	memcpy(keeperrig.file, bytes, len);
	keeperrig.file[len] = '\0';
	keeperrig.file_len = len;
	return 0;
}

static const struct spoke_files files = { .read = read_file, .replace = replace_file };

void keeperrig_write_file(const char *text)
{
	free(keeperrig.file);
	keeperrig.file_len = strlen(text);
	keeperrig.file = malloc(keeperrig.file_len + 1);
	memcpy(keeperrig.file, text, keeperrig.file_len + 1);
}

/* --- set-up */

int keeperrig_set_up(void **state)
{
	struct spoke_engine_options with = { .env = &keeperrig.faulty.env };

	(void)state;
	keeperrig = (struct keeperrig){ 0 };
	fakereg = (struct fakereg){ 0 };
	scene_open(&keeperrig.world, 1);
	spokei_world_process_init(&keeperrig.process, &keeperrig.world);
	keeperrig.env = keeperrig.process.env;
	keeperrig.env.files = &files;
	spokei_faults_init(&keeperrig.faulty, &keeperrig.env);
	return spoke_engine_new(&with, &keeperrig.engine);
}

void keeperrig_free(void)
{
	spokei_keeper_free(keeperrig.keeper);
	keeperrig.keeper = NULL;
}

void keeperrig_free_engine(void)
{
	spoke_engine_free(keeperrig.engine);
	keeperrig.engine = NULL;
	keeperrig.keeper = NULL;
}

RIG_STEP(keeperrig_tear_down)
{
	spokei_faults_heal(&keeperrig.faulty);
	if (keeperrig.engine) {
		spokei_keeper_free(keeperrig.keeper);
		keeperrig_free_engine();
	}
	assert_int_equal(keeperrig.faulty.blocks, 0);
	assert_int_equal(keeperrig.faulty.fds, 0);
	for (unsigned i = 0; i < FAKEREG_OPENS; i++)
		assert_null(fakereg.opens[i].engine);
	spokei_world_process_fini(&keeperrig.process);
	spokei_world_fini(&keeperrig.world);
	free(keeperrig.file);
}

static int note_list(void *arg, struct spokei_buffer *texts, size_t count)
{
	assert_ptr_equal(arg, &keeperrig);
	keeperrig.lists++;
	keeperrig.count = count;
	if (count > 0)
		(void)snprintf(keeperrig.first, sizeof(keeperrig.first), "%s",
			       (const char *)spokei_buffer_data(texts));
	if (keeperrig.list_error == 0)
		spokei_buffer_fini(texts); /* takes over the memory */
	if (keeperrig.in_list)
		keeperrig.in_list();
	return keeperrig.list_error;
}

int keeperrig_try(const struct spokei_keeper_options *options)
{
	static const struct spokei_keeper_up up = { .list = note_list };
	struct spokei_keeper_options with = { 0 };

	if (options)
		with = *options;
	if (with.registry == NULL)
		with.registry = "fake://here";
	with.kind = &fakereg_kind;
	return spokei_keeper_new(keeperrig.engine, &with, &up, &keeperrig, &keeperrig.keeper);
}

void keeperrig_keep(const struct spokei_keeper_options *options)
{
	assert_int_equal(keeperrig_try(options), 0);
}

void keeperrig_publish(const char *url)
{
	assert_int_equal(spokei_keeper_publish(keeperrig.keeper, ECHO, url), 0);
}

void keeperrig_subscribe(void)
{
	assert_int_equal(spokei_keeper_subscribe(keeperrig.keeper, ECHO, SPOKE_REGISTRY_PROVIDERS),
			 0);
}

void keeperrig_pass(uint64_t ns)
{
	spokei_world_run(&keeperrig.world, keeperrig.world.now_ns + ns);
}

size_t keeperrig_true(void)
{
	size_t wanted;
	size_t holds;

	spokei_keeper_count(keeperrig.keeper, &wanted, &holds);
	assert_true(holds <= wanted);
	return holds;
}

unsigned keeperrig_events(const char *words)
{
	return scene_events(keeperrig.engine, words);
}
