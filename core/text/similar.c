/* SPDX-License-Identifier: Apache-2.0 */
/* Compares names by the number of letters to change. */
#include "core/text/similar.h"

#include "timer/base.h"

#include <string.h>

#define NAME_MAX 48u    /* longer names are not compared */
#define DISTANCE_MAX 3u /* largest distance that counts as similar */

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static char to_small(char letter)
{
	return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* Returns how many letters must be added, dropped or exchanged to turn one name into the other,
 * ignoring case. The second name is at most NAME_MAX long. */
static unsigned distance_between(const char *a, const char *b)
{
	unsigned row[NAME_MAX + 1];
	size_t len = strlen(b);

	for (unsigned j = 0; j <= len; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1] != '\0'; i++) {
		unsigned corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			unsigned changed = corner + (to_small(a[i - 1]) != to_small(b[j - 1]));

			corner = row[j];
			row[j] = smaller(changed, 1 + smaller(row[j], row[j - 1]));
		}
	}
	return row[len];
}

const char *spokei_similar_nearest(const char *name,
				   const char *(*name_at)(const void *of, size_t i), const void *of,
				   size_t count)
{
	const char *nearest = NULL;
	size_t len = strlen(name);
	unsigned least = DISTANCE_MAX + 1;

	if (len > NAME_MAX)
		return NULL;
	/* At most a third of the letters may differ, so that short names do not all resemble each
	 * other. */
	if (len / 3 < DISTANCE_MAX)
		least = (unsigned)len / 3 + 1;
	for (size_t i = 0; i < count; i++) {
		const char *other = name_at(of, i);
		unsigned distance;

		if (other == NULL)
			continue;
		SPOKE_ASSERT(strlen(other) <= NAME_MAX);
		distance = distance_between(name, other);
		if (distance < least) {
			least = distance;
			nearest = other;
		}
	}
	return nearest;
}
