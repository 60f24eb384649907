/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated disk: the parts of unsynced writes that are left when power fails. */
#include "core/virtual/disk.h"

#include "timer/base.h"

#include <stdlib.h>
#include <string.h>

struct spokei_vdisk_change {
	struct spokei_vdisk_change *next;
	size_t at;
	size_t len;
	char bytes[];
};

uint64_t spokei_vdisk_dice(uint64_t *dice)
{
	*dice ^= *dice << 13;
	*dice ^= *dice >> 7;
	*dice ^= *dice << 17;
	return *dice * UINT64_C(0x2545f4914f6cdd1d) >> 33;
}

/* --- images */

/* Makes the image at least `len` bytes long, with zeros. */
static void grow(struct spokei_vdisk_image *image, size_t len)
{
	if (len <= image->len && image->bytes)
		return;
	if (len >= image->room) {
		size_t room = len < image->room * 2 ? image->room * 2 : len + 1;
		char *grown = realloc(image->bytes, room);

		SPOKE_ASSERT(grown != NULL);
		image->bytes = grown;
		image->room = room;
	}
	memset(image->bytes + image->len, 0, len + 1 - image->len);
	image->len = len;
}

static void put(struct spokei_vdisk_image *image, const struct spokei_vdisk_change *change,
		size_t from, size_t to)
{
	grow(image, change->at + to);
	memcpy(image->bytes + change->at + from, change->bytes + from, to - from);
}

static void copy(struct spokei_vdisk_image *to, const struct spokei_vdisk_image *from)
{
	free(to->bytes);
	*to = (struct spokei_vdisk_image){ 0 };
	grow(to, from->len);
	if (from->len > 0)
		memcpy(to->bytes, from->bytes, from->len);
}

/* --- changes */

/* Returns where the sector ends in which this byte of the change lies. */
static size_t sector_end(const struct spokei_vdisk_change *change, size_t from)
{
	size_t sector = (change->at + from) / SPOKEI_VDISK_SECTOR;
	size_t end = (sector + 1) * SPOKEI_VDISK_SECTOR - change->at;

	return end < change->len ? end : change->len;
}

/* Some sectors of the change reach the disk. */
static void tear(struct spokei_vdisk_file *file, const struct spokei_vdisk_change *change,
		 uint64_t *dice)
{
	for (size_t from = 0, to; from < change->len; from = to) {
		to = sector_end(change, from);
		if (spokei_vdisk_dice(dice) % 2 == 0)
			put(&file->durable, change, from, to);
	}
}

/* Takes a random one of the changes, or the oldest one without dice. */
static struct spokei_vdisk_change *take_change(struct spokei_vdisk_file *file, uint64_t *dice)
{
	struct spokei_vdisk_change **link = &file->changes;
	struct spokei_vdisk_change *taken;
	uint64_t count = 0;

	for (taken = *link; taken; taken = taken->next)
		count++;
	if (count == 0)
		return NULL;
	for (uint64_t skip = dice ? spokei_vdisk_dice(dice) % count : 0; skip > 0; skip--)
		link = &(*link)->next;
	taken = *link;
	*link = taken->next;
	return taken;
}

/* Brings a part of the changes to the disk, in any order. */
static void write_back(struct spokei_vdisk_file *file, uint64_t *dice)
{
	struct spokei_vdisk_change *change;

	while ((change = take_change(file, dice)) != NULL) {
		switch (spokei_vdisk_dice(dice) % 3) {
		case 0:
			put(&file->durable, change, 0, change->len);
			break;
		case 1:
			tear(file, change, dice);
			break;
		default: /* it is lost */
			break;
		}
		free(change);
	}
}

/* --- the file */

struct spokei_vdisk_file *spokei_vdisk_new(void)
{
	struct spokei_vdisk_file *file = calloc(1, sizeof(*file));

	SPOKE_ASSERT(file != NULL);
	grow(&file->seen, 0);
	return file;
}

void spokei_vdisk_free(struct spokei_vdisk_file *file)
{
	struct spokei_vdisk_change *change;

	while ((change = take_change(file, NULL)) != NULL)
		free(change);
	free(file->seen.bytes);
	free(file->durable.bytes);
	free(file);
}

void spokei_vdisk_write(struct spokei_vdisk_file *file, size_t at, const void *bytes, size_t len)
{
	struct spokei_vdisk_change **link = &file->changes;
	struct spokei_vdisk_change *change = calloc(1, sizeof(*change) + len);

	SPOKE_ASSERT(change != NULL);
	change->at = at;
	change->len = len;
	if (bytes && len > 0)
		memcpy(change->bytes, bytes, len);
	put(&file->seen, change, 0, len);
	while (*link)
		link = &(*link)->next;
	*link = change;
}

void spokei_vdisk_sync(struct spokei_vdisk_file *file)
{
	struct spokei_vdisk_change *change;

	while ((change = take_change(file, NULL)) != NULL) {
		put(&file->durable, change, 0, change->len);
		free(change);
	}
}

void spokei_vdisk_sync_badly(struct spokei_vdisk_file *file, uint64_t *dice)
{
	write_back(file, dice);
}

void spokei_vdisk_lose(struct spokei_vdisk_file *file, uint64_t *dice)
{
	write_back(file, dice);
	copy(&file->seen, &file->durable);
}

void spokei_vdisk_flip(struct spokei_vdisk_file *file, size_t bit)
{
	size_t at = bit / 8;
	char mask = (char)(1u << bit % 8);

	SPOKE_ASSERT(at < file->seen.len);
	file->seen.bytes[at] ^= mask;
	if (at < file->durable.len)
		file->durable.bytes[at] ^= mask;
	for (struct spokei_vdisk_change *change = file->changes; change; change = change->next)
		if (at >= change->at && at - change->at < change->len)
			change->bytes[at - change->at] ^= mask;
}
