/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that wait for a reply, by their ids. */
#include "core/virtual/faults.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "tests/transport/dice.h"
#include "transport/conn/pending.h"

#include <stdlib.h>

enum {
	CALLS = 300,
	LATEST = 1024, /* ids that the model remembers */
};

struct space {
	uint64_t first;
	uint64_t last;
	uint64_t next;
};

static const struct space spaces[] = {
	{ 1, 255, 1 },        { 1, 255, 250 },
	{ 1, UINT32_MAX, 1 }, { 1, UINT32_MAX, UINT32_MAX - 200 },
	{ 0, UINT64_MAX, 0 }, { 0, UINT64_MAX, UINT64_MAX - 200 },
	{ 5, 16, 9 },
};

static const size_t spaces_len = sizeof(spaces) / sizeof(spaces[0]);

/* The model: the last LATEST ids in order, including skipped ones. */
struct model {
	struct memory memory;
	struct spokei_faults faulty;
	const struct space *space;
	struct spokei_pendings pendings;
	struct spokei_pending calls[CALLS];
	bool waits[CALLS];
	size_t count;
	uint64_t latest[LATEST]; /* the n-th id, assigned or skipped, at n % LATEST */
	uint64_t given;
	uint64_t next;
	uint64_t skipped;
	uint64_t dice;
};

static struct model model;

static void start(const struct space *space, uint64_t seed)
{
	memset(&model, 0, sizeof(model));
	memory_init(&model.memory);
	spokei_faults_init(&model.faulty, &model.memory.env);
	model.space = space;
	model.next = space->next;
	model.dice = seed;
	spokei_pendings_init(&model.pendings, space->first, space->last, space->next);
}

static void stop(void)
{
	for (size_t i = 0; i < CALLS; i++)
		spokei_pendings_remove(&model.pendings, &model.calls[i]);
	assert_null(spokei_pendings_any(&model.pendings));
	spokei_pendings_fini(&model.pendings, &model.faulty.env);
	assert_int_equal(model.faulty.bytes, 0);
	assert_int_equal(model.memory.bytes, 0);
}

static bool id_waits(uint64_t id)
{
	for (size_t i = 0; i < CALLS; i++)
		if (model.waits[i] && model.calls[i].id == id)
			return true;
	return false;
}

static void note_id(void)
{
	model.latest[model.given++ % LATEST] = model.next;
	model.next = model.next == model.space->last ? model.space->first : model.next + 1;
}

/* Returns whether the id is among the assigned ids that the model remembers. */
static bool was_given(uint64_t id)
{
	uint64_t known = model.given < LATEST ? model.given : LATEST;

	for (uint64_t i = 1; i <= known; i++)
		if (model.latest[(model.given - i) % LATEST] == id)
			return true;
	return false;
}

/* Records the ids up to the new call's id; the ids before it were skipped. */
static void note_added(size_t call)
{
	struct spokei_pending *pending = &model.calls[call];

	assert_in_range(pending->id, model.space->first, model.space->last);
	assert_false(id_waits(pending->id));
	for (; model.next != pending->id; model.skipped++)
		note_id();
	note_id();
	model.waits[call] = true;
	model.count++;
}

static void add(size_t call)
{
	uint64_t size = model.space->last - model.space->first;
	int error = spokei_pendings_add(&model.pendings, &model.faulty.env, &model.calls[call]);

	if (model.count > size) {
		assert_int_equal(error, SPOKE_ELIMIT);
		return;
	}
	assert_int_equal(error, SPOKE_OK);
	note_added(call);
	assert_int_equal(model.pendings.count, model.count);
	assert_true(model.count <= model.pendings.room / 2);
	assert_int_equal(model.pendings.given, model.given);
}

static void take_away(size_t call)
{
	spokei_pendings_remove(&model.pendings, &model.calls[call]);
	model.count -= model.waits[call];
	model.waits[call] = false;
	assert_int_equal(model.pendings.count, model.count);
}

static void look_for(uint64_t id)
{
	bool given = !was_given(id);
	struct spokei_pending *found = spokei_pendings_find(&model.pendings, id, &given);

	assert_int_equal(found != NULL, id_waits(id));
	if (found) {
		assert_int_equal(found->id, id);
		assert_true(model.waits[found - model.calls]);
	}
	/* Ids older than the memory of the model are not asked for. */
	assert_int_equal(given, found || was_given(id));
}

/* Returns an id near the next one or at an end of the range, or an invalid id. */
static uint64_t some_id(void)
{
	switch (dice_throw(&model.dice) % 8) {
	case 0:
		return model.space->first - dice_throw(&model.dice) % 2;
	case 1:
		return model.space->last + dice_throw(&model.dice) % 2;
	case 2:
		return model.next;
	case 3:
		return model.calls[dice_throw(&model.dice) % CALLS].id;
	default:
		return model.next + 8 - dice_throw(&model.dice) % 40;
	}
}

/* Returns whether the model can tell. An end of the range may be older than its memory. */
static bool is_judged(uint64_t id)
{
	return model.given < LATEST || model.space->last - model.space->first < LATEST ||
	       id_waits(id) || was_given(id) || id - model.next < LATEST;
}

static void run_dice(unsigned calls, unsigned steps)
{
	while (steps-- > 0) {
		size_t call = dice_below(&model.dice, calls);
		uint64_t id = some_id();

		if (!model.waits[call])
			add(call);
		else if (dice_throw(&model.dice) % 3)
			take_away(call);
		if (is_judged(id))
			look_for(id);
	}
}

TEST(every_call_is_found_by_its_id)
{
	static const unsigned calls[] = { 1, 2, 5, 20, 100, CALLS };

	for (size_t s = 0; s < spaces_len; s++) {
		for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
			start(&spaces[s], 1000 * s + c);
			run_dice(calls[c], 2000);
			stop();
		}
	}
}

TEST(ids_count_up_and_begin_again_at_the_first)
{
	for (size_t s = 0; s < spaces_len; s++) {
		start(&spaces[s], 1);
		for (unsigned i = 0; i < 600; i++) {
			uint64_t next = model.next;

			add(0);
			assert_int_equal(model.calls[0].id, next);
			take_away(0);
		}
		assert_int_equal(model.skipped, 0);
		assert_int_equal(model.pendings.room, 8);
		stop();
	}
}

TEST(an_id_is_known_to_have_been_given)
{
	bool given;

	for (size_t s = 0; s < spaces_len; s++) {
		const struct space *space = &spaces[s];

		start(space, 1);
		assert_null(spokei_pendings_find(&model.pendings, space->next, &given));
		assert_false(given);
		add(0);
		take_away(0);
		assert_null(spokei_pendings_find(&model.pendings, space->next, &given));
		assert_true(given);
		(void)spokei_pendings_find(&model.pendings, space->next - 1, &given);
		assert_false(given);
		(void)spokei_pendings_find(&model.pendings, space->next + 1, &given);
		assert_false(given);
		stop();
	}
	/* After one round each id has been assigned; an id outside the range never is. */
	start(&spaces[0], 1);
	for (unsigned i = 0; i < 255; i++) {
		assert_false(spokei_pendings_gave(&model.pendings, 255));
		add(0);
		take_away(0);
	}
	for (unsigned i = 0; i < 400; i++) {
		for (uint64_t id = 0; id < 258; id++)
			assert_int_equal(spokei_pendings_gave(&model.pendings, id),
					 id >= 1 && id <= 255);
		add(0);
		take_away(0);
	}
	stop();
}

TEST(when_all_ids_wait_that_is_the_limit)
{
	start(&spaces[0], 1);
	for (size_t i = 0; i < 255; i++)
		add(i);
	assert_int_equal(model.skipped, 0);
	for (size_t i = 255; i < CALLS; i++) {
		add(i);
		assert_false(model.waits[i]);
	}
	assert_int_equal(model.pendings.given, 255);
	/* A removed call makes room, whatever its id. */
	for (size_t i = 0; i < 1000; i++) {
		size_t call = dice_below(&model.dice, 255);
		uint64_t id = model.calls[call].id;

		take_away(call);
		add(call);
		assert_int_equal(model.calls[call].id, id);
		add(255);
	}
	stop();
}

/* Keeps calls 0 to 9 while other calls come and go, for millions of ids and many rounds. */
TEST(old_calls_stay_while_millions_come_and_go)
{
	for (size_t s = 0; s < spaces_len - 1; s++) {
		struct spokei_pending guests[30] = { 0 };
		bool given;

		start(&spaces[s], 1);
		for (size_t i = 0; i < 10; i++)
			add(i);
		for (size_t i = 0; i < 1000000; i++) {
			struct spokei_pending *guest = &guests[(i * 7) % 30];

			spokei_pendings_remove(&model.pendings, guest);
			assert_int_equal(spokei_pendings_add(&model.pendings, &model.faulty.env,
							     guest),
					 SPOKE_OK);
			if (spokei_pendings_find(&model.pendings, guest->id, &given) != guest)
				fail();
		}
		for (size_t i = 0; i < 10; i++) {
			assert_ptr_equal(spokei_pendings_find(&model.pendings, model.calls[i].id,
							      &given),
					 &model.calls[i]);
			assert_true(given);
		}
		assert_int_equal(model.pendings.count, 40);
		assert_int_equal(model.pendings.room, 128);
		/* Each round skips at most ten of 128 cells. */
		assert_true(model.pendings.given < 1100000);
		for (size_t i = 0; i < 30; i++)
			spokei_pendings_remove(&model.pendings, &guests[i]);
		stop();
	}
}

/* Old calls are one or two ring lengths apart when the ring grows. */
TEST(calls_that_are_rings_apart_keep_their_cells_when_it_grows)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		bool given;

		start(&spaces[3], seed);
		for (size_t i = 0; i < CALLS - 1; i++) {
			uint64_t passing = dice_throw(&model.dice) % 40;

			add(i);
			while (passing-- > 0) {
				add(CALLS - 1);
				take_away(CALLS - 1);
			}
		}
		for (size_t i = 0; i < CALLS - 1; i++)
			assert_ptr_equal(spokei_pendings_find(&model.pendings, model.calls[i].id,
							      &given),
					 &model.calls[i]);
		stop();
	}
}

TEST(a_call_that_is_not_there_is_not_removed)
{
	struct spokei_pending stranger = { 0 };
	struct spokei_pending twin;
	bool given;

	start(&spaces[4], 1);
	spokei_pendings_remove(&model.pendings, &stranger);
	add(0);
	twin = model.calls[0];
	spokei_pendings_remove(&model.pendings, &stranger); /* its id is 0 too */
	spokei_pendings_remove(&model.pendings, &twin);
	assert_ptr_equal(spokei_pendings_find(&model.pendings, 0, &given), &model.calls[0]);
	take_away(0);
	take_away(0);
	/* Another id that maps to the same cell is not found. */
	add(1);
	assert_null(spokei_pendings_find(&model.pendings, model.calls[1].id + 8, &given));
	assert_false(given);
	stop();
}

/* Removes all pending calls one by one. Returns whether they came in the order of their ids. */
static bool take_all(void)
{
	struct spokei_pending *pending;
	uint64_t before = model.space->first;
	size_t count = model.count;
	bool in_order = true;

	while ((pending = spokei_pendings_any(&model.pendings))) {
		assert_ptr_equal(spokei_pendings_any(&model.pendings), pending);
		assert_true(model.waits[pending - model.calls]);
		in_order = in_order && pending->id >= before;
		before = pending->id;
		take_away((size_t)(pending - model.calls));
		assert_true(count-- > 0);
	}
	assert_int_equal(count, 0);
	return in_order;
}

TEST(all_that_wait_are_taken_one_after_another)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		start(&spaces[seed % spaces_len], seed);
		run_dice(1 + (unsigned)(seed * 3) % CALLS, 1000);
		(void)take_all();
		run_dice(CALLS, 100);
		(void)take_all();
		stop();
	}
	/* Begins with the oldest call, wherever it is in the ring. */
	for (unsigned gone = 0; gone < 100; gone++) {
		start(&spaces[2], 1);
		for (unsigned i = 0; i < gone; i++) {
			add(0);
			take_away(0);
		}
		for (size_t i = 0; i < 20; i++)
			add(i);
		/* The search continues where the last one ended. */
		assert_ptr_equal(spokei_pendings_any(&model.pendings), &model.calls[0]);
		model.pendings.looked++;
		assert_ptr_equal(spokei_pendings_any(&model.pendings), &model.calls[1]);
		model.pendings.looked--;
		assert_true(take_all());
		stop();
	}
}

TEST(enomem_is_returned_and_changes_nothing)
{
	for (uint64_t nth = 1;; nth++) {
		unsigned failed = 0;

		start(&spaces[1], 1);
		spokei_faults_fail(&model.faulty, SPOKEI_FAULTS_MEMORY, nth, -12, false);
		for (size_t i = 0; i < 200; i++) {
			struct spokei_pendings before = model.pendings;
			int error = spokei_pendings_add(&model.pendings, &model.faulty.env,
							&model.calls[i]);

			if (error == SPOKE_ENOMEM) {
				failed++;
				assert_memory_equal(&model.pendings, &before, sizeof(before));
				add(i);
			} else {
				assert_int_equal(error, SPOKE_OK);
				note_added(i);
			}
			look_for(model.calls[i / 2].id);
		}
		stop();
		if (failed == 0) {
			assert_int_equal(nth, 8); /* rings of 8 to 512 cells */
			break;
		}
		assert_int_equal(failed, 1);
	}
}

/* --- The table of pending calls while it grows in steps */

TEST(ring_that_grows_in_steps_keeps_every_call)
{
	enum {
		MANY = 20000
	};
	struct spokei_pending *calls = calloc(MANY, sizeof(*calls));
	struct spokei_pendings pendings;
	struct memory memory;
	bool grew = false;
	bool given;

	assert_non_null(calls);
	memory_init(&memory);
	spokei_pendings_init(&pendings, 1, UINT32_MAX, UINT32_MAX - 5000);
	for (size_t i = 0; i < MANY; i++) {
		size_t gone = i / 4;
		size_t kept = gone + 1 + (i * 7919) % (i - gone + 1);

		assert_int_equal(spokei_pendings_add(&pendings, &memory.env, &calls[i]), SPOKE_OK);
		grew |= pendings.grown != NULL;
		kept = kept < i ? kept : i;
		assert_ptr_equal(spokei_pendings_find(&pendings, calls[i].id, &given), &calls[i]);
		assert_ptr_equal(spokei_pendings_find(&pendings, calls[kept].id, &given),
				 &calls[kept]);
		if (i % 4 == 3) {
			spokei_pendings_remove(&pendings, &calls[gone]);
			assert_null(spokei_pendings_find(&pendings, calls[gone].id, &given));
			assert_true(given);
		}
		assert_int_equal(pendings.count, i + 1 - (i + 1) / 4);
	}
	assert_true(grew);
	for (size_t left = pendings.count; left > 0; left--)
		spokei_pendings_remove(&pendings, spokei_pendings_any(&pendings));
	assert_null(spokei_pendings_any(&pendings));
	spokei_pendings_fini(&pendings, &memory.env);
	assert_int_equal(memory.bytes, 0);
	free(calls);
}
