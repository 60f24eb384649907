/* SPDX-License-Identifier: Apache-2.0 */
/* The provider, a process of its own. */
#include "tests/bench/tls/bench.h"
#include "tests/support/echo_handler.h"

#include <spoke/engine.h>
#include <spoke/tls.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint16_t serve_at(struct spoke_engine *engine, const struct spoke_tls_options *tls)
{
	static const struct spoke_service_options service = { .name = "demo.EchoService" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo_handler };
	struct spoke_provider_options options = { .tls = tls,
						  .connections_per_peer_max = 100000,
						  .connections_max = 100000 };
	struct spoke_provider *provider;
	char text[TEXT];

	bench_must("provider", spoke_provider_new(engine, &options, &provider));
	bench_must("service", spoke_provider_add(provider, &service, &handler, 1));
	bench_must("listen", spoke_provider_listen(provider, "dubbo://127.0.0.1:0"));
	if (spoke_provider_address(provider, 0, text, sizeof(text)) == 0)
		bench_die("the provider listens nowhere");
	return (uint16_t)strtoul(strrchr(text, ':') + 1, NULL, 10);
}

static void serve(int out)
{
	struct spoke_tls_options tls = { .cert = bench_path("provider.pem"),
					 .key = bench_path("provider.key"),
					 .handshakes_max = 65536,
					 .handshakes_per_peer_max = 65536,
					 .handshake_timeout_ns = UINT64_C(60000000000) };
	struct spoke_tls_options mutual = tls;
	struct spoke_engine *engine;

	mutual.ca = bench_path("ca.pem");
	bench_must("engine", spoke_engine_new(NULL, &engine));
	bench_ports[PORT_PLAIN] = serve_at(engine, NULL);
	bench_ports[PORT_TLS] = serve_at(engine, &tls);
	bench_ports[PORT_MUTUAL] = serve_at(engine, &mutual);
	if (write(out, bench_ports, sizeof(bench_ports)) != sizeof(bench_ports))
		bench_die("the bench_ports are not told");
	bench_must("run", spoke_engine_run(engine));
}

void bench_start(void)
{
	int pipes[2];

	if (pipe(pipes))
		bench_die("no pipe");
	bench_server = fork();
	if (bench_server == 0) {
		bench_pin(0);
		serve(pipes[1]);
		_exit(0);
	}
	if (read(pipes[0], bench_ports, sizeof(bench_ports)) != sizeof(bench_ports))
		bench_die("the provider did not start");
}

double bench_server_cpu(void)
{
	return bench_cpu_of(bench_server);
}

/* Returns its resident memory, in bytes. */
double bench_server_memory(void)
{
	char name[64];
	unsigned long pages = 0;
	FILE *file;

	(void)snprintf(name, sizeof(name), "/proc/%d/statm", (int)bench_server);
	file = fopen(name, "r");
	if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
		bench_die("no figures of the provider");
	(void)fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void bench_end_server(void)
{
	(void)kill(bench_server, SIGKILL);
	(void)waitpid(bench_server, NULL, 0);
}
