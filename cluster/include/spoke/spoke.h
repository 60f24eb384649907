/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of spoke, but for the adapter of msgpack-c (<spoke/value_msgpack.h>).
 *
 * Who calls begins with <spoke/consumer.h>, who serves with <spoke/provider.h>; both live on an
 * engine, <spoke/engine.h>.
 */
#ifndef SPOKE_SPOKE_H
#define SPOKE_SPOKE_H

#include <spoke/admin.h>
#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/error.h>
#include <spoke/frames.h>
#include <spoke/future.h>
#include <spoke/histogram.h>
#include <spoke/host.h>
#include <spoke/provider.h>
#include <spoke/signals.h>
#include <spoke/stats.h>
#include <spoke/url.h>
#include <spoke/value.h>

#endif
