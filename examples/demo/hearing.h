/* SPDX-License-Identifier: Apache-2.0 */
/* How the driver hears what its actors tell, and sees what becomes of their processes. */
#ifndef DEMO_HEARING_H
#define DEMO_HEARING_H

/* Hears what is told, for up to `ms`. */
void hearing_hear(int ms);

#endif
