#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the exporter of spans with the schema of OpenTelemetry: sh otlp.sh <the program examples/trace/traced>
set -eu
program=$1
here=$(cd "$(dirname "$0")/node" && pwd)
sh "$here/install.sh" >/dev/null
cd "$here/../../../build/node"
NODE_PATH=$PWD/node_modules exec node "$here/collector.js" "$program" 20
