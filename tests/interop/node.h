/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the Node programs of tests/interop/node for a test: each takes commands on its standard
 * input, prints a line for each, and is gone when the test program ends.
 */
#ifndef TESTS_INTEROP_NODE_H
#define TESTS_INTEROP_NODE_H

#include "tests/interop/nvim.h"

#define NODE_LINE_MAX 2048
#define NODE_ARGUMENTS_MAX 8

struct node {
	pid_t pid; /* 0: not running */
	int to;    /* its standard input */
	int from;  /* its standard output */
	uint64_t begun_ns;
	uint64_t start_ns; /* time from its start to its first line; 0: it has printed none */
	size_t len;
	char text[NODE_LINE_MAX]; /* read, but not taken yet */
	char line[NODE_LINE_MAX]; /* the line that was taken last, without its end */
};

/* Installs the Node peers. Returns 0, or the exit status of main() if Node, npm or ZooKeeper is
 * missing, after a sentence that says so. */
int node_absent(void);

/* Starts a program with these arguments (NULL at the end). */
void node_start(struct node *node, const char *program, const char *const *arguments);

/* Runs the engine until the program has printed a line, and returns the line. */
const char *node_line(struct node *node, struct spoke_engine *engine);

/* Sends a command and returns the line that answers it. */
__attribute__((format(printf, 3, 4))) const char *node_ask(struct node *node,
							   struct spoke_engine *engine,
							   const char *format, ...);

/* Returns a heartbeat interval in which a program of this machine, as busy as the machine is now,
 * answers: a fifth of the time that this one needed to start. */
uint64_t node_interval(const struct node *node);

/* Kills the program, if it runs. */
void node_kill(struct node *node);

#endif
