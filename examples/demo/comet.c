/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo of pushes to browsers: opens the shop of examples/comet, lets users come, sleep and
 * freeze, kills the gateway, and checks that every user got every offer once or was told of a loss.
 *
 *     demo_comet --comet [--users COUNT] [--live] [--plain]
 *
 * Exit status: 0: it adds up; 1: it does not; 2: the demo could not run.
 */
#define _GNU_SOURCE
#include "examples/demo/browsers.h"
#include "examples/demo/story.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define PATIENCE_NS (60 * SECOND)
#define RETRY_MAX "1000" /* ms; the longest pause of a browser */
#define KEPT 256u        /* messages to all that a gateway keeps */
#define USERS 40u

static struct {
	struct browsers browsers;
	const char *shop; /* the program */
	char page[512];
	char at[64];  /* of the gateway: for pages */
	char rpc[64]; /* ... and for pushes */
	pid_t pid;    /* 0: not running */
	unsigned offers;
	volatile sig_atomic_t interrupted;
} demo;

static bool trouble(const char *what)
{
	story_show(true);
	if (!demo.interrupted)
		(void)fprintf(stderr, "demo: %s\n", what);
	return false;
}

static void interrupt(int number)
{
	demo.interrupted = number;
}

/* --- the gateway */

static void become(int to, pid_t driver)
{
	static char max[] = RETRY_MAX;
	char at[sizeof(demo.at)];
	char url[sizeof(demo.rpc) + 8];
	char program[512];
	char *argv[] = { program, demo.page, at, url, max, NULL };

	(void)setpgid(0, 0); /* Ctrl-C at the terminal signals only the driver */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != driver)
		_exit(126);
	(void)snprintf(program, sizeof(program), "%s", demo.shop);
	(void)snprintf(at, sizeof(at), "%s", *demo.at ? demo.at : "127.0.0.1:0");
	(void)snprintf(url, sizeof(url), "tcp://%s", *demo.rpc ? demo.rpc : "127.0.0.1:0");
	(void)dup2(to, STDOUT_FILENO);
	(void)execv(program, argv);
	_exit(127);
}

/* Starts the shop, again at the same addresses. */
static bool open_shop(void)
{
	pid_t driver = getpid();
	char line[256];
	int ends[2];
	FILE *out;

	if (pipe2(ends, O_CLOEXEC))
		return trouble("cannot create a pipe");
	(void)fflush(stdout);
	demo.pid = fork();
	if (demo.pid == 0)
		become(ends[1], driver);
	(void)close(ends[1]);
	out = fdopen(ends[0], "r");
	if (demo.pid < 0 || out == NULL)
		return trouble("cannot start the shop");
	while (fgets(line, sizeof(line), out)) {
		bool last = sscanf(line, "spoke.Comet listens at %63[0-9.:]", demo.rpc) == 1;

		(void)sscanf(line, "the shop is at http://%63[0-9.:]", demo.at);
		if (last)
			break;
	}
	if (feof(out) || !*demo.at || !*demo.rpc) {
		(void)fclose(out);
		return trouble("the shop does not open");
	}
	(void)fclose(out); /* it prints nothing more */
	return true;
}

static void kill_shop(int signal)
{
	if (demo.pid <= 0)
		return;
	(void)kill(demo.pid, signal);
	(void)waitpid(demo.pid, NULL, 0);
	demo.pid = 0;
}

/* Calls a method of spoke.Comet by HTTP, and returns a number of its answer; -1: no answer. */
static long call(const char *method, const char *json, const char *wanted)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	const struct timeval patience = { .tv_sec = 10 };
	char text[2048];
	const char *found;
	size_t len = 0;
	ssize_t got = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons((uint16_t)strtoul(strrchr(demo.rpc, ':') + 1, NULL, 10));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	len = (size_t)snprintf(text, sizeof(text),
			       "POST /spoke.Comet/%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n"
			       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			       method, demo.rpc, strlen(json), json);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) != 0 ||
	    send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
		got = 0;
	for (len = 0; got > 0 && len < sizeof(text) - 1; len += (size_t)got)
		if ((got = recv(fd, text + len, sizeof(text) - 1 - len, 0)) <= 0)
			break;
	(void)close(fd);
	text[len] = '\0';
	found = strncmp(text, "HTTP/1.1 200 ", 13) == 0 ? strstr(text, wanted) : NULL;
	return found ? strtol(found + strlen(wanted), NULL, 10) : -1;
}

/* Announces the next `count` offers to all. */
static bool announce(unsigned count)
{
	char json[64];

	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(json, sizeof(json), "[\"offer\",\"%u\"]", ++demo.offers);
		if (call("push_all", json, "\"connections\":") < 0)
			return trouble("an offer cannot be pushed");
		browsers_step(&demo.browsers);
	}
	return true;
}

/* --- waiting */

static bool await(unsigned (*count)(unsigned arg), unsigned arg, unsigned wanted, const char *what)
{
	uint64_t end_ns = story_now() + PATIENCE_NS;

	while (count(arg) < wanted) {
		browsers_step(&demo.browsers);
		if (demo.interrupted || story_now() > end_ns)
			return trouble(what);
	}
	return true;
}

static unsigned up(unsigned arg)
{
	(void)arg;
	return browsers_up(&demo.browsers);
}

static unsigned done(unsigned number)
{
	return browsers_done(&demo.browsers, number);
}

static bool await_up(unsigned wanted)
{
	return await(up, 0, wanted, "not all users are connected");
}

static bool await_offers(unsigned wanted)
{
	return await(done, demo.offers, wanted, "not all users have the last offer");
}

/* --- the acts */

static bool users_come(unsigned count)
{
	long online;

	story_head("Users come");
	story_did("starts the shop: http://%s/", demo.at);
	if (!await_up(count))
		return false;
	online = call("who", "[]", "\"online\":");
	story_print("%u browsers are connected; the gateway counts %ld.", count, online);
	if (online != (long)count)
		return trouble("the gateway counts other users");
	story_did("announces 20 offers by spoke.Comet.push_all");
	if (!announce(20) || !await_offers(count))
		return false;
	story_print("All have all.");
	return true;
}

static bool tabs_sleep(unsigned count)
{
	struct browser *naps = &demo.browsers.all[0];
	struct browser *sleeps = &demo.browsers.all[1];
	struct browser *frozen = &demo.browsers.all[2];

	story_head("Tabs sleep");
	story_did("lets the tabs of u1 and u2 sleep, and freezes that of u3; announces 10 offers");
	browsers_sleep(naps);
	browsers_sleep(sleeps);
	frozen->frozen = true;
	if (!announce(10) || !await_offers(count - 3))
		return false;
	browsers_wake(naps);
	if (!await_up(count - 1) || !await_offers(count - 2))
		return false;
	story_print("u1 is back with its last id, and has got the 10 offers that it missed.");
	story_did("announces %u offers, more than the gateway keeps", KEPT + 20);
	if (!announce(KEPT + 20) || !await_offers(count - 2))
		return false;
	frozen->frozen = false;
	browsers_wake(sleeps);
	if (!await_up(count) || !announce(1) || !await_offers(count))
		return false;
	story_print("u2 is back, and was told that offers are lost: %u of them. u3 has %s.",
		    sleeps->missed, frozen->missed ? "lost some, too" : "read everything");
	return true;
}

static bool shop_dies(unsigned count)
{
	uint64_t from_ns;
	uint64_t worst_ns = 0;
	unsigned late = 0;

	story_head("The gateway is killed");
	story_did("kills the gateway; it cannot tell its users anything");
	kill_shop(SIGKILL);
	while (browsers_up(&demo.browsers) > 0 && !demo.interrupted)
		browsers_step(&demo.browsers);
	if (!open_shop())
		return false;
	story_did("starts it again, at the same address");
	browsers_mark(&demo.browsers);
	from_ns = story_now();
	if (!await_up(count))
		return false;
	for (unsigned i = 0; i < count; i++) {
		const struct browser *browser = &demo.browsers.all[i];

		late += browser->attempts != 1;
		if (browser->up_ns - from_ns > worst_ns)
			worst_ns = browser->up_ns - from_ns;
	}
	story_print("All are back; the last one after %u ms, of at most %s ms that were promised.",
		    (unsigned)(worst_ns / 1000000), RETRY_MAX);
	if (late > 0)
		return trouble("a browser needed more than one attempt");
	if (!announce(20) || !await_offers(count))
		return false;
	story_print("They were told that messages may be lost, and have the next 20 offers.");
	return true;
}

/* --- the end */

static bool sums(unsigned count)
{
	struct browser sum = { .got = 0 };
	unsigned wrong = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct browser *browser = &demo.browsers.all[i];

		sum.got += browser->got;
		sum.missed += browser->missed;
		sum.untold += browser->untold;
		sum.doubled += browser->doubled;
		sum.lost += browser->lost;
		wrong += browser->got + browser->missed != demo.offers;
	}
	story_head("Counts of all browsers:");
	story_print("  %-20s %10u  announced to each of %u users", "offers", demo.offers, count);
	story_print("  %-20s %10u  got once", "got", sum.got);
	story_print("  %-20s %10u  not got, and the browser was told", "lost", sum.missed);
	story_print("  %-20s %10u  not got without a word: must be 0", "missed", sum.untold);
	story_print("  %-20s %10u  got twice: must be 0", "doubled", sum.doubled);
	story_print("  %-20s %10u  each user after the kill, and the one that slept too long",
		    "told \"lost\"", sum.lost);
	if (wrong || sum.untold || sum.doubled || sum.lost < count)
		return trouble("it does not add up");
	story_print("It adds up: every user got every offer once, or was told of the loss.");
	return true;
}

static void stay_open(void)
{
	story_print("Open http://%s/ and announce: spoke call tcp://%s spoke.Comet.push_all "
		    "'\"offer\"' '\"Green tea\"'",
		    demo.at, demo.rpc);
	story_print("The shop runs on until Ctrl-C.");
	while (!demo.interrupted)
		browsers_step(&demo.browsers);
}

/* Finds the shop beside this program, and its page in the source tree. */
static void find(const char *program)
{
	static char shop[512];
	const char *slash = strrchr(program, '/');

	(void)snprintf(shop, sizeof(shop), "%.*s/comet_shop", slash ? (int)(slash - program) : 1,
		       slash ? program : ".");
	demo.shop = shop;
	(void)snprintf(demo.page, sizeof(demo.page), "examples/comet/shop.html");
}

static bool read_options(int argc, char **argv, unsigned *users, bool *live, bool *plain)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--plain") == 0)
			*plain = true;
		else if (strcmp(argv[i], "--live") == 0)
			*live = true;
		else if (strcmp(argv[i], "--users") == 0 && i + 1 < argc)
			*users = (unsigned)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--comet") != 0)
			return false;
	}
	return *users >= 4 && *users <= BROWSERS_MAX;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = interrupt };
	unsigned users = USERS;
	bool live = false;
	bool plain = false;
	bool well;

	if (!read_options(argc, argv, &users, &live, &plain)) {
		(void)fprintf(stderr,
			      "usage: demo_comet --comet [--users 4..%u] [--live] [--plain]\n",
			      BROWSERS_MAX);
		return 2;
	}
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	story_begin(plain);
	find(argv[0]);
	if (!open_shop() || !browsers_begin(&demo.browsers, users, demo.at)) {
		kill_shop(SIGKILL);
		return 2;
	}
	well = users_come(users) && tabs_sleep(users) && shop_dies(users);
	well = sums(users) && well;
	if (well && live)
		stay_open();
	browsers_end(&demo.browsers);
	kill_shop(SIGKILL);
	if (demo.interrupted && !live)
		return 2;
	return well ? 0 : 1;
}
