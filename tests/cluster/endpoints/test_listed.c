/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of a registry as a program sees them: its balancer, ignored URLs, and lists that are too
 * long or without a usable provider. */
#include "tests/cluster/dice.h"
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static size_t pick_last(void *memory, const struct spoke_balancer_candidates *candidates,
			const struct spoke_balancer_choice *choice)
{
	(void)memory;
	(void)choice;
	return candidates->able[candidates->count - 1] ? candidates->count - 1 : SPOKE_NO_ENDPOINT;
}

#define MAX 500u /* endpoints.max */
#define MANY (MAX + 3)

static const struct spoke_consumer_options presets;

/* Lists providers at the first `count` addresses, and waits until that is applied, in slices. */
static void list_crowd(size_t count)
{
	static char texts[MANY][80];
	const char *list[MANY + 1] = { NULL };

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "dubbo://10.0.%zu.%zu:20880/demo.Echo",
			       i / 250, i % 250);
		list[i] = texts[i];
	}
	assert_int_equal(dirrig_list(list), 0);
	dirrig_pass(10 * MS);
}

/* Returns the number of events that contain these words. */
static unsigned events_with(const char *words)
{
	return scene_events(dirrig.engine, words);
}

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(balancer_of_a_program_places_calls)
{
	static const struct spoke_balancer last = { .name = "last", .pick = pick_last };
	static const struct spoke_consumer_options options = { .balancer = &last };

	for (unsigned i = 0; i < 3; i++)
		dirrig_start(i);
	dirrig_consume("", &options);
	LIST(A, B, C);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(2), 4);
	LIST(A, B);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(1), 1);
}

static unsigned count_events(const char *words)
{
	return scene_events(dirrig.engine, words);
}

TEST(ignored_urls_are_explained)
{
	dirrig_consume("?version=1", &presets);
	LIST("tri://127.0.0.1:20880/demo.Echo?version=1", A "?version=1&disabled=true",
	     B "?version=1&enabled=false", "dubbo://127.0.0.1:20882/demo.Other");
	assert_int_equal(count_events("ignored because spoke does not have its protocol: tri://"),
			 1);
	assert_int_equal(count_events("ignored because it is disabled: dubbo://127.0.0.1:2088"), 2);
	assert_int_equal(count_events("version or group"), 0);
	/* The other version is told once, until there are providers again. */
	LIST(A "?version=2&group=blue", B);
	LIST(B, A "?version=2&group=blue");
	assert_int_equal(count_events(
				 "list of demo.Echo: 2 providers ignored because their version "
				 "or group is another one, e.g. version=2 group=blue"),
			 1);
	assert_int_equal(count_events("version or group"), 1);
	LIST(A "?version=1&enabled=false&disabled=false", B);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 1);
	assert_int_equal(count_events("version or group"), 1);
}

TEST(available_takes_the_first_of_the_list)
{
	const struct spoke_consumer_options options = { .policy = &spoke_policy_available };

	for (unsigned i = 0; i < 3; i++)
		dirrig_start(i);
	dirrig_consume("", &options);
	LIST(A, B, C);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(0), 1);
	LIST(B, C);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(1), 1);
	LIST(C, B, A);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(2), 1);
}

TEST(invalid_urls_are_skipped)
{
	dirrig_start(0);
	dirrig_consume("", &presets);
	LIST("dubbo://[:1/x", "", A, "not a url\x1b[2J");
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 1);
	assert_int_equal(events_with("3 invalid provider URLs ignored"), 1);
	assert_int_equal(events_with("\x1b"), 0);
}

TEST(crowded_list_is_cut_and_told_once)
{
	dirrig_consume("?lazy=true&endpoints.max=500", &presets);
	list_crowd(MAX);
	assert_int_equal(events_with("providers ignored"), 0);
	for (int i = 0; i < 3; i++) {
		list_crowd(MANY);
		assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), MAX);
	}
	assert_int_equal(events_with("3 providers ignored; endpoints.max = 500 are used"), 1);
	list_crowd(2);
	list_crowd(MANY);
	assert_int_equal(events_with("3 providers ignored"), 2);
}

TEST(only_own_disabled_providers_empty_a_protected_list)
{
	static const char *const foreign[] = {
		"dubbo://127.0.0.1:20880/demo.Other?disabled=true",
		A "?disabled=true&group=other",
		A "?disabled=true&version=2",
	};

	dirrig_start(0);
	dirrig_consume("", &presets);
	dirrig_beat(MS);
	dirrig.consumer->directory->settings.protects = true;
	LIST(A);
	dirrig_pass(10 * MS);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		LIST(foreign[i]);
		assert_int_equal(dirrig_call(), SPOKE_OK);
	}
	LIST(A "?disabled=true");
	assert_int_equal(dirrig_call(), SPOKE_ENOPROVIDER);
}

TEST(kept_providers_are_told_once_until_list_has_one)
{
	dirrig_start(0);
	dirrig_consume("", &presets);
	dirrig_beat(MS);
	dirrig.consumer->directory->settings.protects = true;
	for (unsigned i = 1; i <= 2; i++) {
		LIST(A);
		dirrig_pass(10 * MS);
		for (unsigned repeats = 0; repeats < 3; repeats++) {
			LIST_NOBODY();
			assert_int_equal(dirrig_call(), SPOKE_OK);
		}
		assert_int_equal(events_with("the known ones are kept"), i);
	}
}

/* --- random lists */

#define ADDRESSES 20u
#define TEXTS 50u

/* A text: a provider of this address, started then, with this weight. */
struct entry {
	unsigned address;
	unsigned timestamp;
	unsigned weight;
};

static struct entry entries[TEXTS];
static size_t entry_count;

static struct entry any_entry(uint64_t *seed)
{
	return (struct entry){
		.address = (unsigned)(dice_roll(seed) % ADDRESSES),
		.timestamp = 1 + (unsigned)(dice_roll(seed) % 3),
		.weight = 1 + (unsigned)(dice_roll(seed) % 5),
	};
}

/* Adds, removes, replaces or exchanges some texts. */
static void change_entries(uint64_t *seed)
{
	for (uint64_t i = dice_roll(seed) % 6; i > 0; i--) {
		size_t at = entry_count ? (size_t)dice_roll(seed) % entry_count : 0;
		size_t other = entry_count ? (size_t)dice_roll(seed) % entry_count : 0;
		struct entry kept = entries[at];

		switch (dice_roll(seed) % 5) {
		case 0:
		case 1:
			if (entry_count == TEXTS)
				break;
			memmove(&entries[at + 1], &entries[at],
				(entry_count++ - at) * sizeof(entries[0]));
			entries[at] = any_entry(seed);
			break;
		case 2:
			if (entry_count == 0)
				break;
			memmove(&entries[at], &entries[at + 1],
				(--entry_count - at) * sizeof(entries[0]));
			break;
		case 3:
			entries[at] = any_entry(seed);
			break;
		default:
			entries[at] = entries[other];
			entries[other] = kept;
			break;
		}
	}
}

static void list_entries(void)
{
	static char texts[TEXTS][96];
	const char *list[TEXTS + 1] = { NULL };

	for (size_t i = 0; i < entry_count; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]),
			       "dubbo://10.0.0.%u:20880/demo.Echo?timestamp=%u&weight=%u",
			       entries[i].address, entries[i].timestamp, entries[i].weight);
		list[i] = texts[i];
	}
	assert_int_equal(dirrig_list(list), 0);
	dirrig_pass(dirrig.world.now_ns % 2 * MS);
}

/* Returns the weight of the newest text of an address, the last of equally old ones; 0: none. */
static unsigned weight_of(unsigned address)
{
	const struct entry *newest = NULL;

	for (size_t i = 0; i < entry_count; i++)
		if (entries[i].address == address &&
		    (newest == NULL || entries[i].timestamp >= newest->timestamp))
			newest = &entries[i];
	return newest ? newest->weight : 0;
}

static void check_endpoints(void)
{
	struct spoke_endpoint_info infos[2 * ADDRESSES];
	size_t count = spoke_consumer_endpoints(dirrig.consumer, infos, 2 * ADDRESSES);
	size_t expected = 0;

	for (unsigned address = 0; address < ADDRESSES; address++) {
		unsigned weight = weight_of(address);
		char name[32];

		expected += weight > 0;
		(void)snprintf(name, sizeof(name), "10.0.0.%u:20880", address);
		for (size_t i = 0; i < count; i++)
			if (strcmp(infos[i].name, name) == 0)
				assert_int_equal(infos[i].weight, weight);
	}
	assert_int_equal(count, expected);
}

TEST(any_list_after_any_other_gives_its_endpoints)
{
	uint64_t seed = 5;

	dirrig_consume("?lazy=true", &presets);
	entry_count = 0;
	for (unsigned round = 0; round < 1000; round++) {
		change_entries(&seed);
		list_entries();
		/* Now and then a list arrives while another one is applied. */
		if (dice_roll(&seed) % 4 == 0)
			continue;
		dirrig_pass(10 * MS);
		check_endpoints();
	}
}
