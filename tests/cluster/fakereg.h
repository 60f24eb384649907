/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A registry of a program's own: one list in memory, which all keepers of a test share, and which
 * does what it is told. There is one; zero it before a test.
 */
#ifndef TESTS_CLUSTER_FAKEREG_H
#define TESTS_CLUSTER_FAKEREG_H

#include <spoke/registry.h>

enum {
	FAKEREG_ENTRIES = 2048,
	FAKEREG_OPENS = 8,
	FAKEREG_TEXT = 512,
};

struct fakereg_entry {
	struct fakereg_open *by; /* NULL: free; entries of others have &fakereg_stranger */
	uint64_t intent;
	bool subscribes;
	char service[64];
	char url[FAKEREG_TEXT];
};

struct fakereg_open {
	struct spoke_engine *engine; /* NULL: free */
	const struct spoke_registry_up *up;
	void *arg;
	struct spoke_post post; /* tells lists */
	bool posted;
	bool closed; /* ... but a post is on its way */
	unsigned under_way;
};

struct fakereg {
	struct fakereg_open opens[FAKEREG_OPENS];
	struct fakereg_entry entries[FAKEREG_ENTRIES];
	uint64_t delay_ns;  /* until it answers; 0: 1 ms */
	int fails;          /* all that is asked ends with this error */
	int refuses;        /* all that is asked is not even begun */
	int wrong;          /* what open() says */
	bool mute;          /* it does not answer */
	bool hides;         /* it tells no lists */
	bool keeps;         /* it cannot withdraw */
	bool hastes;        /* it tells the list before it says that it does */
	unsigned publishes; /* what it was asked for, however it ended */
	unsigned withdraws;
	unsigned subscribes;
	unsigned unsubscribes;
	unsigned closes;
	void (*in_begin)(void); /* done inside its functions; may be NULL */
	uint64_t last_ns;       /* when it was asked last */
};

extern struct fakereg fakereg;
extern const struct spoke_registry fakereg_kind;

/* How many providers of the service are listed; how many have this text in their URLs. */
unsigned fakereg_listed(const char *service);
unsigned fakereg_listed_with(const char *text);

/* The URL of the first one, NULL: none is listed. */
const char *fakereg_first(const char *service);

/* Somebody else adds or removes a provider; those who have subscribed are told. */
void fakereg_add(const char *service, const char *url);
void fakereg_remove(const char *service, const char *url);

/* All that was published and subscribed is gone, and everybody is told: of each for itself, or at
 * once. Call it on the thread of the engines. */
void fakereg_lose_all(bool one_by_one);

/* Nobody is told. */
void fakereg_forget(void);

#endif
