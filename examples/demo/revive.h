/* SPDX-License-Identifier: Apache-2.0 */
/* In live mode visitors of the pages freeze, kill and drain; the driver notices, and mends it. */
#ifndef DEMO_REVIVE_H
#define DEMO_REVIVE_H

/* Looks after all actors, again and again. */
void revive_tend(void);

#endif
