/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every error spoke reports: 0 is success, errors are negative and fixed for ever. Three ranges
 * tell where it happened: here (-1 to -99), between here and there (-100 to -199), there (-200 to
 * -299).
 */
#ifndef SPOKE_ERROR_H
#define SPOKE_ERROR_H

#include <spoke/base.h>

#include <stdbool.h>

SPOKE_BEGIN_DECLS

/* name, number, sentence */
#define SPOKE_ERRORS(X)                                                                            \
	X(EINVAL, -1, "an argument is not valid")                                                  \
	X(ENOMEM, -2, "memory could not be allocated")                                             \
	X(ESTATE, -3, "the object is in a state in which this cannot be done")                     \
	X(ETHREAD, -4, "this must not be called from this thread")                                 \
	X(EFORKED, -5, "the process was forked; make new objects in the child")                    \
	X(ECANCELED, -6, "cancelled by its owner")                                                 \
	X(ECLOSED, -7, "closed before it was done")                                                \
	X(ELIMIT, -8, "a limit of this side is reached; see the limits of the object")             \
	X(ETYPE, -9, "the value has another type than was asked for")                              \
	X(ERANGE, -10, "the value does not fit the type that was asked for")                       \
	X(ENOENT, -11, "there is no such entry")                                                   \
	X(EEXIST, -12, "there is such an entry already")                                           \
	X(ETRUNCATED, -13, "the bytes end before the value does")                                  \
	X(ETRAILING, -14, "there are bytes behind the value")                                      \
	X(ECORRUPT, -15, "the bytes are not a value")                                              \
	X(EDEPTH, -16, "the value is nested too deeply")                                           \
	X(ETOOLARGE, -17, "the value has too many items or bytes")                                 \
	X(ESYNTAX, -18, "the text does not follow its grammar")                                    \
	X(EUNSUPPORTED, -19, "this is not built in or not known here")                             \
	X(EUNAVAILABLE, -20, "no provider can take the call at the moment")                        \
	X(ENOPROVIDER, -21, "no provider of the service is known")                                 \
	X(EDEFERRED, -22, "the call failed for now and is retried in the background")              \
	X(ESYSTEM, -23, "the operating system refused")                                            \
	X(ERESOLVE, -100, "the name could not be resolved")                                        \
	X(ECONNECT, -101, "no connection could be made")                                           \
	X(ELOST, -102, "the connection was lost")                                                  \
	X(EPROTOCOL, -103, "the peer broke the protocol")                                          \
	X(ETIMEOUT_UNSENT, -104, "the deadline passed before the request was written")             \
	X(ETIMEOUT, -105, "the deadline passed while waiting for the reply")                       \
	X(ESILENT, -106, "the peer has been silent for too long")                                  \
	X(ESLOW, -107, "the peer does not read what it is sent")                                   \
	X(ESELF, -108, "the connection led to its own start")                                      \
	X(EREMOTE, -200, "the handler answered with an error")                                     \
	X(EBADREQUEST, -201, "the provider could not understand the request")                      \
	X(EBADREPLY, -202, "the reply cannot be understood")                                       \
	X(ENOSERVICE, -203, "the provider has no such service or method")                          \
	X(EREFUSED, -204, "the provider refused the call before running it")                       \
	X(EEXPIRED, -205, "the deadline had passed when the provider received the call")           \
	X(ESERVER, -206, "the provider failed")

enum spoke_error {
	SPOKE_OK = 0,
#define SPOKE_ERROR_ENUM(name, number, sentence) SPOKE_##name = (number),
	SPOKE_ERRORS(SPOKE_ERROR_ENUM)
#undef SPOKE_ERROR_ENUM
};

/* The sentence for an error, "success" for 0, "unknown error" for any other number. Never NULL. */
SPOKE_API const char *spoke_strerror(int error);

/* Its name, as "ENOMEM"; "OK" for 0; "UNKNOWN" for any other number. Never NULL. */
SPOKE_API const char *spoke_errname(int error);

/* Where it happened; false for numbers that are no errors of spoke. */
SPOKE_API bool spoke_error_is_local(int error);
SPOKE_API bool spoke_error_is_transport(int error);
SPOKE_API bool spoke_error_is_remote(int error);

SPOKE_END_DECLS

#endif
