/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error table as functions. A duplicate number does not compile (two equal cases of one
 * switch), and neither does a number outside the three ranges. Stateless; any thread.
 */
#include "core/base/error.h"

/* Both ends of each range, which are permanent; unused numbers between them may be assigned later.
 */
enum {
	LOCAL_FIRST = -1,
	LOCAL_LAST = -99,
	TRANSPORT_FIRST = -100,
	TRANSPORT_LAST = -199,
	REMOTE_FIRST = -200,
	REMOTE_LAST = -299,
};

#define ASSERT_RANGE(name, number, sentence)                                                       \
	_Static_assert((number) <= LOCAL_FIRST && (number) >= REMOTE_LAST,                         \
		       "SPOKE_" #name " lies in none of the ranges");
SPOKE_ERRORS(ASSERT_RANGE)
#undef ASSERT_RANGE

_Static_assert(TRANSPORT_FIRST == LOCAL_LAST - 1 && REMOTE_FIRST == TRANSPORT_LAST - 1,
	       "the ranges leave no gap between them");

/* --- rows */

/* clang-format off */
/* The columns are the members of struct spokei_error:
 * name              status of      may  passes                    replaced  log      texts counter         exit
 *                   Dubbo HTTP thr run  later fate     blame      by        class    say it                status */
#define ERROR_ROWS(X) \
	X(EINVAL,          80,  500, 400, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    yes, FAILED,         USAGE)         \
	X(ENOMEM,          80,  500, 500, yes, no,  WRITTEN,  NONE,    FALLBACK, SYSTEM,  no,  FAILED,         FAILED)        \
	X(ESTATE,          80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         FAILED)        \
	X(ETHREAD,         80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         FAILED)        \
	X(EFORKED,         80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         FAILED)        \
	X(ECANCELED,       80,  500, 500, yes, no,  ANSWERED, NONE,    NOTHING,  CALL,    no,  CANCELED,       FAILED)        \
	X(ECLOSED,         80,  500, 503, yes, yes, ANSWERED, ANSWER,  NOTHING,  CALL,    no,  CLOSED,         FAILED)        \
	X(ELIMIT,          80,  500, 503, yes, yes, WRITTEN,  NONE,    FALLBACK, LIMIT,   yes, FAILED,         FAILED)        \
	X(ETYPE,           80,  500, 400, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         USAGE)         \
	X(ERANGE,          80,  500, 400, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    yes, FAILED,         USAGE)         \
	X(ENOENT,          80,  500, 400, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    yes, FAILED,         FAILED)        \
	X(EEXIST,          80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         FAILED)        \
	X(ETRUNCATED,      80,  500, 400, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         FAILED)        \
	X(ETRAILING,       80,  500, 400, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         FAILED)        \
	X(ECORRUPT,        80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         FAILED)        \
	X(EDEPTH,          80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         USAGE)         \
	X(ETOOLARGE,       25,  500, 413, yes, no,  ANSWERED, ANSWER,  FALLBACK, LIMIT,   no,  FAILED,         USAGE)         \
	X(ESYNTAX,         80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    yes, FAILED,         USAGE)         \
	X(EUNSUPPORTED,    80,  405, 500, no,  no,  WRITTEN,  NONE,    FALLBACK, CALL,    yes, FAILED,         USAGE)         \
	X(EUNAVAILABLE,    80,  500, 500, yes, no,  WRITTEN,  NONE,    FALLBACK, CALL,    yes, FAILED,         UNREACHABLE)   \
	X(ENOPROVIDER,     80,  500, 500, yes, no,  WRITTEN,  NONE,    FALLBACK, CALL,    yes, FAILED,         UNREACHABLE)   \
	X(EDEFERRED,       80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  DEFERRED,       FAILED)        \
	X(ESYSTEM,         80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, SYSTEM,  yes, FAILED,         FAILED)        \
	X(ECYCLE,          80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         FAILED)        \
	X(EBUSY,           80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         FAILED)        \
	X(ELEASE,          80,  500, 500, yes, no,  ANSWERED, NONE,    NOTHING,  CALL,    no,  FAILED,         FAILED)        \
	X(ESTORE,          80,  500, 500, yes, no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  FAILED,         FAILED)        \
	X(ERESOLVE,        80,  500, 500, yes, no,  WRITTEN,  LOSS,    FALLBACK, CONNECT, no,  LOST,           UNREACHABLE)   \
	X(ECONNECT,        80,  500, 500, yes, no,  WRITTEN,  LOSS,    FALLBACK, CONNECT, no,  LOST,           UNREACHABLE)   \
	X(ELOST,           80,  500, 500, yes, no,  WRITTEN,  LOSS,    FALLBACK, CONNECT, no,  LOST,           UNREACHABLE)   \
	X(EPROTOCOL,       80,  500, 500, yes, no,  WRITTEN,  LOSS,    FALLBACK, PEER,    no,  LOST,           UNREACHABLE)   \
	X(ETIMEOUT_UNSENT, 80,  500, 500, yes, no,  WRITTEN,  FAILURE, FALLBACK, CALL,    no,  TIMEOUT_UNSENT, TIMEOUT)       \
	X(ETIMEOUT,        80,  504, 500, yes, no,  WRITTEN,  FAILURE, FALLBACK, CALL,    no,  TIMEOUT,        TIMEOUT)       \
	X(ESILENT,         80,  500, 500, yes, no,  WRITTEN,  LOSS,    FALLBACK, CONNECT, no,  LOST,           UNREACHABLE)   \
	X(ESLOW,           80,  500, 500, yes, no,  WRITTEN,  LOSS,    FALLBACK, LIMIT,   no,  LOST,           UNREACHABLE)   \
	X(ESELF,           80,  500, 500, yes, no,  WRITTEN,  LOSS,    FALLBACK, CONNECT, no,  LOST,           UNREACHABLE)   \
	X(EHANDSHAKE,      80,  500, 500, yes, no,  WRITTEN,  LOSS,    FALLBACK, AUTH,    yes, LOST,           UNREACHABLE)   \
	X(EREMOTE,         20,  500, 500, yes, no,  ANSWERED, ANSWER,  POLICY,   CALL,    no,  REMOTE,         FAILED)        \
	X(EBADREQUEST,     40,  400, 500, no,  no,  ANSWERED, ANSWER,  FALLBACK, CALL,    no,  REMOTE,         FAILED)        \
	X(EBADREPLY,       50,  500, 500, yes, no,  WRITTEN,  FAILURE, FALLBACK, CALL,    no,  REMOTE,         FAILED)        \
	X(ENOSERVICE,      60,  404, 500, no,  no,  SAFE,     FAILURE, FALLBACK, CALL,    no,  REMOTE,         FAILED)        \
	X(EREFUSED,        100, 503, 500, no,  yes, SAFE,     REFUSAL, FALLBACK, CALL,    no,  REMOTE,         FAILED)        \
	X(EEXPIRED,        31,  504, 500, no,  no,  SAFE,     FAILURE, FALLBACK, CALL,    no,  REMOTE,         TIMEOUT)       \
	X(ESERVER,         80,  500, 500, yes, no,  WRITTEN,  FAILURE, FALLBACK, CALL,    no,  REMOTE,         FAILED)        \
	X(EFORBIDDEN,      20,  403, 500, no,  no,  ANSWERED, ANSWER,  FALLBACK, AUTH,    yes, REMOTE,         FAILED)
/* clang-format on */

#define yes true
#define no false
#define MAKE_ROW(status, http, thrown, run, later, fate, blame, replaced, log, text, counter,      \
		 exit)                                                                             \
	{                                                                                          \
		status, http, thrown, run, later, SPOKEI_FATE_##fate, SPOKEI_BLAME_##blame,        \
			SPOKEI_REPLACED_BY_##replaced, SPOKEI_LOG_##log, text,                     \
			SPOKE_STAT_CALLS_##counter, SPOKE_EXIT_##exit,                             \
	}
#define NAME_ROW(name, ...) ROW_##name,
#define ADD_ROW(name, ...) [ROW_##name] = MAKE_ROW(__VA_ARGS__),
#define ADD_TEXTS(name, number, sentence) [ROW_##name] = { #name, sentence },
#define FIND_ROW(name, number, sentence)                                                           \
	case number:                                                                               \
		return ROW_##name;

enum {
	ROW_UNKNOWN,
	ROW_OK,
	ERROR_ROWS(NAME_ROW)
};

/* clang-format off */
static const struct spokei_error rows[] = {
	[ROW_UNKNOWN] = MAKE_ROW(80, 500, 500, yes, no, WRITTEN, FAILURE, FALLBACK, CALL, no, FAILED, FAILED),
	[ROW_OK] = MAKE_ROW(20, 200, 500, yes, no, ANSWERED, ANSWER, NOTHING, CALL, no, OK, OK),
	ERROR_ROWS(ADD_ROW)
};
/* clang-format on */

static const struct {
	const char *name;
	const char *sentence;
} texts[] = { [ROW_UNKNOWN] = { "UNKNOWN", "unknown error" },
	      [ROW_OK] = { "OK", "success" },
	      SPOKE_ERRORS(ADD_TEXTS) };

_Static_assert(sizeof(rows) / sizeof(rows[0]) == sizeof(texts) / sizeof(texts[0]),
	       "a row of no error");

/* An error without a row does not compile here. */
static int row_of(int error)
{
	switch (error) {
	case SPOKE_OK:
		return ROW_OK;
		SPOKE_ERRORS(FIND_ROW)
	default:
		return ROW_UNKNOWN;
	}
}

const struct spokei_error *spokei_error_of(int error)
{
	return &rows[row_of(error)];
}

/* --- the public functions */

const char *spoke_strerror(int error)
{
	return texts[row_of(error)].sentence;
}

int spoke_error_exit(int error)
{
	return spokei_error_of(error)->exit;
}

const char *spoke_errname(int error)
{
	return texts[row_of(error)].name;
}

static bool is_within(int error, int first, int last)
{
	return error <= first && error >= last && row_of(error) != ROW_UNKNOWN;
}

bool spoke_error_is_local(int error)
{
	return is_within(error, LOCAL_FIRST, LOCAL_LAST);
}

bool spoke_error_is_transport(int error)
{
	return is_within(error, TRANSPORT_FIRST, TRANSPORT_LAST);
}

bool spoke_error_is_remote(int error)
{
	return is_within(error, REMOTE_FIRST, REMOTE_LAST);
}
