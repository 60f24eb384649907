/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and parses the lines between the processes and the driver. */
#include "examples/demo/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const tags[TAGS] = {
#define MESSAGE_TAG(name) [TAG_##name] = #name,
	MESSAGE_TAGS(MESSAGE_TAG)
#undef MESSAGE_TAG
};

void message_write_event(uint64_t at_ns, enum spoke_event_user user, enum message_tag tag,
			 unsigned number, const char *peer, const char *text)
{
	printf("event\t%" PRIu64 "\t%u\t%s\t%u\t%s\t%s\n", at_ns, (unsigned)user, tags[tag], number,
	       peer ? peer : "-", text);
	(void)fflush(stdout);
}

void message_write_counts(const uint64_t *counts)
{
	printf("counts");
	for (unsigned i = 0; i < COUNTS; i++)
		printf("\t%" PRIu64, counts[i]);
	printf("\n");
	(void)fflush(stdout);
}

void message_write_peer(const char *address, const char *name)
{
	printf("peer\t%s\t%s\n", address, name);
	(void)fflush(stdout);
}

/* Cuts off the next field; NULL: none is left. */
static char *cut(char **rest)
{
	char *field = *rest;
	char *tab;

	if (field == NULL)
		return NULL;
	tab = strchr(field, '\t');
	*rest = tab ? tab + 1 : NULL;
	if (tab)
		*tab = '\0';
	return field;
}

static bool cut_number(char **rest, uint64_t *ret)
{
	const char *field = cut(rest);

	if (field == NULL)
		return false;
	*ret = strtoull(field, NULL, 10);
	return true;
}

static enum message_tag tag_of(const char *name)
{
	unsigned tag = 0;

	while (tag < TAGS && (name == NULL || strcmp(tags[tag], name) != 0))
		tag++;
	return (enum message_tag)tag;
}

static bool read_event(char *rest, struct message *ret)
{
	uint64_t user = 0;
	uint64_t number = 0;

	if (!cut_number(&rest, &ret->at_ns) || !cut_number(&rest, &user))
		return false;
	ret->user = (enum spoke_event_user)user;
	ret->tag = tag_of(cut(&rest));
	if (ret->tag == TAGS || !cut_number(&rest, &number))
		return false;
	ret->number = (unsigned)number;
	ret->peer = cut(&rest);
	ret->text = rest;
	return rest != NULL;
}

static bool read_counts(char *rest, struct message *ret)
{
	for (unsigned i = 0; i < COUNTS; i++)
		if (!cut_number(&rest, &ret->counts[i]))
			return false;
	return true;
}

void message_read(char *line, struct message *ret)
{
	char *rest = line;
	const char *kind = cut(&rest);

	*ret = (struct message){ .kind = MESSAGE_NONE, .peer = "-" };
	if (strcmp(kind, "event") == 0 && read_event(rest, ret))
		ret->kind = MESSAGE_EVENT;
	else if (strcmp(kind, "counts") == 0 && read_counts(rest, ret))
		ret->kind = MESSAGE_COUNTED;
	if (strcmp(kind, "peer") != 0)
		return;
	ret->peer = cut(&rest);
	ret->text = rest;
	if (ret->peer && ret->text)
		ret->kind = MESSAGE_PEER;
}
