/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a file on a simulated disk: the bytes that processes see, and those that the disk
 * has. A write is seen at once. Until a sync it may reach the disk or not, whole or in sectors, and
 * in any order with other writes. Random numbers come from the caller's state.
 */
#ifndef SPOKEI_CORE_VIRTUAL_DISK_H
#define SPOKEI_CORE_VIRTUAL_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOKEI_VDISK_SECTOR 512u /* bytes that the disk writes whole or not at all */

struct spokei_vdisk_image {
	char *bytes; /* followed by a NUL; NULL: empty */
	size_t len;
	size_t room; /* bytes of memory */
};

struct spokei_vdisk_change;

struct spokei_vdisk_file {
	struct spokei_vdisk_file *next;      /* the owner's */
	unsigned holders;                    /* the owner's: names and descriptors */
	struct spokei_vdisk_image seen;      /* ... its `bytes` are never NULL */
	struct spokei_vdisk_image durable;   /* bytes that the disk has for certain */
	struct spokei_vdisk_change *changes; /* of `seen` since the last sync, oldest first */
};

/* Makes an empty file. */
struct spokei_vdisk_file *spokei_vdisk_new(void);
void spokei_vdisk_free(struct spokei_vdisk_file *file);

/* Writes bytes at an offset; NULL: zeros. The file grows as needed. */
void spokei_vdisk_write(struct spokei_vdisk_file *file, size_t at, const void *bytes, size_t len);

/* Brings all changes to the disk. */
void spokei_vdisk_sync(struct spokei_vdisk_file *file);

/* A sync fails: some changes reach the disk. The others are forgotten, so that no later sync
 * repeats them, and are still seen until power fails. */
void spokei_vdisk_sync_badly(struct spokei_vdisk_file *file, uint64_t *dice);

/* Power fails: some changes since the last sync have reached the disk, and the others are gone. */
void spokei_vdisk_lose(struct spokei_vdisk_file *file, uint64_t *dice);

/* Flips a bit of the file, on the disk too. */
void spokei_vdisk_flip(struct spokei_vdisk_file *file, size_t bit);

/* Returns the next random number of a state, which is never 0. */
uint64_t spokei_vdisk_dice(uint64_t *dice);

#endif
