/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of spoke. A verb is a function with the arguments of main(); argv[0] is its name. It
 * returns the exit status. Results go to stdout, everything else to stderr.
 */
#ifndef COMMAND_VERBS_H
#define COMMAND_VERBS_H

#include <stdbool.h>

enum verb_end {
	VERB_OK = 0,
	VERB_REMOTE = 1,      /* the peer answered with an error, or a local failure */
	VERB_USAGE = 2,       /* wrong usage */
	VERB_TIMEOUT = 3,     /* timeout */
	VERB_UNREACHABLE = 4, /* no connection */
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
int config_verb(int argc, char **argv);

#endif
