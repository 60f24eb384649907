/* SPDX-License-Identifier: Apache-2.0 */
/* Starts Neovim in a temporary directory, waits for it and ends it. */
#include "tests/interop/nvim.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16
#define VARIABLES_MAX 16
#define LOOK_NS (5 * MS) /* interval at which a waiting test checks its condition */

/* --- is Neovim installed? */

static bool is_in_path(void)
{
	const char *path = getenv("PATH"); // NOLINT(concurrency-mt-unsafe): there is one thread
	char file[512];

	while (path && *path) {
		size_t len = strcspn(path, ":");

		(void)snprintf(file, sizeof(file), "%.*s/nvim", (int)len, path);
		if (access(file, X_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static bool is_debian(void)
{
	FILE *file = fopen("/etc/os-release", "re");
	char line[256];
	bool found = false;

	if (file == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = strcmp(line, "ID=debian\n") == 0;
	(void)fclose(file);
	return found;
}

int nvim_absent(void)
{
	bool is_ours = geteuid() == 0 && is_debian();

	if (is_in_path())
		return 0;
	(void)fprintf(stderr, "%s: no nvim found; sh tests/run.sh installs it on Debian\n",
		      is_ours ? "failed" : "skipped");
	return is_ours ? 1 : NVIM_SKIPPED;
}

/* --- its folder */

void nvim_open(struct nvim *nvim)
{
	*nvim = (struct nvim){ .folder = "/tmp/spoke-nvim-XXXXXX" };
	if (mkdtemp(nvim->folder) == NULL) {
		nvim->folder[0] = '\0';
		fail_msg("no folder in /tmp: errno %d", errno);
	}
}

void nvim_path(const struct nvim *nvim, const char *name, char path[NVIM_PATH_MAX])
{
	int len = snprintf(path, NVIM_PATH_MAX, "%s/%s", nvim->folder, name);

	assert_in_range(len, 1, NVIM_PATH_MAX - 1);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
	(void)about;
	(void)kind;
	(void)place;
	return remove(path);
}

void nvim_close(struct nvim *nvim)
{
	if (nvim->pid > 0) {
		(void)kill(nvim->pid, SIGKILL);
		(void)waitpid(nvim->pid, &nvim->status, 0);
		nvim->pid = 0;
	}
	if (nvim->folder[0])
		(void)nftw(nvim->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	nvim->folder[0] = '\0';
}

void nvim_read(const struct nvim *nvim, const char *name, char *text, size_t size)
{
	char path[NVIM_PATH_MAX];
	FILE *file;
	size_t len;

	nvim_path(nvim, name, path);
	file = fopen(path, "re");
	if (file == NULL)
		fail_msg("there is no %s", path);
	len = fread(text, 1, size, file);
	(void)fclose(file);
	assert_true(len < size);
	text[len] = '\0';
}

void nvim_write(const struct nvim *nvim, const char *name, const char *text)
{
	char path[NVIM_PATH_MAX];
	FILE *file;

	nvim_path(nvim, name, path);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
}

/* --- its process */

struct setting {
	char *arguments[ARGUMENTS_MAX];
	char *variables[VARIABLES_MAX];
	char texts[VARIABLES_MAX][160];
	char output[NVIM_PATH_MAX];
};

static size_t put_all(char **list, size_t at, size_t max, const char *const *more)
{
	for (; *more; more++) {
		assert_true(at + 1 < max);
		list[at++] = (char *)(uintptr_t)*more; /* exec*() does not change its arguments */
	}
	list[at] = NULL;
	return at;
}

/* Redirects all files that Neovim would write to the user's directories to a temporary one. */
static void prepare(const struct nvim *nvim, struct setting *setting, const char *const *arguments,
		    const char *const *environment)
{
	static const char *const first[] = { "nvim", "--clean", "--headless", "-u", "NONE",
					     "-i",   "NONE",    "-n",         NULL };
	static const char *const folders[] = {
		"HOME",           "TMPDIR",         "XDG_CONFIG_HOME", "XDG_DATA_HOME",
		"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"
	};
	const char *path = getenv("PATH"); // NOLINT(concurrency-mt-unsafe): there is one thread
	size_t count = put_all(setting->arguments, 0, ARGUMENTS_MAX, first);
	size_t at = put_all(setting->variables, 0, VARIABLES_MAX, environment);
	static char path_text[4096];

	(void)put_all(setting->arguments, count, ARGUMENTS_MAX, arguments);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		assert_true(at + 3 < VARIABLES_MAX);
		(void)snprintf(setting->texts[i], sizeof(setting->texts[i]), "%s=%s", folders[i],
			       nvim->folder);
		setting->variables[at++] = setting->texts[i];
	}
	(void)snprintf(path_text, sizeof(path_text), "PATH=%s", path ? path : "");
	setting->variables[at++] = path_text;
	setting->variables[at++] = (char *)(uintptr_t) "LC_ALL=C.UTF-8";
	setting->variables[at] = NULL;
	nvim_path(nvim, "output", setting->output);
}

static void become(const struct setting *setting, pid_t parent)
{
	int in = open("/dev/null", O_RDONLY);
	int out = open(setting->output, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	/* Kills Neovim when the test program ends, even by a crash. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || in < 0 || out < 0 ||
	    dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(126);
	(void)execvpe(setting->arguments[0], setting->arguments, setting->variables);
	_exit(127);
}

void nvim_start(struct nvim *nvim, const char *const *arguments, const char *const *environment)
{
	struct setting setting = { 0 };
	pid_t parent = getpid();

	assert_int_equal(nvim->pid, 0);
	prepare(nvim, &setting, arguments, environment);
	nvim->pid = fork();
	if (nvim->pid == 0)
		become(&setting, parent);
	assert_true(nvim->pid > 0);
}

bool nvim_ended(struct nvim *nvim)
{
	if (nvim->pid > 0 && waitpid(nvim->pid, &nvim->status, WNOHANG) == nvim->pid)
		nvim->pid = 0;
	return nvim->pid == 0;
}

void nvim_signal(const struct nvim *nvim, int signal)
{
	assert_true(nvim->pid > 0);
	assert_int_equal(kill(nvim->pid, signal), 0);
}

/* --- waiting */

struct patience {
	struct spoke_alarm look;
	struct spoke_alarm end;
	bool is_over;
};

static void look_again(struct spoke_alarm *alarm)
{
	(void)alarm;
}

static void patience_ends(struct spoke_alarm *alarm)
{
	struct patience *patience = spoke_container_of(alarm, struct patience, end);

	patience->is_over = true;
}

void nvim_until(struct spoke_engine *engine, bool (*is_so)(void *arg), void *arg)
{
	struct patience patience = { 0 };
	bool is = is_so(arg);

	assert_int_equal(spoke_alarm_every(engine, &patience.look, LOOK_NS, look_again), 0);
	assert_int_equal(spoke_alarm_after(engine, &patience.end, NVIM_PATIENCE_NS, patience_ends),
			 0);
	while (!is && !patience.is_over) {
		if (spoke_engine_turn(engine, true))
			break;
		is = is_so(arg);
	}
	spoke_alarm_cancel(&patience.look);
	spoke_alarm_cancel(&patience.end);
	if (!is)
		fail_msg("what was waited for never came");
}

static bool has_ended(void *arg)
{
	return nvim_ended(arg);
}

void nvim_until_ended(struct spoke_engine *engine, struct nvim *nvim)
{
	nvim_until(engine, has_ended, nvim);
}
