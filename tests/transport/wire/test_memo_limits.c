/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests with ever more arguments, up to the limits and beyond: the same with and without a memo.
 */
#include "tests/support/test.h"
#include "tests/transport/dubbo_frames.h"
#include "tests/transport/recall.h"
#include "tests/transport/stream.h"

#include <string.h>

TEST(memo_changes_no_limits)
{
	enum {
		NAMES = sizeof(NAMED("\xa0")) - 1,
		ITEMS = 40,
		TAIL = 5
	};
	struct spokei_wire_limits limits = stream_limits;
	unsigned char body[NAMES + 2 * ITEMS + TAIL] = NAMED("\xa0");
	size_t repeats = 0;
	size_t refused = 0;

	limits.value.items_max = ITEMS;
	memset(body + NAMES, 1, 2 * ITEMS);
	for (limits.free_len = 0; limits.free_len <= ITEMS; limits.free_len++) {
		struct recall recall;

		recall_init(&recall, &spokei_wire_dubbo, &limits);
		for (size_t args = 0; args < 4 * ITEMS; args++) {
			struct frame frame;

			memcpy(body + NAMES + args / 2, "\x81\xa1k\xa1v", TAIL);
			frame_init(&frame, 0xdb, 0, body, NAMES + args / 2 + TAIL);
			assert_null(recall_read(&recall, spokei_span(frame.bytes, frame.len)));
			memset(body + NAMES + args / 2, 1, TAIL);
			repeats += recall.repeat;
			refused += recall.result == SPOKE_ETOOLARGE;
		}
		recall_fini(&recall);
	}
	assert_true(repeats > (ITEMS + 1) * ITEMS);
	assert_true(refused > (ITEMS + 1) * 2 * ITEMS);
}
