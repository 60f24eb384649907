/* SPDX-License-Identifier: Apache-2.0 */
/* The object that benchmarks send: a Java class with five fields. */
#ifndef BENCH_ORDER_H
#define BENCH_ORDER_H

#include <spoke/value.h>

static inline void pack_order(struct spoke_builder *builder)
{
	spoke_pack_object(builder, 5);
	spoke_pack_text(builder, "item");
	spoke_pack_text(builder, "a pound of tea");
	spoke_pack_text(builder, "amount");
	spoke_pack_i64(builder, 3);
	spoke_pack_text(builder, "price");
	spoke_pack_double(builder, 4.25);
	spoke_pack_text(builder, "customer");
	spoke_pack_long(builder, INT64_C(123456789012));
	spoke_pack_text(builder, "paid");
	spoke_pack_bool(builder, true);
	spoke_pack_class(builder, "demo.shop.Order");
}

#endif
