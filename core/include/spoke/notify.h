/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the service manager that started the process, e.g. systemd, how the process is: ready, busy
 * with new settings, ending, alive. Without libsystemd, and without any effect where no service
 * manager listens.
 */
#ifndef SPOKE_NOTIFY_H
#define SPOKE_NOTIFY_H

#include <spoke/engine.h>

SPOKE_BEGIN_DECLS

#define SPOKE_NOTIFY_STATUS_MAX 255u /* bytes of a status; a longer one is cut */

/*
 * Sends READY=1 with a line of status (NULL: none), e.g. "demo.Greeter listens at [::]:20880". Call
 * it when all listeners are open. From then on the engine sends by itself:
 *
 *   - RELOADING=1 and READY=1 around a reload of spoke_config_reload_on_signal()
 *   - STOPPING=1 when a drain begins
 *   - WATCHDOG=1 twice within the time of the watchdog, while the engine turns
 *
 * A message that the service manager has no room for is sent again. Another call changes the
 * status. One engine of a process should do this. Returns 0, also without a service manager; ELIMIT
 * (no timer is left), EFORKED or ETHREAD. The engine's thread.
 */
SPOKE_API SPOKE_MUST_USE int spoke_engine_notify(struct spoke_engine *engine, const char *status);

SPOKE_END_DECLS

#endif
