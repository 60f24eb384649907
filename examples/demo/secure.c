/* SPDX-License-Identifier: Apache-2.0 */
/* Mutual TLS of the demo: makes certificates, and finds them. */
#define _GNU_SOURCE
#include "examples/demo/secure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLE "SPOKE_DEMO_TLS"
#define NAME "dns:provider.demo" /* the registry has addresses only, so consumers know a name */
#define PATH 512

/* Runs `spoke certs`, whose lines for a settings file are not needed. */
static void become(const char *program, const char *to)
{
	if (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
		_exit(126);
	(void)execl(program, "spoke", "certs", to, "--name", NAME, "--days", "1", (char *)NULL);
	_exit(127);
}

bool secure_make(const char *programs, const char *folder)
{
	char program[PATH];
	char to[PATH];
	int status = -1;
	pid_t pid;

	(void)snprintf(program, sizeof(program), "%.400s/spoke/spoke", programs);
	(void)snprintf(to, sizeof(to), "%.400s/tls", folder);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		become(program, to);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status == 0)
		return setenv(VARIABLE, to, 1) == 0;
	(void)fprintf(stderr, "demo: --tls: %s certs %s failed; run it to see why\n", program, to);
	return false;
}

const struct spoke_tls_options *secure_options(bool provides)
{
	static char ca[PATH];
	static char cert[PATH];
	static char key[PATH];
	static struct spoke_tls_options options = { .ca = ca, .cert = cert, .key = key };
	const char *folder = getenv(VARIABLE);
	const char *name = provides ? "provider" : "consumer";

	if (folder == NULL)
		return NULL;
	(void)snprintf(ca, sizeof(ca), "%.400s/ca.pem", folder);
	(void)snprintf(cert, sizeof(cert), "%.400s/%s.pem", folder, name);
	(void)snprintf(key, sizeof(key), "%.400s/%s.key", folder, name);
	options.peers = provides ? NULL : NAME;
	return &options;
}
