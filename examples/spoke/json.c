/* SPDX-License-Identifier: Apache-2.0 */
/* Prints JSON to a file. */
#include "examples/spoke/json.h"

static void write_out(void *out, const void *bytes, size_t len)
{
	(void)fwrite(bytes, 1, len, out);
}

void json_print(struct spoke_value value, enum spoke_json_form form, FILE *out)
{
	spoke_json_print(value, form, write_out, out);
}

void json_print_text(const void *bytes, size_t len, FILE *out)
{
	spoke_json_print_text(bytes, len, write_out, out);
}
