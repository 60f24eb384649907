/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Includes all public headers except the adapter for msgpack-c, <spoke/value_msgpack.h>.
 *
 * To call services, begin with <spoke/consumer.h>; to serve them, with <spoke/provider.h>. Both
 * need an engine, <spoke/engine.h>.
 */
#ifndef SPOKE_SPOKE_H
#define SPOKE_SPOKE_H

#include <spoke/admin.h>
#include <spoke/args.h>
#include <spoke/client.h>
#include <spoke/comet.h>
#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/error.h>
#include <spoke/fence.h>
#include <spoke/frames.h>
#include <spoke/future.h>
#include <spoke/histogram.h>
#include <spoke/host.h>
#include <spoke/journal.h>
#include <spoke/lease.h>
#include <spoke/notify.h>
#include <spoke/program.h>
#include <spoke/provider.h>
#include <spoke/read.h>
#include <spoke/signals.h>
#include <spoke/stats.h>
#include <spoke/tls.h>
#include <spoke/trace.h>
#include <spoke/url.h>
#include <spoke/value.h>

#endif
