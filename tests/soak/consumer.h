/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer process of the soak. */
#ifndef TESTS_SOAK_CONSUMER_H
#define TESTS_SOAK_CONSUMER_H

/* Calls until SIGTERM, then waits until all has ended. `life` is how often it was started. Returns
 * the status to exit with. */
int consumer_run(unsigned index, unsigned life);

#endif
