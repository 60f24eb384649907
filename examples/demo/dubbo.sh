# SPDX-License-Identifier: Apache-2.0
# For demo.sh --dubbo: a ZooKeeper server and the Node libraries. Sourced in the top directory.
#
#   dubbo_packages    installs missing Debian packages
#   dubbo_begin       installs the Node libraries and starts the server, or exits with 77 after a
#                     sentence with the reason; the server ends with the script

dubbo_jars=/usr/share/java

dubbo_packages() {
	dubbo_wanted='libzookeeper-st-dev zookeeper'
	command -v npm >"$logs/npm" || dubbo_wanted="$dubbo_wanted nodejs npm"
	# shellcheck disable=SC2086
	want_packages $dubbo_wanted
}

dubbo_skip() { # <what is missing>
	echo "skipped: --dubbo needs $1"
	exit 77
}

# Prints a port that is free now.
dubbo_port() {
	node -e 'const s = require("net").createServer().listen(0, "127.0.0.1",
		() => { console.log(s.address().port); s.close(); })'
}

# Waits until the server answers, for at most a minute.
dubbo_await() { # <port>
	node -e '
		const end = Date.now() + 60000;
		const again = () => (Date.now() < end ? setTimeout(look, 100) : process.exit(1));
		function look() {
			let text = "";
			const socket = require("net").connect(process.argv[1], "127.0.0.1", () => socket.write("srvr"));
			// A server that is still starting may accept a connection and never answer.
			socket.setTimeout(1000, () => socket.destroy());
			socket.on("data", data => { text += data; });
			socket.on("error", () => {});
			socket.on("close", () => (text.startsWith("Zookeeper version") ? process.exit(0) : again()));
		}
		look();' "$1"
}

dubbo_end() {
	kill "$dubbo_server" 2>"$dubbo_folder/kill"
	wait "$dubbo_server" 2>"$dubbo_folder/wait"
	rm -rf "$dubbo_folder"
}

dubbo_start_server() {
	dubbo_folder=$(mktemp -d -t spoke-demo-zookeeper-XXXXXX) || exit 2
	port=$(dubbo_port)
	cat >"$dubbo_folder/zoo.cfg" <<-EOF
		tickTime=200
		minSessionTimeout=400
		maxSessionTimeout=60000
		maxClientCnxns=0
		admin.enableServer=false
		clientPortAddress=127.0.0.1
		clientPort=$port
		dataDir=$dubbo_folder/data
	EOF
	classes=
	for jar in zookeeper zookeeper-jute slf4j-api slf4j-nop snappy-java netty-all; do
		classes=$classes:$dubbo_jars/$jar.jar
	done
	java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "${classes#:}" \
		org.apache.zookeeper.server.quorum.QuorumPeerMain "$dubbo_folder/zoo.cfg" \
		>"$dubbo_folder/log" 2>&1 &
	dubbo_server=$!
	trap dubbo_end EXIT
	trap 'exit 2' HUP INT TERM
	if ! dubbo_await "$port"; then
		tail -n 20 "$dubbo_folder/log"
		exit 2
	fi
	SPOKE_DEMO_ZOOKEEPER=127.0.0.1:$port
	export SPOKE_DEMO_ZOOKEEPER
}

dubbo_begin() {
	command -v java >/dev/null && [ -r $dubbo_jars/zookeeper.jar ] || dubbo_skip "Debian's zookeeper"
	command -v npm >/dev/null || dubbo_skip npm
	sh tests/interop/node/install.sh || exit $?
	SPOKE_DEMO_NODE=$(pwd)/examples/demo
	NODE_PATH=$(pwd)/build/node/node_modules
	export SPOKE_DEMO_NODE NODE_PATH
	dubbo_start_server
}
