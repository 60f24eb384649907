/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error table as functions. A duplicate number does not compile (two equal cases of one
 * switch), and neither does a number outside the three ranges. Stateless; any thread.
 */
#include <spoke/error.h>

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

const char *spoke_strerror(int error)
{
#define RETURN_SENTENCE(name, number, sentence)                                                    \
	case number:                                                                               \
		return sentence;

	switch (error) {
	case SPOKE_OK:
		return "success";
		SPOKE_ERRORS(RETURN_SENTENCE)
	default:
		return "unknown error";
	}
#undef RETURN_SENTENCE
}

const char *spoke_errname(int error)
{
#define RETURN_NAME(name, number, sentence)                                                        \
	case number:                                                                               \
		return #name;

	switch (error) {
	case SPOKE_OK:
		return "OK";
		SPOKE_ERRORS(RETURN_NAME)
	default:
		return "UNKNOWN";
	}
#undef RETURN_NAME
}

/* Returns true if the table contains the error and it lies within the range. */
static bool is_within(int error, int first, int last)
{
#define RETURN_TRUE(name, number, sentence) case number:

	if (error > first || error < last)
		return false;
	switch (error) {
		SPOKE_ERRORS(RETURN_TRUE)
		return true;
	default:
		return false;
	}
#undef RETURN_TRUE
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
