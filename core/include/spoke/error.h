/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors of spoke. 0 is success; errors are negative numbers that never change. Their range
 * tells where the failure happened: in this process (-1 to -99), in the transport (-100 to -199) or
 * at the remote side (-200 to -299).
 */
#ifndef SPOKE_ERROR_H
#define SPOKE_ERROR_H

#include <spoke/base.h>

#include <stdbool.h>

SPOKE_BEGIN_DECLS

/* The table of errors: X(name, number, sentence) for each. */
#define SPOKE_ERRORS(X)                                                                            \
	X(EINVAL, -1, "an argument is not valid")                                                  \
	X(ENOMEM, -2, "memory could not be allocated")                                             \
	X(ESTATE, -3, "the object is in a state that does not allow this")                         \
	X(ETHREAD, -4,                                                                             \
	  "this function must not be called on this thread; use spoke_engine_post() or a future")  \
	X(EFORKED, -5, "the process was forked; create new objects in the child")                  \
	X(ECANCELED, -6, "cancelled by its owner")                                                 \
	X(ECLOSED, -7, "closed before it finished")                                                \
	X(ELIMIT, -8, "a local limit is reached; see the options of the object")                   \
	X(ETYPE, -9, "the value does not have the requested type")                                 \
	X(ERANGE, -10, "the value does not fit the requested type")                                \
	X(ENOENT, -11, "there is no such entry")                                                   \
	X(EEXIST, -12, "the entry exists already")                                                 \
	X(ETRUNCATED, -13, "the bytes end before the value does")                                  \
	X(ETRAILING, -14, "bytes follow the end of the value")                                     \
	X(ECORRUPT, -15, "the bytes are not a valid value")                                        \
	X(EDEPTH, -16, "the value is nested too deeply")                                           \
	X(ETOOLARGE, -17, "too large: more values than values.max, or more bytes than frame.max")  \
	X(ESYNTAX, -18, "the text has a syntax error")                                             \
	X(EUNSUPPORTED, -19, "not built in, or not supported here")                                \
	X(EUNAVAILABLE, -20, "no provider can take the call at the moment")                        \
	X(ENOPROVIDER, -21, "no provider of the service is known")                                 \
	X(EDEFERRED, -22, "the call failed for now and is retried in the background")              \
	X(ESYSTEM, -23, "the operating system reported an error")                                  \
	X(ECYCLE, -24, "the body contains a cycle of references; values.cycles allows cycles")     \
	X(EBUSY, -25, "another holder has the lease")                                              \
	X(ELEASE, -26, "the lease is over")                                                        \
	X(ESTORE, -27, "the store of the leases refused the command")                              \
	X(ERESOLVE, -100, "the name could not be resolved")                                        \
	X(ECONNECT, -101, "the connection could not be established")                               \
	X(ELOST, -102, "the connection was lost")                                                  \
	X(EPROTOCOL, -103, "the peer violated the protocol")                                       \
	X(ETIMEOUT_UNSENT, -104, "the deadline passed before the request was written")             \
	X(ETIMEOUT, -105, "the deadline passed while waiting for the reply")                       \
	X(ESILENT, -106, "the peer has been silent for too long")                                  \
	X(ESLOW, -107, "the peer does not read the data sent to it")                               \
	X(ESELF, -108, "the socket connected to itself")                                           \
	X(EHANDSHAKE, -109, "the handshake of the connection failed")                              \
	X(EREMOTE, -200, "the handler returned an error")                                          \
	X(EBADREQUEST, -201, "the provider could not decode the request")                          \
	X(EBADREPLY, -202, "the reply could not be decoded")                                       \
	X(ENOSERVICE, -203, "the provider has no such service or method")                          \
	X(EREFUSED, -204, "the provider refused the call before running it")                       \
	X(EEXPIRED, -205, "the deadline had passed when the provider received the call")           \
	X(ESERVER, -206, "the provider failed internally")                                         \
	X(EFORBIDDEN, -207, "the provider does not let this caller in")

/* The errors as constants: SPOKE_EINVAL and so on. */
enum spoke_error {
	SPOKE_OK = 0,
#define SPOKE_ERROR_ENUM(name, number, sentence) SPOKE_##name = (number),
	SPOKE_ERRORS(SPOKE_ERROR_ENUM)
#undef SPOKE_ERROR_ENUM
};

/* The code that comes with EFORBIDDEN; the numbers are those of Dubbo's RpcException. */
enum spoke_forbidden {
	SPOKE_FORBIDDEN_CALLER = 4,    /* the caller is known, and may not do this */
	SPOKE_FORBIDDEN_UNPROVEN = 13, /* the caller has shown no credentials, or bad ones */
};

/* The code of an exception, of class java.lang.IllegalStateException, with which a provider refuses
 * a repeat because it cannot tell whether the request has run before: see REPEATS.md. */
#define SPOKE_REPEAT_UNKNOWN 5409

/* Returns the sentence of an error, "success" for 0 and "unknown error" for other numbers. Never
 * returns NULL. */
SPOKE_API const char *spoke_strerror(int error);

/* Returns the name of an error, e.g. "ENOMEM"; "OK" for 0, "UNKNOWN" for other numbers. Never
 * returns NULL. */
SPOKE_API const char *spoke_errname(int error);

/* Exit statuses of a program that ends with an error, as the command `spoke` does. */
enum spoke_exit {
	SPOKE_EXIT_OK = 0,
	SPOKE_EXIT_FAILED = 1,      /* the peer answered with an error, or a local failure */
	SPOKE_EXIT_USAGE = 2,       /* wrong usage */
	SPOKE_EXIT_TIMEOUT = 3,     /* a deadline passed */
	SPOKE_EXIT_UNREACHABLE = 4, /* no connection */
};

/* Returns the exit status (enum spoke_exit) for an error; SPOKE_EXIT_FAILED for numbers that are
 * not errors of spoke. */
SPOKE_API int spoke_error_exit(int error);

/* Tell where an error happened: in this process, in the transport or at the remote side. All return
 * false for numbers that are not errors of spoke. */
SPOKE_API bool spoke_error_is_local(int error);
SPOKE_API bool spoke_error_is_transport(int error);
SPOKE_API bool spoke_error_is_remote(int error);

SPOKE_END_DECLS

#endif
