/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals of the process for the environment. The context is not used; any thread, also in forked
 * children.
 */
#ifndef SPOKEI_CORE_HOST_SIGNALS_H
#define SPOKEI_CORE_HOST_SIGNALS_H

#include <spoke/env.h>

extern const struct spoke_signals spokei_host_signals;

#endif
