/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of spoke. A verb is a function with the arguments of main(); argv[0] is its name. It
 * returns the exit status, by default that of spoke_error_exit(). Results go to stdout, everything
 * else to stderr.
 */
#ifndef COMMAND_VERBS_H
#define COMMAND_VERBS_H

#include <spoke/error.h>

#include <stdbool.h>

enum verb_end {
	VERB_OK = SPOKE_EXIT_OK,
	VERB_REMOTE = SPOKE_EXIT_FAILED,
	VERB_USAGE = SPOKE_EXIT_USAGE,
	VERB_TIMEOUT = SPOKE_EXIT_TIMEOUT,
	VERB_UNREACHABLE = SPOKE_EXIT_UNREACHABLE,
};

/* SIGPIPE was ignored when the program began; now it always is. */
extern bool verbs_pipe_ignored;

int call_verb(int argc, char **argv);
int serve_verb(int argc, char **argv);
int bench_verb(int argc, char **argv);
int ping_verb(int argc, char **argv);
int top_verb(int argc, char **argv);
int ls_verb(int argc, char **argv);
int watch_verb(int argc, char **argv);
int tap_verb(int argc, char **argv);
int lock_verb(int argc, char **argv);
int comet_verb(int argc, char **argv);
int certs_verb(int argc, char **argv);
int offline_verb(int argc, char **argv);
int online_verb(int argc, char **argv);
int journal_verb(int argc, char **argv);
int config_verb(int argc, char **argv);

#endif
