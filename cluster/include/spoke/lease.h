/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: locks with a time to live, kept in a store that several programs share, and renewed by
 * the engine's wheel for as long as they are held. The store is Redis. Programs that use the RLock
 * of Redisson on the same names exclude, and are excluded by, holders of leases.
 *
 *     static void told(void *arg, struct spoke_lease lease,
 *                      const struct spoke_lease_answer *answer)
 *     {
 *             if (answer->error == SPOKE_OK)
 *                     begin_work(arg, lease);
 *     }
 *
 *     error = spoke_leases_new(engine, &(struct spoke_leases_options){
 *             .store = "redis://127.0.0.1:6379/0" }, &leases);
 *     ...
 *     error = spoke_lease_ask(leases, "reports", &(struct spoke_lease_options){
 *             .wait_ns = SPOKE_LEASE_FOREVER, .lost = stop_work, .arg = work }, told, &lease);
 *
 * A holder may be frozen or cut off while its lease passes to another one. So a lease is valid for
 * a time that begins when the grant or the renewal was *sent*. The engine compares it with two
 * clocks, one of which counts sleep of the machine, at the begin of each turn and before anything
 * is read. A lease that is over then is reported by `lost` before any other callback of that turn.
 * Code that acts long after a callback has begun asks spoke_lease_left() first.
 *
 * No store, and no clock, can stop a process that was frozen just after it asked. For that each
 * lease has a fence number, greater than those of all leases granted before under this name. The
 * owner of the data compares it: see <spoke/fence.h> for providers, and the option
 * `lease` of calls. The store keeps the last number of each name for ever, so take names from a
 * bounded set.
 *
 * On the engine's thread, unless a comment says "any thread".
 */
#ifndef SPOKE_LEASE_H
#define SPOKE_LEASE_H

#include <spoke/value.h>

SPOKE_BEGIN_DECLS

struct spoke_config;
struct spoke_engine;

/* The leases of one engine at one store: one client of it, with two connections. */
struct spoke_leases;

/* Names a lease, passed by value; { 0 } names none. A name of a lease that has ended is detected,
 * as long as its `leases` exist. */
struct spoke_lease {
	struct spoke_leases *leases;
	uint64_t handle;
};

#define SPOKE_LEASE_FOREVER UINT64_MAX /* as a waiting time: until the lease is granted */
#define SPOKE_LEASE_NAME_MAX 1024u     /* bytes of a name */

/* Options of leases. 0 or NULL in a field: the value of `config`, else the default. Texts are
 * copied. */
struct spoke_leases_options {
	/*
	 * URL of the store:
	 *   redis://[USER:PASSWORD@]HOST[:PORT][/DB]           a server
	 *   redis+unix:///PATH[?db=N]                          a server at a unix socket
	 *   sentinel://HOST[:PORT],HOST[:PORT].../NAME[/DB]    the primary that sentinels name
	 * USER:PASSWORD@ before the sentinels are those of the primary. Keys of the section [lease]
	 * of settings from `ttl` on may follow as parameters, e.g. ?lease.ttl=10s.
	 */
	const char *store;
	/* NULL: that of the URL; or, if the URL has neither, those of the file, unless the file
	 * names another store; or none. */
	const char *user;
	const char *password;
	const char *sentinel_password; /* of the sentinels themselves; NULL: the file's, or none */
	struct spoke_config *config;   /* settings from a file: <spoke/config.h>; NULL: none */
	uint64_t ttl_ns;               /* time to live of a lease in the store; default 30 s */
	/* Part of the time to live that is not used, against inexact clocks. Default:
	 * a tenth of the time to live; less than half of it; SPOKE_OFF: none. */
	uint64_t guard_ns;
	uint32_t leases_max; /* asked for and held at one time; default 100,000 */
};

/*
 * Makes a client of a store, which connects at once and reconnects as often as needed. Returns 0,
 * EINVAL, ESYNTAX, ERANGE or ETOOLARGE (an option, or the URL; the log has a sentence),
 * EUNSUPPORTED (a store of another kind), ELIMIT, ECLOSED, ENOMEM or EFORKED. Free it with
 * spoke_leases_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_leases_new(struct spoke_engine *engine,
					      const struct spoke_leases_options *options,
					      struct spoke_leases **ret_leases);

/*
 * Frees the client; NULL is allowed. Asks that wait end with ECLOSED; held leases end as lost, for
 * the reason CLOSED, and are released at the store if it can be reached at once. The callbacks are
 * called on the engine's thread, later, and nothing after them.
 */
SPOKE_API void spoke_leases_free(struct spoke_leases *leases);

/* Why a lease was lost. */
enum spoke_lease_loss {
	SPOKE_LEASE_EXPIRED = 1, /* its time passed without a renewal */
	SPOKE_LEASE_TAKEN,       /* the store says that this holder does not hold it any more */
	SPOKE_LEASE_CLOSED,      /* its leases, or the engine, were freed */
};

/* Returns the name of a reason in lower case, e.g. "expired"; NULL for other numbers. Any thread.
 */
SPOKE_API const char *spoke_lease_loss_name(enum spoke_lease_loss why);

/* The answer to an ask; borrowed for the callback. */
struct spoke_lease_answer {
	/*
	 * SPOKE_OK: the lease is held, until it is released or lost. All others: it does not exist.
	 * - EBUSY: another holder has it, and the ask was not to wait
	 * - ETIMEOUT: the waiting time has passed
	 * - EUNAVAILABLE: the store could not be reached, or has answered too late or that it is
	 *   busy, and the ask was not to wait
	 * - ESTORE: the store has refused, for the reason in `text`
	 * - ECANCELED: it was released before it was granted
	 * - ECLOSED: its leases, or the engine, were freed or drained
	 */
	int error;
	uint64_t fence; /* of OK: see spoke_lease_fence() */
	/* Of EBUSY: how long the lock of the other holder lives, unless it is renewed; UINT64_MAX:
	 * without end. */
	uint64_t left_ns;
	struct spoke_span text; /* the message of the store, for people; may be empty */
};

/* The callback of an ask. */
typedef void (*spoke_lease_told_fn)(void *arg, struct spoke_lease lease,
				    const struct spoke_lease_answer *answer);

/* The callback of a lease that is lost: it was told as held, and was not released. Called once. The
 * lease does not exist any more. */
typedef void (*spoke_lease_lost_fn)(void *arg, struct spoke_lease lease, enum spoke_lease_loss why);

/* Options of one lease. Zero-initialised, all fields have their defaults. */
struct spoke_lease_options {
	/* How long to wait while another one holds the lease, or the store cannot be reached.
	 * SPOKE_LEASE_FOREVER: until it is granted or cancelled. 0: as set by `lease.wait`, or not
	 * at all. */
	uint64_t wait_ns;
	uint64_t ttl_ns;          /* 0: that of the leases */
	bool fixed;               /* it is not renewed: it is lost when its time to live is over */
	spoke_lease_lost_fn lost; /* may be NULL */
	void *arg;                /* of `told` and `lost` */
};

/*
 * Asks for a lease. `name`: 1 to SPOKE_LEASE_NAME_MAX bytes of UTF-8, copied; it is the key in the
 * store. Every ask is a holder of its own: a second one for the same name waits for the first, also
 * in this process. Asks of this process that wait for one name get it in their order.
 *
 * Returns 0, and `told` is called once, later; or EINVAL, ERANGE, ELIMIT (leases_max), ECLOSED,
 * ENOMEM, EFORKED. `options` and `ret_lease` may be NULL.
 */
SPOKE_API SPOKE_MUST_USE int spoke_lease_ask(struct spoke_leases *leases, const char *name,
					     const struct spoke_lease_options *options,
					     spoke_lease_told_fn told,
					     struct spoke_lease *ret_lease);

/*
 * Returns how long the lease is surely valid, in ns, if it is not renewed before. 0: it is over, or
 * not granted yet. Reads the clocks, so the answer counts from now on and not from the begin of the
 * turn. On other threads this and the next two answer as for a lease that has ended.
 */
SPOKE_API uint64_t spoke_lease_left(struct spoke_lease lease);

/* Returns the fence number of a lease that is held; 0 for others. It is greater than that of each
 * lease granted before under this name, as long as the store has lost nothing. */
SPOKE_API uint64_t spoke_lease_fence(struct spoke_lease lease);

/* Returns the name, or an empty span. Valid until the lease has ended, so also inside `lost`. */
SPOKE_API struct spoke_span spoke_lease_name(struct spoke_lease lease);

/*
 * Called once. SPOKE_OK: the store has the lease no more; of an ask: it was cancelled. ENOENT: the
 * store had another holder already, or none. EUNAVAILABLE: the store could not be reached before
 * the time to live had passed, so the lease is free now. ESTORE: the store has refused. ECLOSED:
 * its leases, or the engine, were freed before the answer.
 */
typedef void (*spoke_lease_released_fn)(void *arg, int error);

/*
 * Releases a lease that is held, or cancels an ask: its `told` is then called with ECANCELED. The
 * lease is over at once: spoke_lease_left() is 0, and `lost` is not called. `done` may be NULL; it
 * is called once if 0 is returned. Returns 0, ENOENT (it has ended before) or EFORKED.
 */
SPOKE_API SPOKE_MUST_USE int spoke_lease_release(struct spoke_lease lease,
						 spoke_lease_released_fn done, void *arg);

/* --- from other threads */

/* An ask, and then a lease, for other threads: see spoke_lease_start(). */
struct spoke_lease_future;

/*
 * Asks for a lease. Any thread, as long as the leases exist and no other thread frees them. The
 * engine must turn meanwhile. options->lost is called on the engine's thread. Returns 0, EINVAL,
 * ERANGE, ECLOSED, ENOMEM or EFORKED; errors that spoke_lease_ask() would return else are those of
 * the answer. Free it with spoke_lease_future_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_lease_start(struct spoke_leases *leases, const char *name,
					       const struct spoke_lease_options *options,
					       struct spoke_lease_future **ret_future);

/* Waits until the ask is answered; blocks. Any thread but the engine's own. Returns the error of
 * the answer (0: the lease is held); or ETHREAD, EUNSUPPORTED, EFORKED. */
SPOKE_API SPOKE_MUST_USE int spoke_lease_future_wait(struct spoke_lease_future *future);

/* Returns the answer, or NULL while there is none. Valid as long as the future. Any thread. */
SPOKE_API const struct spoke_lease_answer *spoke_lease_future_answer(
	const struct spoke_lease_future *future);

/* As spoke_lease_left(). Any thread. */
SPOKE_API uint64_t spoke_lease_future_left(const struct spoke_lease_future *future);

/* Returns the lease, e.g. for the option `lease` of calls; { 0 } while it is not held. Any thread.
 */
SPOKE_API struct spoke_lease spoke_lease_future_lease(const struct spoke_lease_future *future);

/* Releases the lease, or cancels the ask, and waits for the store; blocks. Any thread but the
 * engine's own. Returns as spoke_lease_released_fn is told; ENOENT also if it was lost before. */
SPOKE_API SPOKE_MUST_USE int spoke_lease_future_release(struct spoke_lease_future *future);

/* Frees the future; NULL is allowed. Releases the lease, or cancels the ask, without waiting;
 * `lost` is not called any more, but a call that has begun on the engine's thread may still run.
 * Any thread, but not while another one uses it. */
SPOKE_API void spoke_lease_future_free(struct spoke_lease_future *future);

/* --- display */

/* A snapshot of the leases, for display. */
struct spoke_leases_look {
	bool connected; /* the store takes commands */
	uint32_t asked; /* asks that are not answered yet */
	uint32_t held;
	/* Time that is left of the lease that ends first; UINT64_MAX: none is held. */
	uint64_t left_min_ns;
	char store[128]; /* the address, without secrets; may be cut */
	char why[200];   /* why the store takes no commands; "": it does, or was not tried yet */
};

/* Writes a snapshot. Returns 0; or ETHREAD or EFORKED, with a snapshot of no leases. */
SPOKE_API int spoke_leases_look(const struct spoke_leases *leases,
				struct spoke_leases_look *ret_look);

SPOKE_END_DECLS

#endif
