/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the verdict about the first bytes of a peer: it is the same for every cut, it is final,
 * and it comes before too many bytes have. */
#include "tests/fuzz/fuzz.h"
#include "transport/stream/tls/hello.h"

#define CUTS 600u /* prefixes that are judged one by one */

FUZZ(tlshello)
{
	enum spokei_hello verdict = SPOKEI_HELLO_MORE;
	size_t step = size / CUTS + 1;

	for (size_t len = 0; len <= size; len += step) {
		enum spokei_hello next = spokei_hello_judge((struct spoke_span){ data, len });

		demand(verdict == SPOKEI_HELLO_MORE || verdict == next, "a verdict is final");
		demand(next != SPOKEI_HELLO_MORE || len < SPOKEI_HELLO_BYTES,
		       "a hello is whole within its limit");
		verdict = next;
	}
	if (size > 0)
		demand((verdict == SPOKEI_HELLO_PLAIN) == (data[0] != 0x16),
		       "the first byte tells plain bytes");
	return 0;
}
