/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No wake-up is lost: the code of both sides of a ring in every order in which two processors can
 * run it. A store waits in a buffer of its processor, where the other one does not see it, until it
 * leaves or a fence or an exchange empties the buffer. Each atomic operation is a step.
 */
#include "tests/support/test.h"

#include <stdatomic.h>
#include <string.h>

/* The operations of ring.h. */
static uint32_t model_load(const _Atomic(uint32_t) *word, memory_order order);
static void model_store(_Atomic(uint32_t) *word, uint32_t value, memory_order order);
static uint32_t model_exchange(_Atomic(uint32_t) *word, uint32_t value);
static void model_fence(void);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_thread_fence
#undef atomic_fetch_add
#define atomic_load_explicit(word, order) model_load(word, order)
#define atomic_store_explicit(word, value, order) model_store(word, value, order)
#define atomic_exchange_explicit(word, value, order) model_exchange(word, value)
#define atomic_thread_fence(order) model_fence()
#define atomic_fetch_add(word, value)                                                              \
	((void)*(word), model_fence(), 0) /* ThreadSanitizer's fence */

#include "transport/stream/shm/ring.h"

enum {
	SIZE = 64, /* of a ring */
	STEPS_MAX = 16,
	WAITING_MAX = 4,
	SLEEPER = 1, /* the sides: their indexes in the front */
	OTHER = 0,
};

struct waiting {
	_Atomic(uint32_t) *word;
	uint32_t value;
};

struct side {
	uint32_t log[STEPS_MAX]; /* results of its steps so far */
	unsigned steps;
	struct waiting waiting[WAITING_MAX]; /* stores, the oldest first */
	unsigned waiting_count;
	bool over;
	bool asleep;
	unsigned bells;
};

/* Both sides, and the words that they share. */
static struct model {
	struct spokei_ring_front front;
	struct side sides[2];
} model;

static struct side *running;
static unsigned at;    /* the step of the running side that comes next */
static bool may_go_on; /* one more step than the log has */
static jmp_buf stop;

static _Alignas(4096) unsigned char memory[SPOKEI_RING_AT + 2 * SIZE];

static struct spokei_ring_front *front(void)
{
	return (struct spokei_ring_front *)(void *)memory;
}

/* --- steps */

/* Lets the oldest store of the side reach the memory. */
static void let_out(struct side *side)
{
	*side->waiting[0].word = side->waiting[0].value;
	memmove(side->waiting, side->waiting + 1, sizeof(side->waiting) - sizeof(*side->waiting));
	side->waiting_count--;
}

static void let_out_all(struct side *side)
{
	while (side->waiting_count > 0)
		let_out(side);
}

/* Returns whether the step was done before. Otherwise it is the one to do now, if it is allowed. */
static bool is_done(void)
{
	assert_true(at < STEPS_MAX);
	if (at < running->steps)
		return true;
	if (!may_go_on)
		longjmp(stop, 1);
	may_go_on = false;
	return false;
}

static uint32_t done(uint32_t result)
{
	running->log[running->steps++] = result;
	return running->log[at++];
}

static bool is_counter(const _Atomic(uint32_t) *word)
{
	return word != &front()->asleep[0].bits && word != &front()->asleep[1].bits;
}

static uint32_t model_load(const _Atomic(uint32_t) *word, memory_order order)
{
	if (is_done())
		return running->log[at++];
	/* The bytes that a counter tells of are read, or written again, afterwards. */
	assert_true(!is_counter(word) || order == memory_order_acquire);
	for (unsigned i = running->waiting_count; i > 0; i--)
		if (running->waiting[i - 1].word == word)
			return done(running->waiting[i - 1].value);
	return done(*word);
}

static void model_store(_Atomic(uint32_t) *word, uint32_t value, memory_order order)
{
	if (is_done()) {
		at++;
		return;
	}
	assert_true(!is_counter(word) || order == memory_order_release);
	assert_true(running->waiting_count < WAITING_MAX);
	running->waiting[running->waiting_count++] = (struct waiting){ word, value };
	(void)done(0);
}

static uint32_t model_exchange(_Atomic(uint32_t) *word, uint32_t value)
{
	uint32_t before;

	if (is_done())
		return running->log[at++];
	let_out_all(running);
	before = *word;
	*word = value;
	return done(before);
}

static void model_fence(void)
{
	if (is_done()) {
		at++;
		return;
	}
	let_out_all(running);
	(void)done(0);
}

/* --- the two sides */

/* What one side waits for while the other one makes it happen. */
struct scene {
	const char *name;
	uint32_t bit;
	bool full; /* the ring that the sleeper writes is full before */
	void (*act)(struct spokei_ring_in *in, struct spokei_ring_out *out);
};

static void put_byte(struct spokei_ring_in *in, struct spokei_ring_out *out)
{
	unsigned char byte = 'a';
	struct iovec part = { &byte, 1 };

	(void)in;
	assert_int_equal(spokei_ring_write(out, &part, 1), 1);
}

static void end_ring(struct spokei_ring_in *in, struct spokei_ring_out *out)
{
	(void)in;
	spokei_ring_end(out);
}

static void take_all(struct spokei_ring_in *in, struct spokei_ring_out *out)
{
	unsigned char bytes[SIZE];

	(void)out;
	assert_int_equal(spokei_ring_read(in, bytes, sizeof(bytes)), SIZE);
}

static const struct scene *scene;

static bool has_come(const struct spokei_ring_in *in, const struct spokei_ring_out *out)
{
	if (scene->bit == SPOKEI_RING_ROOM)
		return spokei_ring_roomy((size_t)spokei_ring_unread(out), SIZE);
	return spokei_ring_len(in) > 0 || spokei_ring_ended(in);
}

static void run_sleeper(struct spokei_ring_in *in, struct spokei_ring_out *out)
{
	struct spokei_ring_sleep *own = &front()->asleep[SLEEPER];

	spokei_ring_sleep(own, scene->bit);
	if (has_come(in, out)) {
		spokei_ring_wake(own);
		return;
	}
	running->asleep = true;
}

static void run_other(struct spokei_ring_in *in, struct spokei_ring_out *out)
{
	scene->act(in, out);
	running->bells += spokei_ring_wakes(&front()->asleep[SLEEPER], scene->bit);
}

/* Runs a side anew as far as its log goes, and one step more. What it keeps for itself is made
 * afresh, and what it has stored is not stored again. */
static void step(unsigned index)
{
	struct spokei_ring_in in;
	struct spokei_ring_out out;

	running = &model.sides[index];
	at = 0;
	may_go_on = true;
	spokei_ring_attach(memory, SIZE, index == 1, &in, &out);
	if (scene->full && index == SLEEPER)
		out.put = SIZE;
	if (setjmp(stop) != 0)
		return;
	(index == SLEEPER ? run_sleeper : run_other)(&in, &out);
	running->over = true;
}

/* --- all orders */

static struct {
	unsigned woken;
	unsigned awake;
} ends;

static void check_end(void)
{
	const struct side *sleeper = &model.sides[SLEEPER];
	unsigned bells = model.sides[OTHER].bells;

	if (sleeper->asleep && bells == 0)
		fail_msg("%s: the side sleeps, and no bell comes", scene->name);
	assert_true(bells <= 1);
	ends.woken += sleeper->asleep;
	ends.awake += !sleeper->asleep;
}

static void go_back_to(const struct model *before)
{
	model = *before;
	memcpy(memory, &before->front, sizeof(before->front));
}

/* Goes on in every way from here. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are steps */
static void explore(void)
{
	struct model here = model;

	memcpy(&here.front, memory, sizeof(here.front));
	if (here.sides[0].over && here.sides[1].over) {
		check_end();
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		if (!here.sides[i].over) {
			step(i);
			explore();
			go_back_to(&here);
		}
		if (here.sides[i].waiting_count > 0) {
			let_out(&model.sides[i]);
			explore();
			go_back_to(&here);
		}
	}
}

TEST(every_order_of_steps_wakes_the_side_that_sleeps)
{
	static const struct scene scenes[] = {
		{ "bytes", SPOKEI_RING_BYTES, false, put_byte },
		{ "end", SPOKEI_RING_BYTES, false, end_ring },
		{ "room", SPOKEI_RING_ROOM, true, take_all },
	};

	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		scene = &scenes[i];
		memset(&model, 0, sizeof(model));
		memset(memory, 0, sizeof(memory));
		if (scene->full)
			front()->rings[SLEEPER].put = SIZE;
		memset(&ends, 0, sizeof(ends));
		explore();
		/* Either may be the first. */
		assert_true(ends.woken > 0);
		assert_true(ends.awake > 0);
	}
}
