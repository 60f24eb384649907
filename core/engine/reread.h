/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are read again each minute, because they may have changed, by a thread of the pool. A
 * reading that others have overtaken is dropped, and followed by another one. Embedded in the owner
 * of the files. On the engine's thread, except read().
 */
#ifndef SPOKEI_CORE_ENGINE_REREAD_H
#define SPOKEI_CORE_ENGINE_REREAD_H

#include <spoke/engine.h>

#define SPOKEI_REREAD_NS UINT64_C(60000000000)

struct spokei_reread;

struct spokei_reread_up {
	const char *key; /* of the files, for an event */
	/* Prepares a reading. Returns false if there are no files: no reading follows. */
	bool (*begin)(struct spokei_reread *reread);
	/* Reads the files. On any thread, which it blocks. */
	void (*read)(struct spokei_reread *reread);
	/* Ends a reading: uses the files if they are good, and not older than those in use. Returns
	 * the time to the next one. */
	uint64_t (*end)(struct spokei_reread *reread, bool is_good);
	/* Frees a reread that was ended while a thread had it. */
	void (*free)(struct spokei_reread *reread);
};

struct spokei_reread {
	const struct spokei_reread_up *up;
	struct spoke_engine *engine;
	struct spoke_work work;
	struct spoke_alarm alarm;
	bool busy;  /* the work is at the pool */
	bool stale; /* ... and the files in use may be others, or newer */
	bool again; /* ... and another reading is to follow */
	bool dead;
};

/* Reads the files soon: at once, or after the reading that is under way. */
void spokei_reread_now(struct spokei_reread *reread);

/* Reads the files after this time, unless a reading is under way. */
void spokei_reread_later(struct spokei_reread *reread, uint64_t delay_ns);

/* Notes that other files are in use, which a reading that is under way may not have seen. */
void spokei_reread_overtake(struct spokei_reread *reread);

/* Ends it. Returns true if its memory can be freed now; else up->free() is called later. */
bool spokei_reread_end(struct spokei_reread *reread);

#endif
