/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer process of the soak. */
#ifndef TESTS_SOAK_CONSUMER_H
#define TESTS_SOAK_CONSUMER_H

/* Calls until SIGTERM, then waits until all calls have ended. `life` counts the starts. Returns the
 * exit status. */
int consumer_run(unsigned index, unsigned life);

#endif
