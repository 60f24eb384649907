/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `spoke` can do: a verb is a function with a main()'s arguments, argv[0] being its name, and
 * returns the status the process ends with. Results go to stdout, everything else to stderr.
 */
#ifndef COMMAND_VERBS_H
#define COMMAND_VERBS_H

enum verb_end {
	VERB_OK = 0,
	VERB_REMOTE = 1,      /* the other side answered with an error, or something failed here */
	VERB_USAGE = 2,       /* what was asked for cannot be meant */
	VERB_TIMEOUT = 3,     /* no answer in time */
	VERB_UNREACHABLE = 4, /* nobody there to be asked */
};

int call_verb(int argc, char **argv);
int serve_verb(int argc, char **argv);
int bench_verb(int argc, char **argv);
int ping_verb(int argc, char **argv);
int top_verb(int argc, char **argv);
int ls_verb(int argc, char **argv);
int watch_verb(int argc, char **argv);
int tap_verb(int argc, char **argv);
int config_verb(int argc, char **argv);

#endif
