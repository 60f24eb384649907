/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the service manager that started the process, as sd_notify(3) sends them: datagrams
 * to the unix socket in the variable NOTIFY_SOCKET, a path or, after "@", an abstract name. Without
 * a library of systemd. The context is not used; any thread.
 */
#ifndef SPOKEI_CORE_HOST_MANAGER_H
#define SPOKEI_CORE_HOST_MANAGER_H

#include <spoke/env.h>

extern const struct spoke_manager spokei_host_manager;

#endif
