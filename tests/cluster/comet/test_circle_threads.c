/* SPDX-License-Identifier: Apache-2.0 */
/* Gateways that have joined, each engine on its own thread. */
#define _GNU_SOURCE

#include "tests/support/test.h"

#include <spoke/comet.h>
#include <spoke/engine.h>

#include <stdatomic.h>

enum {
	ENGINES = 3,
	PUSHES = 300, /* of each engine */
	A_TURN = 10,
};

struct side {
	struct spoke_engine *engine;
	struct spoke_comet *comet;
	struct side *first;
	struct spoke_post push;
	struct spoke_post look;
	unsigned pushed;
	unsigned stops;  /* after so many */
	unsigned wanted; /* pushes that shall arrive */
	atomic_bool joined;
	atomic_bool done; /* all of its pushes are made */
	atomic_bool complete;
};

static void look(struct spoke_post *post)
{
	struct side *side = spoke_container_of(post, struct side, look);

	if (spoke_comet_figure(side->comet, SPOKE_COMET_FIGURE_PUSHED) < side->wanted)
		spoke_engine_post(side->engine, post);
	else
		atomic_store(&side->complete, true);
}

static void push_some(struct spoke_post *post)
{
	static const struct spoke_comet_message message = { .keep = true };
	struct side *side = spoke_container_of(post, struct side, push);

	for (unsigned i = 0; i < A_TURN && side->pushed < side->stops; i++, side->pushed++) {
		const struct spoke_span user = spoke_comet_text(side->pushed % 2 ? "ann" : "bob");
		int error = side->pushed % 3 ? spoke_comet_push(side->comet, user, &message, NULL)
					     : spoke_comet_push_all(side->comet, &message, NULL);

		assert_int_equal(error, SPOKE_OK);
		if (side->pushed % 50 == 0)
			(void)spoke_comet_kick(side->comet, user, "enough");
	}
	if (side->pushed < side->stops)
		spoke_engine_post(side->engine, post);
	else
		atomic_store(&side->done, true);
}

/* Gateways join at one time, each on its own thread. */
static void join(struct spoke_post *post)
{
	struct side *side = spoke_container_of(post, struct side, push);

	if (side != side->first)
		assert_int_equal(spoke_comet_join(side->comet, side->first->comet), SPOKE_OK);
	side->push.run = push_some;
	atomic_store(&side->joined, true);
}

static void await(atomic_bool *flag)
{
	while (!atomic_load(flag))
		;
}

/* Each engine stops to push `earlier` pushes before the one that follows it, and the last after all
 * of its pushes. */
static void begin(struct side *sides, unsigned earlier)
{
	const struct spoke_comet_options options = { .query_user = true, .shared = true };

	for (unsigned i = 0; i < ENGINES; i++) {
		struct side *side = &sides[i];

		*side = (struct side){ .first = sides, .wanted = ENGINES * PUSHES };
		side->stops = PUSHES - (ENGINES - 1 - i) * earlier;
		side->push.run = join;
		side->look.run = look;
		assert_int_equal(spoke_engine_new(NULL, &side->engine), SPOKE_OK);
		assert_int_equal(spoke_comet_new(side->engine, &options, &side->comet), SPOKE_OK);
	}
	for (unsigned i = 0; i < ENGINES; i++) {
		assert_int_equal(spoke_engine_start(sides[i].engine), SPOKE_OK);
		spoke_engine_post(sides[i].engine, &sides[i].push);
	}
	for (unsigned i = 0; i < ENGINES; i++)
		await(&sides[i].joined);
	for (unsigned i = 0; i < ENGINES; i++)
		spoke_engine_post(sides[i].engine, &sides[i].push);
}

TEST(pushes_of_all_threads_reach_all_gateways)
{
	static struct side sides[ENGINES];

	begin(sides, 0);
	for (unsigned i = 0; i < ENGINES; i++)
		spoke_engine_post(sides[i].engine, &sides[i].look);
	for (unsigned i = 0; i < ENGINES; i++)
		await(&sides[i].complete);
	for (unsigned i = 0; i < ENGINES; i++) {
		assert_true(atomic_load(&sides[i].done));
		spoke_engine_free(sides[i].engine);
	}
}

/* The memory of pushes on their way is not lost, which the sanitizers check. */
TEST(engines_may_end_while_others_push)
{
	static struct side sides[ENGINES];

	for (unsigned round = 0; round < 10; round++) {
		begin(sides, 14 * round);
		for (unsigned i = 0; i < ENGINES; i++) {
			await(&sides[i].done);
			spoke_engine_free(sides[i].engine);
		}
	}
}
