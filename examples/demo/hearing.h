/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the reports of the processes and watches their exits. */
#ifndef DEMO_HEARING_H
#define DEMO_HEARING_H

/* Handles reports for up to `ms`. */
void hearing_hear(int ms);

#endif
