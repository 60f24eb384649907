# SPDX-License-Identifier: Apache-2.0
# Prints the recorded Hessian 2 bodies, one a line: "request" or "reply", and the bytes in hexadecimal.
#
#   awk -f bodies.awk tests/golden/dubbo-frames.tsv tests/golden/dubbo-2.7.23-hessian2.frames
#
# Bodies of events and of replies with an error status are left out.
function put(frame,   flags, status) {
	flags = substr(frame, 5, 2)
	status = substr(frame, 7, 2)
	if (flags == "c2" || flags == "82")
		print "request", substr(frame, 33)
	else if (flags == "02" && status == "14")
		print "reply", substr(frame, 33)
}
/^(->|<-) / {
	put($2)
	next
}
{
	count = split($0, column, "\t")
	put(column[count])
}
