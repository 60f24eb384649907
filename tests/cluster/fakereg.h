/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A registry in memory, shared by all keepers of a test, which behaves as the test sets. There is
 * only one; zero it before a test.
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
	struct fakereg_open *by; /* NULL: free; &fakereg_stranger: entry of another program */
	struct spoke_registry_entry *of; /* NULL: of another program */
	char service[64];
	char url[FAKEREG_TEXT];
};

struct fakereg_open {
	struct spoke_engine *engine; /* NULL: free */
	const struct spoke_registry_up *up;
	void *arg;
	struct spoke_post post; /* delivers lists */
	bool posted;
	bool closed; /* closed, but a post is pending */
	unsigned under_way;
};

struct fakereg {
	struct fakereg_open opens[FAKEREG_OPENS];
	struct fakereg_entry entries[FAKEREG_ENTRIES];
	uint64_t delay_ns;  /* response time; 0: 1 ms */
	int fails;          /* every request ends with this error */
	int refuses;        /* no request can be begun */
	int wrong;          /* result of open() */
	bool mute;          /* requests are never completed */
	bool hides;         /* lists are not delivered */
	bool keeps;         /* withdrawals fail */
	bool hastes;        /* the list arrives before the subscription is confirmed */
	unsigned publishes; /* requests of each kind, whatever their result */
	unsigned withdraws;
	unsigned subscribes;
	unsigned unsubscribes;
	unsigned closes;
	void (*in_begin)(void); /* called from its functions; may be NULL */
	uint64_t last_ns;       /* time of the last request */
};

extern struct fakereg fakereg;
extern const struct spoke_registry fakereg_kind;

/* The same with categories: the service "demo.Echo/consumers" contains the consumers of demo.Echo,
 * "demo.Echo/configurators" its configurators, and so on. */
extern const struct spoke_registry fakereg_with_categories;

/* The same with instances: "demo.Echo/mapping", "shop/instances", "shop/REVISION/metadata". */
extern const struct spoke_registry fakereg_with_instances;

/* Return the number of listed providers of a service, and of those whose URL contains the text. */
unsigned fakereg_listed(const char *service);
unsigned fakereg_listed_with(const char *text);

/* Returns the URL of the first listed provider, or NULL. */
const char *fakereg_first(const char *service);

/* Adds or removes a provider of another program. Subscribers are notified. */
void fakereg_add(const char *service, const char *url);
void fakereg_remove(const char *service, const char *url);

/* Drops all publications and subscriptions, and reports each loss. Call it on the thread of the
 * engines. */
void fakereg_lose_all(void);

/* Drops everything without a notification. */
void fakereg_forget(void);

#endif
