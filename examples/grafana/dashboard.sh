#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the dashboard for Grafana from panels.txt:
#
#   sh examples/grafana/dashboard.sh >examples/grafana/spoke.json
set -eu
cd "$(dirname "$0")"
exec awk '
function text(s) {
	gsub(/\\/, "\\\\", s)
	gsub(/"/, "\\\"", s)
	return "\"" s "\""
}
function stop(why) {
	printf "panels.txt:%d: %s\n", FNR, why >"/dev/stderr"
	failed = 1
	exit 1
}
function end_panel() {
	if (targets != "")
		printf "%s\n      ]\n    }", targets
	targets = ""
}
function begin(type, title, x, width, height) {
	end_panel()
	printf "%s    {\n      \"id\": %d,\n      \"type\": \"%s\",\n      \"title\": %s,\n", id ? ",\n" : "", ++id, type, text(title)
	printf "      \"gridPos\": { \"x\": %d, \"y\": %d, \"w\": %d, \"h\": %d }", x, y, width, height
}
BEGIN {
	FS = " [|] "
	source = "{ \"type\": \"prometheus\", \"uid\": \"${datasource}\" }"
	print "{"
	print "  \"uid\": \"spoke\","
	print "  \"title\": \"spoke\","
	print "  \"tags\": [\"spoke\"],"
	print "  \"schemaVersion\": 38,"
	print "  \"editable\": true,"
	print "  \"graphTooltip\": 1,"
	print "  \"refresh\": \"10s\","
	print "  \"time\": { \"from\": \"now-1h\", \"to\": \"now\" },"
	print "  \"templating\": {"
	print "    \"list\": ["
	print "      { \"name\": \"datasource\", \"label\": \"Prometheus\", \"type\": \"datasource\", \"query\": \"prometheus\" },"
	print "      {"
	print "        \"name\": \"instance\","
	print "        \"label\": \"Process\","
	print "        \"type\": \"query\","
	print "        \"datasource\": " source ","
	print "        \"query\": { \"query\": \"label_values(spoke_info, instance)\", \"refId\": \"instances\" },"
	print "        \"refresh\": 2,"
	print "        \"multi\": true,"
	print "        \"includeAll\": true,"
	print "        \"allValue\": \".*\","
	print "        \"current\": { \"text\": \"All\", \"value\": \"$__all\" }"
	print "      }"
	print "    ]"
	print "  },"
	print "  \"panels\": ["
}
/^#/ || /^$/ {
	next
}
/^row / {
	y += column ? 8 : 0
	column = 0
	begin("row", substr($0, 5), 0, 24, 1)
	printf ",\n      \"collapsed\": false,\n      \"panels\": []\n    }"
	y++
	next
}
/^panel / {
	if (NF != 4 || $3 !~ /^(lines|stacked|log)$/)
		stop("a panel needs a title, a unit, a style and a description")
	begin("timeseries", substr($1, 7), column * 12, 12, 8)
	printf ",\n      \"description\": %s,\n      \"datasource\": %s,\n", text($4), source
	custom = "{ \"lineWidth\": 1, \"fillOpacity\": " ($3 == "stacked" ? 25 : 0)
	if ($3 == "stacked")
		custom = custom ", \"stacking\": { \"mode\": \"normal\", \"group\": \"A\" }"
	if ($3 == "log")
		custom = custom ", \"scaleDistribution\": { \"type\": \"log\", \"log\": 10 }"
	printf "      \"fieldConfig\": {\n        \"defaults\": { \"unit\": %s, \"custom\": %s } },\n        \"overrides\": []\n      },\n", text($2), custom
	print "      \"options\": { \"legend\": { \"displayMode\": \"list\", \"placement\": \"bottom\" }, \"tooltip\": { \"mode\": \"multi\" } },"
	targets = "      \"targets\": ["
	queries = 0
	y += column ? 8 : 0
	column = 1 - column
	next
}
/^query / {
	if (NF != 2 || targets == "")
		stop("a query needs a legend and an expression, and belongs to a panel")
	gsub(/[{]@/, "{instance=~\"$instance\"", $2)
	gsub(/\[@\]/, "[$__rate_interval]", $2)
	targets = targets (queries ? "," : "") "\n        {\n          \"refId\": \"" substr("ABCDEFGH", ++queries, 1) "\",\n"
	targets = targets "          \"datasource\": " source ",\n          \"legendFormat\": " text(substr($1, 7)) ",\n"
	targets = targets "          \"expr\": " text($2) "\n        }"
	next
}
{
	stop("neither row nor panel nor query")
}
END {
	if (failed)
		exit 1
	end_panel()
	print "\n  ]\n}"
}
' panels.txt
