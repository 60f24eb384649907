/* SPDX-License-Identifier: Apache-2.0 */
/* Writes by commands and scripts: whether they are allowed, and what they do. */
#include "tests/support/redis/parts.h"

#include <inttypes.h>
#include <stdio.h>

bool fakeredis_may_write(const struct fakeredis_command *command, bool more_memory)
{
	const struct fakeredis *server = command->server;

	if (server->primary) {
		fakeredis_refuse(command, "READONLY You can't write against a read only replica.");
		return false;
	}
	if (server->phase == FAKEREDIS_MISCONF) {
		fakeredis_refuse(command,
				 "MISCONF Redis is configured to save RDB snapshots, but it's "
				 "currently unable to persist to disk.");
		return false;
	}
	if (more_memory && server->phase == FAKEREDIS_OOM) {
		fakeredis_refuse(command,
				 "OOM command not allowed when used memory > 'maxmemory'.");
		return false;
	}
	return true;
}

static void wrote(struct fakeredis_command *command, const struct fakeredis_key *key)
{
	fakeredis_wrote(command->server, key->db, fakeredis_span(key->name), key);
}

bool fakeredis_do_delete(struct fakeredis_command *command, struct fakeredis_key *key)
{
	if (!fakeredis_may_write(command, false))
		return false;
	fakeredis_wrote(command->server, key->db, fakeredis_span(key->name), NULL);
	fakeredis_drop(command->server, key);
	return true;
}

bool fakeredis_do_expire(struct fakeredis_command *command, struct fakeredis_key *key,
			 struct spoke_span ttl_ms)
{
	int64_t ms;

	if (!fakeredis_may_write(command, false))
		return false;
	if (!fakeredis_number(ttl_ms, &ms)) {
		fakeredis_refuse(command, "ERR value is not an integer or out of range");
		return false;
	}
	if (ms <= 0)
		return fakeredis_do_delete(command, key);
	key->expires_ms = fakeredis_now_ms(command->server) + (uint64_t)ms;
	wrote(command, key);
	return true;
}

bool fakeredis_do_count(struct fakeredis_command *command, struct spoke_span name,
			int64_t *ret_number)
{
	struct fakeredis_key *key = fakeredis_find(command->server, command->conn->db, name);
	int64_t number = 0;
	char text[24];

	if (!fakeredis_may_write(command, true))
		return false;
	if (key && key->string == NULL) {
		fakeredis_refuse(command, "WRONGTYPE Operation against a key holding the wrong "
					  "kind of value");
		return false;
	}
	if (key && !fakeredis_number(fakeredis_span(key->string), &number)) {
		fakeredis_refuse(command, "ERR value is not an integer or out of range");
		return false;
	}
	(void)snprintf(text, sizeof(text), "%" PRId64, ++number);
	key = fakeredis_make(command->server, command->conn->db, name);
	fakeredis_set_string(key, fakeredis_of(text));
	wrote(command, key);
	*ret_number = number;
	return true;
}

bool fakeredis_do_field(struct fakeredis_command *command, struct spoke_span name,
			struct spoke_span field, int64_t number)
{
	struct fakeredis_key *key;
	char text[24];

	if (!fakeredis_may_write(command, true))
		return false;
	key = fakeredis_make(command->server, command->conn->db, name);
	(void)snprintf(text, sizeof(text), "%" PRId64, number);
	fakeredis_set_field(key, field, fakeredis_of(text));
	wrote(command, key);
	return true;
}
