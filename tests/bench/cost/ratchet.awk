# SPDX-License-Identifier: Apache-2.0
# Compares the measured numbers with ratchet.txt; run.sh calls it. Fails if a number is more than SLACK
# percent above the recorded one, misses of the cache by SLACK_COLD. Also fails if it is that much below, because a later change could
# otherwise use up an unrecorded gain unnoticed.
#
# A call in Hessian 2 may take at most HESSIAN2_MAX times the instructions of the same call in msgpack.
BEGIN {
	SLACK = 0.5
	SLACK_COLD = 2
	HESSIAN2_MAX = 1.25
}
NR == FNR {
	if ($1 == "made by")
		made_by_then = $2
	else if ($0 !~ /^#/) {
		was[$1, $2] = $3
		asked[$1, $2] = $4
	}
	next
}
made_by_then != made_by {
	if (!said++)
		print ratchet " was made by " made_by_then ", not by " made_by ": not compared"
	next
}
!(($1, $2) in was) {
	print ratchet " has no line for " $1 ", " $2 " deep: sh tests/bench/run.sh cost --update"
	failed = 1
	next
}
{
	now[$1, $2] = $3
	msgpack = $1
	if (sub(/-hessian2$/, "", msgpack) && $3 > HESSIAN2_MAX * now[msgpack, $2]) {
		printf "%s, %d deep: more than %.2f times the instructions of msgpack\n", $1, $2, HESSIAN2_MAX
		failed = 1
	}
	change = 100 * ($3 / was[$1, $2] - 1)
	more_calls = $4 - asked[$1, $2]
	cold = $1 ~ /-cold$/
	slack = cold ? SLACK_COLD : SLACK
	state = "as the ratchet says"
	if (change > slack || more_calls > 0.1) {
		state = "MORE than the ratchet says"
		dearer = 1
	} else if (change < -slack || more_calls < -0.1) {
		state = "LESS than the ratchet says"
		cheaper = 1
	}
	if (cold)
		printf "%s, 1,000 connections: a call misses the second cache %.1f times, %+.2f %% to %.1f: %s\n", \
			$1, $3, change, was[$1, $2], state
	else
		printf "%s, %d deep: a call takes %.1f instructions, %+.2f %% to %.1f, and %.2f calls of the C library, " \
		"%+.2f to %.2f: %s\n", $1, $2, $3, change, was[$1, $2], $4, more_calls, asked[$1, $2], state
}
END {
	if (dearer)
		print "Calls have become more expensive. sh tests/bench/run.sh cost --plain shows where, when it is run here\n" \
			"and on the commit before. If it has to be: sh tests/bench/run.sh cost --update, and say\n" \
			"in the commit why."
	else if (cheaper)
		print "Calls have become cheaper: lower the ratchet with the change that did it, by\n" \
			"sh tests/bench/run.sh cost --update, so that this cannot be lost unseen."
	exit failed || dearer || cheaper
}
