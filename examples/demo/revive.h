/* SPDX-License-Identifier: Apache-2.0 */
/* In live mode, revives processes that visitors have frozen, killed or drained. */
#ifndef DEMO_REVIVE_H
#define DEMO_REVIVE_H

/* Checks all processes; call regularly. */
void revive_tend(void);

#endif
