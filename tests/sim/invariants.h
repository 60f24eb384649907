/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants that the simulator checks, one sentence each. S: safety, at every moment of a run.
 * L: liveness, after all faults have been healed. A violation prints the invariant's sentence.
 */
#ifndef TESTS_SIM_INVARIANTS_H
#define TESTS_SIM_INVARIANTS_H

/* X(name, the file that checks it, its sentence) */
#define SIM_INVARIANTS(X)                                                                          \
	X(S1, oracle_calls,                                                                        \
	  "An accepted call ends exactly once, also when it is cancelled, when its "               \
	  "consumer is closed or drained, and when memory runs out.")                              \
	X(S2, oracle_calls,                                                                        \
	  "A call's callback never runs inside the function that started the call.")               \
	X(S3, oracle_calls,                                                                        \
	  "A call never times out before its deadline, and at most one tick plus the "             \
	  "delay of the loop after it.")                                                           \
	X(S4, oracle_asks,                                                                         \
	  "A reply completes a call only if it came on the call's own connection and "             \
	  "has the call's id.")                                                                    \
	X(S5, oracle_asks, "A request id of a connection is never used twice.")                    \
	X(S6, oracle_attempts,                                                                     \
	  "A provider runs each attempt at most once, and a call has no more "                     \
	  "attempts than its policy and its retries allow.")                                       \
	X(S7, oracle_attempts,                                                                     \
	  "A consumer's further attempts stay within its retry budget in every "                   \
	  "window of 10 s.")                                                                       \
	X(S8, oracle_tickets,                                                                      \
	  "Tickets stay within their limits, and each accepted ticket is settled "                 \
	  "exactly once, with the outcome that its attempts had.")                                 \
	X(S9, oracle_books,                                                                        \
	  "Queued bytes, calls and connections stay within their limits, and the "                 \
	  "counters agree with what is there.")                                                    \
	X(S10, oracle_books,                                                                       \
	  "A connection stops reading above its high water mark and resumes below "                \
	  "its low water mark.")                                                                   \
	X(S11, oracle_links,                                                                       \
	  "A connection is closed for silence only after three heartbeats that were "              \
	  "each unanswered for an interval; an interval in which the loop was late "               \
	  "does not count.")                                                                       \
	X(S12, oracle_streams,                                                                     \
	  "A consumer has at most one connection attempt to a provider under way, "                \
	  "waits for its backoff between two, and starts none after it was closed.")               \
	X(S13, oracle_calls, "The deadline that a request carries never grows.")                   \
	X(S14, oracle_calls, "No handler starts after the deadline of its request.")               \
	X(S15, segments, "However a stream of bytes is split, the same events result.")            \
	X(S16, oracle_streams,                                                                     \
	  "The first broken frame closes its connection, and no later byte of that "               \
	  "connection is interpreted.")                                                            \
	X(S17, oracle_access,                                                                      \
	  "A consumer that the lists or the certificates of a provider shut out is not served "    \
	  "there once its connections have been drained, and no other one is refused.")            \
	X(S18, oracle_books,                                                                       \
	  "No callback or timer reaches an object that was freed; at the end no "                  \
	  "timer, descriptor or byte of memory is left.")                                          \
	X(S19, oracle_asks,                                                                        \
	  "A provider that announced its drain gets no new requests, and a request "               \
	  "that crossed the announcement is either run or refused, never both.")                   \
	X(S20, oracle_calls,                                                                       \
	  "The number of running handlers stays within the limits of the provider "                \
	  "and of each connection.")                                                               \
	X(S21, main, "The same seed gives the same history.")                                      \
	X(S22, main, "A different wall clock and boot time do not change the history.")            \
	X(S23, oracle_asks,                                                                        \
	  "A provider answers every request that it has read on a connection that "                \
	  "lives, and answers it once.")                                                           \
	X(S24, oracle_books,                                                                       \
	  "A connection changes its state only along the table of legal moves.")                   \
	X(S25, oracle_attempts,                                                                    \
	  "A retry goes to a provider that the call has not tried, if one can "                    \
	  "take it.")                                                                              \
	X(S26, oracle_attempts,                                                                    \
	  "All attempts of a call that carry an id carry the same one, which no other call has; "  \
	  "those of a ticket carry it, and different attempt numbers.")                            \
	X(S27, oracle_books,                                                                       \
	  "The counters of the engine and those of its methods agree with one another, with the "  \
	  "callbacks that were seen, and with the calls and requests that are under way.")         \
	X(S28, oracle_lists,                                                                       \
	  "A consumer that once knew providers never ends up with an empty list "                  \
	  "because its registry failed.")                                                          \
	X(S29, oracle_leases,                                                                      \
	  "A name has at most one holder at a time whose lease has time left, as long as its "     \
	  "store loses nothing.")                                                                  \
	X(S30, oracle_leases,                                                                      \
	  "A lease has the fence number of its grant, and a later grant has a higher one, as "     \
	  "long as the store loses nothing.")                                                      \
	X(S31, oracle_leases,                                                                      \
	  "A lease has no more time left than its store keeps it, unless the store has lost it.")  \
	X(S32, oracle_leases,                                                                      \
	  "A lease that is over is reported before any other callback of its process, and soon.")  \
	X(S33, oracle_leases,                                                                      \
	  "Each ask is answered once and in time, and each held lease ends once, as released or "  \
	  "as lost, for a reason that holds.")                                                     \
	X(S34, oracle_leases, "No request is written under a lease that is over.")                 \
	X(S35, oracle_store, "Each ask is one holder in the store, however often it is repeated.") \
	X(S36, oracle_store,                                                                       \
	  "Nothing that a connection left behind runs in the store after the next connection "     \
	  "of its client has begun to run scripts, if clients may be killed.")                     \
	X(S37, oracle_leases,                                                                      \
	  "A provider with a fence runs no request with a lower fence number than one that it "    \
	  "has run.")                                                                              \
	X(S38, oracle_store, "A lease that was released is not renewed.")                          \
	X(S39, oracle_links,                                                                       \
	  "The connection after one that was closed for silence is on probation, however many "    \
	  "attempts to connect fail in between.")                                                  \
	X(S40, oracle_pages,                                                                       \
	  "The ids of the messages on a page's connection rise, and are of one epoch.")            \
	X(S41, oracle_pages,                                                                       \
	  "A page that connects again gets every message of its user and every message to all "    \
	  "that it has not had, or is told that messages were lost.")                              \
	X(S42, oracle_pages,                                                                       \
	  "A page gets whole events, as they were pushed, and none of another user.")              \
	X(S43, oracle_gateway,                                                                     \
	  "A message is in memory as long as a ring or a connection refers to it, and no ring "    \
	  "refers to one that is twice as old as its limit.")                                      \
	X(S44, oracle_gateway,                                                                     \
	  "Each connection of a gateway has exactly one timer, and its class has no others.")      \
	X(S45, oracle_gateway,                                                                     \
	  "The users, connections, rings and bytes of a gateway stay within their limits.")        \
	X(S46, oracle_gateway,                                                                     \
	  "A page is told to connect again when the life of its connection is over, and the "      \
	  "connection is closed soon.")                                                            \
	X(S47, oracle_gateway,                                                                     \
	  "A connection gets a keepalive after each silence, unless its output waits.")            \
	X(S48, gateway,                                                                            \
	  "The authorizer is asked once about each request, its first answer in time counts, and " \
	  "opens one connection at most.")                                                         \
	X(S49, oracle_gateway, "A connection whose output makes no progress is closed in time.")   \
	X(S50, oracle_pages,                                                                       \
	  "Each pause before the next connection that a page is told is within the limits of "     \
	  "the gateway.")                                                                          \
	X(S51, oracle_secure,                                                                      \
	  "Over TLS each end reads the bytes that the other one has written, in order, whatever "  \
	  "is done to the bytes on the way.")                                                      \
	X(S52, oracle_calls,                                                                       \
	  "A peer that never stops sending holds back the deadlines of calls by no more than one " \
	  "bounded turn, and what is left of those in which they are made and due.")               \
	X(S53, oracle_asks,                                                                        \
	  "A consumer cancels only requests that it has written and does not wait for any more, "  \
	  "each once.")                                                                            \
	X(S54, oracle_asks,                                                                        \
	  "A call that begins while a provider has stepped aside is not written to it, unless it " \
	  "is a repeat that only this one can recognise.")                                         \
	X(S55, registry, "A provider asks to be listed only while it is online.")                  \
	X(S56, oracle_repeats,                                                                     \
	  "A provider runs a call once as long as it remembers it, and a marked repeat of a call " \
	  "that it has run never.")                                                                \
	X(S57, oracle_repeats,                                                                     \
	  "A call that may have run at an instance which remembers requests, and must not run "    \
	  "twice, is repeated there only, with a mark; no other request has one.")                 \
	X(S58, oracle_repeats,                                                                     \
	  "A provider does not say of a call that it remembers that it cannot know it.")           \
	X(S59, oracle_parents,                                                                     \
	  "A call that is made for a request has no more time than is left of it, and ends then, " \
	  "or after its own timeout, and not before either; without time left none is made.")      \
	X(S60, oracle_parents,                                                                     \
	  "When a provider knows that a caller has gone, the calls that it has made for the "      \
	  "request end in that turn or the next, none is made any more, and no request is "        \
	  "written or run.")                                                                       \
	X(S61, oracle_parents,                                                                     \
	  "A call that is made for no request, or whose request is answered or still waited for, " \
	  "is not cancelled.")                                                                     \
	X(S62, oracle_journal,                                                                     \
	  "A ticket in a journal that was told as deferred goes on or is settled in the next "     \
	  "process, after a kill and, as its durability says, after a loss of power.")             \
	X(S63, oracle_journal,                                                                     \
	  "A ticket is settled once in all processes, unless one ended before the record of its "  \
	  "end was on the disk, and has one id.")                                                  \
	X(S64, oracle_journal,                                                                     \
	  "A failback call whose request may have run, and must not run twice, is not written "    \
	  "again, by a later process either.")                                                     \
	X(S65, oracle_journal,                                                                     \
	  "The deadline of a ticket is one of wall time, in a later process, too: it expires "     \
	  "then, and is settled by then.")                                                         \
	X(S66, oracle_journal, "A journal that no fault has damaged can be read.")                 \
	X(L1, heal,                                                                                \
	  "After the faults have ended, every consumer is connected again within its backoff "     \
	  "and connect timeout, and every new call succeeds.")                                     \
	X(L2, oracle_links,                                                                        \
	  "A peer that died is noticed within four heartbeat intervals and a tick.")               \
	X(L3, oracle_turns, "The loop does not turn without making progress.")                     \
	X(L4, oracle_turns, "A busy connection does not keep others from being read.")             \
	X(L5, heal, "Calls also end when every read and write moves only a few bytes.")            \
	X(L6, heal, "A drain ends within its timeout.")                                            \
	X(L7, oracle_lists,                                                                        \
	  "After the registry has recovered, each consumer lists exactly the "                     \
	  "providers that are registered.")                                                        \
	X(L8, workers,                                                                             \
	  "After the store has recovered, each lease is granted to all that ask for it, one "      \
	  "after the other.")                                                                      \
	X(L9, gateway,                                                                             \
	  "After the faults, each page is connected again within its pauses and the limits of "    \
	  "the gateway, and has all messages.")                                                    \
	X(L10, oracle_gateway,                                                                     \
	  "A gateway that drains tells its pages to connect again, spread over the time for it, "  \
	  "and ends soon after.")

enum sim_invariant {
#define SIM_INVARIANT_ENUM(name, file, sentence) SIM_##name,
	SIM_INVARIANTS(SIM_INVARIANT_ENUM)
#undef SIM_INVARIANT_ENUM
};

#endif
