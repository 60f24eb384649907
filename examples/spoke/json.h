/* SPDX-License-Identifier: Apache-2.0 */
/* Prints JSON (see <spoke/json.h>) to a file. */
#ifndef COMMAND_JSON_H
#define COMMAND_JSON_H

#include <spoke/json.h>

#include <stdio.h>

void json_print(struct spoke_value value, enum spoke_json_form form, FILE *out);
void json_print_text(const void *bytes, size_t len, FILE *out);

#endif
