/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the rig share: rig_start.c has the processes, rig_talk.c talks to them. */
#ifndef TESTS_INTEGRATION_RIG_PARTS_H
#define TESTS_INTEGRATION_RIG_PARTS_H

#include "tests/integration/rig.h"

#define RIG_PATIENCE_NS (60 * SECOND)

extern struct rig_process *rig_processes; /* of the present test */

/* One that has not begun yet. */
struct rig_process *rig_new_process(const char *name);

/* Begins it: forks, and returns true in the child, whose stdin and stdout the test has. */
bool rig_fork(struct rig_process *process);

/* Into the network of a process. */
bool rig_enter_netns(pid_t pid);

/* Takes what a process has said, without waiting. */
void rig_hear(struct rig_process *process);

/* Waits for a word of anybody, not long, and hears them all, so that no pipe is ever full. */
void rig_hear_all(void);

/* The last lines of a process, for people. */
void rig_show(const struct rig_process *process);

#endif
