/* SPDX-License-Identifier: Apache-2.0 */
/* Shared counters of the soak's processes. */
#include "board.h"

#include <stdarg.h>
#include <stdio.h>

struct board *board;

/* Maps three ranges of errors to one range of indices. */
unsigned error_index(int error)
{
	unsigned number = (unsigned)-error;

	if (number >= 200)
		return (number - 200 + 48) % ERRORS;
	return number >= 100 ? (number - 100) % 16 + 32 : number % 32;
}

int error_of_index(unsigned index)
{
	if (index >= 48)
		return -(int)(index - 48 + 200);
	return index >= 32 ? -(int)(index - 32 + 100) : -(int)index;
}

void desk_complain(struct desk *desk, const char *format, ...)
{
	va_list list;

	if (desk->complaint[0] != '\0')
		return;
	va_start(list, format);
	(void)vsnprintf(desk->complaint, sizeof(desk->complaint), format, list);
	va_end(list);
}

void desk_stats(struct desk *desk, const struct spoke_engine *engine)
{
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++)
		desk->stats[i] = spoke_stat_get(engine, (enum spoke_stat)i);
}
