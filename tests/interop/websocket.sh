#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the frames of WebSocket with ws, the library for Node: sh websocket.sh <wsserver> <websocket.tsv>
set -eu
server=$1
rows=$2
here=$(cd "$(dirname "$0")/node" && pwd)
sh "$here/install.sh" >/dev/null
cd "$here/../../../build/node"
export NODE_PATH="$PWD/node_modules"
node "$here/wsrows.js" "$rows"
exec node "$here/websocket.js" "$server"
