/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS streams while allocations and system calls fail: those of the library and of the environment,
 * each once, and each with all that follow. The stream works or fails; it never gives a byte that
 * was not sent, leaks, or goes on for ever. With SPOKE_TORTURE=all, no failing call is left out.
 */
#include "tests/support/test.h"
#include "tests/transport/stream/tlsrig.h"

#include <spoke/engine.h>

#include <openssl/crypto.h>
#include <openssl/err.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BYTES = 20000,
	ROOM = 65536,
	SLACK = 64, /* blocks that the library keeps for errors of the thread */
};

static struct tlsrig rig;
static unsigned char text[BYTES];
static unsigned char came[ROOM];
static bool all; /* nothing is left out */

/* --- the library's memory */

static struct {
	size_t blocks;
	uint64_t calls;   /* made by the stream */
	uint64_t fail_at; /* counted from 1; 0: none */
	bool for_ever;
	bool inside;
	uint64_t failed;
} library;

static bool fails(void)
{
	if (!library.inside)
		return false;
	library.calls++;
	if (library.fail_at == 0 || library.calls < library.fail_at ||
	    (library.calls > library.fail_at && !library.for_ever))
		return false;
	library.failed++;
	return true;
}

static void *library_alloc(size_t size, const char *file, int line)
{
	void *block = fails() ? NULL : malloc(size);

	(void)file;
	(void)line;
	library.blocks += block != NULL;
	return block;
}

static void library_free(void *block, const char *file, int line)
{
	(void)file;
	(void)line;
	library.blocks -= block != NULL;
	free(block);
}

static void *library_resize(void *block, size_t size, const char *file, int line)
{
	void *moved;

	if (block == NULL)
		return library_alloc(size, file, line);
	if (size == 0) {
		library_free(block, file, line);
		return NULL;
	}
	moved = fails() ? NULL : realloc(block, size);
	return moved;
}

static void note_inside(bool inside)
{
	library.inside = inside;
}

/* --- the play */

/* Shuts this side down. */
static void end_stream(void)
{
	if (rig.status != 0)
		return;
	note_inside(true);
	(void)rig.stream.kind->shut(&rig.stream);
	note_inside(false);
}

static void play(void)
{
	ssize_t wrote = 0;
	size_t took;
	size_t len;

	tlsrig_shake(&rig);
	(void)SSL_write_ex(rig.peer, text, BYTES, &took);
	tlsrig_pass(&rig);
	(void)SSL_key_update(rig.peer, SSL_KEY_UPDATE_REQUESTED);
	tlsrig_step(&rig);
	tlsrig_pass(&rig);
	if (rig.status == 0)
		wrote = tlsrig_write(&rig, text, BYTES);
	tlsrig_hear(&rig);
	len = tlsrig_peer_read(&rig, came, sizeof(came));
	end_stream();
	(void)SSL_shutdown(rig.peer);
	tlsrig_pass(&rig);
	assert_in_range(rig.got_len, 0, BYTES);
	assert_memory_equal(rig.got, text, rig.got_len);
	/* Bytes that the peer gets were taken: they are never sent again. */
	assert_in_range(len, 0, wrote > 0 ? (size_t)wrote : 0);
	assert_memory_equal(came, text, len);
}

static const struct tlsrig_setting settings[] = {
	{ .accepts = true, .verify = SPOKE_TLS_VERIFY_REQUIRED },
	{ .accepts = false },
	{ .accepts = true, .or_plain = true },
};

static void begin(unsigned which)
{
	tlsrig_begin(&rig, &settings[which]);
}

static void assert_whole(void)
{
	assert_int_equal(rig.status, 0);
	assert_int_equal(rig.got_len, BYTES);
	assert_int_equal(rig.ended, 0);
}

/* Plays with the nth allocation of the library failing. Returns whether it had so many. */
static bool play_without_memory(unsigned which, uint64_t nth, bool for_ever)
{
	uint64_t failed;

	begin(which);
	library.calls = library.failed = 0;
	library.fail_at = nth;
	library.for_ever = for_ever;
	play();
	library.fail_at = 0;
	failed = library.failed;
	if (failed == 0)
		assert_whole();
	tlsrig_end(&rig);
	return failed > 0;
}

static void library_without_memory(unsigned which)
{
	size_t before;

	(void)play_without_memory(which, UINT64_MAX, false);
	before = library.blocks;
	for (unsigned for_ever = 0; for_ever < 2; for_ever++) {
		const uint64_t stride = all ? 1 : for_ever ? 61 : 23;
		uint64_t nth = 1;

		while (play_without_memory(which, nth, for_ever))
			nth += stride;
		assert_true(nth > 100);
	}
	assert_in_range(library.blocks, 0, before + SLACK);
}

TEST(accepting_stream_survives_want_of_the_librarys_memory)
{
	library_without_memory(0);
}

TEST(connecting_stream_survives_want_of_the_librarys_memory)
{
	library_without_memory(1);
}

TEST(records_before_one_that_fails_are_taken)
{
	bool failed = true;
	bool taken = false;

	for (uint64_t nth = 1; failed; nth++) {
		ssize_t wrote;

		begin(1);
		tlsrig_open(&rig);
		library.calls = library.failed = 0;
		library.fail_at = nth;
		library.for_ever = true;
		wrote = tlsrig_write(&rig, text, BYTES);
		library.fail_at = 0;
		failed = library.failed > 0;
		tlsrig_hear(&rig);
		assert_int_equal(tlsrig_peer_read(&rig, came, sizeof(came)), wrote > 0 ? wrote : 0);
		if (failed)
			assert_int_equal(rig.stream.kind->flush(&rig.stream), -ENOMEM);
		taken = taken || (failed && wrote > 0);
		tlsrig_end(&rig);
	}
	assert_true(taken);
}

TEST(failing_calls_of_the_environment_end_the_stream_at_most)
{
	static const struct {
		enum spokei_faults_kind kind;
		int error;
		bool passes; /* the stream goes on afterwards */
	} faults[] = {
		{ SPOKEI_FAULTS_MEMORY, -ENOMEM, false },
		{ SPOKEI_FAULTS_READ, -ECONNRESET, false },
		{ SPOKEI_FAULTS_READ, -EAGAIN, true },
		{ SPOKEI_FAULTS_READ, -EINTR, true },
		{ SPOKEI_FAULTS_WRITE, -EPIPE, false },
		{ SPOKEI_FAULTS_WRITE, -EAGAIN, true },
		{ SPOKEI_FAULTS_WRITE, -EINTR, true },
		{ SPOKEI_FAULTS_SHUT, -ENOTCONN, false },
		{ SPOKEI_FAULTS_PEER, -ENOTCONN, true },
	};

	for (size_t i = 0; i < 6 * sizeof(faults) / sizeof(faults[0]); i++) {
		const unsigned which = (unsigned)(i % 6) / 2;
		const bool for_ever = i % 2;
		bool failed = true;

		if (for_ever && faults[i / 6].passes)
			continue;
		for (uint64_t nth = 1; failed; nth++) {
			begin(which);
			spokei_faults_fail(&rig.faulty, faults[i / 6].kind, nth,
					   faults[i / 6].error, for_ever);
			play();
			failed = rig.faulty.failed[faults[i / 6].kind] > 0;
			if (!failed || faults[i / 6].passes)
				assert_whole();
			tlsrig_end(&rig);
			assert_in_range(nth, 1, 500);
		}
	}
}

TEST(stream_keeps_the_librarys_buffers_while_it_is_busy)
{
	size_t before;

	begin(1);
	tlsrig_open(&rig);
	assert_int_equal(tlsrig_write(&rig, text, 100), 100); /* what stays for ever */
	spokei_world_run(&rig.world, rig.world.now_ns + 3000 * TLSRIG_MS);
	before = library.blocks;
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(tlsrig_write(&rig, text, 100), 100);
		assert_in_range(library.blocks, before + 1, before + SLACK);
		spokei_world_run(&rig.world, rig.world.now_ns + 900 * TLSRIG_MS);
	}
	assert_in_range(library.blocks, before + 1, before + SLACK);
	spokei_world_run(&rig.world, rig.world.now_ns + 2100 * TLSRIG_MS);
	assert_int_equal(library.blocks, before);
	assert_int_equal(tlsrig_write(&rig, text, 100), 100);
	assert_in_range(library.blocks, before + 1, before + SLACK);
	tlsrig_end(&rig);
}

TEST(owner_is_made_whole_or_not_at_all)
{
	static const struct spokei_tls_options options = {
		.accepts = true,
		.cert = "server",
		.key = "server.key",
		.ca = "authority",
		.crl = "revoked",
		.verify = SPOKE_TLS_VERIFY_REQUIRED,
	};
	const struct tlsrig_setting setting = { .accepts = true,
						.revoked = &tlsrig_certs()->client };
	char why[SPOKEI_TLS_WHY];
	size_t before = 0;
	int error = 1;

	tlsrig_begin(&rig, &setting);
	for (uint64_t nth = 1; error; nth += all || nth < 50 ? 1 : 7) {
		struct spokei_tls *tls = NULL;

		if (nth == 2)
			before = library.blocks;
		library.calls = library.failed = 0;
		library.fail_at = nth;
		library.for_ever = false;
		note_inside(true);
		error = spokei_tls_new(rig.engine, &options, why, &tls);
		note_inside(false);
		library.fail_at = 0;
		if (error == 0)
			spokei_tls_free(tls);
		else
			assert_in_range(strlen(why), 1, sizeof(why) - 1);
		ERR_clear_error();
		/* The library does without some. */
		error = library.failed > 0;
	}
	assert_in_range(library.blocks, 0, before + SLACK);
	error = 1;
	for (uint64_t nth = 1; error; nth++) {
		struct spokei_tls *tls = NULL;

		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		error = spokei_tls_new(rig.engine, &options, why, &tls);
		if (error == 0)
			spokei_tls_free(tls);
		else
			assert_int_equal(error, SPOKE_ENOMEM);
	}
	spokei_faults_heal(&rig.faulty);
	error = 1;
	for (uint64_t nth = 1; error; nth++) {
		struct spokei_tls *tls = NULL;

		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_FILE_READ, nth, -EACCES, false);
		error = spokei_tls_new(rig.engine, &options, why, &tls);
		if (error == 0)
			spokei_tls_free(tls);
		else
			assert_int_equal(error, SPOKE_ESYSTEM);
	}
	tlsrig_end(&rig);
}

/* Before any use of the library. */
static int prepare(void **state)
{
	const char *asked = getenv("SPOKE_TORTURE");

	(void)state;
	all = asked && strcmp(asked, "all") == 0;
	if (CRYPTO_set_mem_functions(library_alloc, library_resize, library_free) != 1)
		return -1;
	tlsrig_inside = note_inside;
	for (size_t i = 0; i < BYTES; i++)
		text[i] = (unsigned char)(i * 7 + i / 251);
	return 0;
}

GROUP(prepare, NULL);
