/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the two halves of the rig: rig_start.c starts and ends processes, rig_talk.c
 * communicates with them.
 */
#ifndef TESTS_INTEGRATION_RIG_PARTS_H
#define TESTS_INTEGRATION_RIG_PARTS_H

#include "tests/integration/rig.h"

#define RIG_PATIENCE_NS (60 * SECOND)

extern struct rig_process *rig_processes; /* processes of the current test */

/* Allocates a process that has not started. */
struct rig_process *rig_new_process(const char *name);

/* Forks; returns true in the child, whose stdin and stdout are connected to the test. */
bool rig_fork(struct rig_process *process);

/* Enters the network namespace of a process. */
bool rig_enter_netns(pid_t pid);

/* Reads pending output of a process without waiting. */
void rig_hear(struct rig_process *process);

/* Waits a short time for output of any process and reads all of it, so that no pipe fills up. */
void rig_hear_all(void);

/* Prints the last lines of a process. */
void rig_show(const struct rig_process *process);

#endif
