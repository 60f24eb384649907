// SPDX-License-Identifier: Apache-2.0
// Peer <spoke> <javaprovider>: plays the part of Dubbo over Java's own TLS, as a consumer and as a provider, for
// TLS 1.3 and 1.2. Certificates are made by `spoke certs`. Prints a line for each check.

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Security;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.net.ssl.ExtendedSSLSession;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

class Peer {
	static final String TOKEN = "a-token-of-java";
	static final String SECRET = "the-key-of-the-shop";
	static final Map<String, String> TOKENED = Map.of("token", TOKEN);
	static final String TEXT = "h\u00e9\u4e2d\ud83d\ude00";
	static final int FORBIDDEN_UNPROVEN = 13;

	static Path folder;
	static String spoke;
	static String providerProgram;
	static final List<Process> started = new ArrayList<>();

	// --- certificates

	static Path file(String certs, String name) {
		return folder.resolve(certs).resolve(name);
	}

	static Certificate[] chain(Path path) throws Exception {
		try (InputStream in = Files.newInputStream(path)) {
			return CertificateFactory.getInstance("X.509").generateCertificates(in).toArray(new Certificate[0]);
		}
	}

	// Dubbo reads keys in this form only: PKCS#8 in PEM.
	static PrivateKey key(Path path, String algorithm) throws Exception {
		String text = Files.readString(path);

		Check.that(text.startsWith("-----BEGIN PRIVATE KEY-----"), path + " is PKCS#8");
		byte[] bytes = Base64.getMimeDecoder().decode(text.replaceAll("-----.*-----", ""));
		return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(bytes));
	}

	// With the certificate `name` of a folder (null: with none), for peers of the authority in `trusted`.
	static SSLContext context(String certs, String name, String trusted) throws Exception {
		KeyStore keys = KeyStore.getInstance("PKCS12");
		KeyStore authorities = KeyStore.getInstance("PKCS12");
		KeyManagerFactory mine = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
		TrustManagerFactory theirs = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		SSLContext context = SSLContext.getInstance("TLS");

		keys.load(null, null);
		authorities.load(null, null);
		if (name != null) {
			Certificate[] chain = chain(file(certs, name + ".pem"));
			PrivateKey key = key(file(certs, name + ".key"), chain[0].getPublicKey().getAlgorithm());
			keys.setKeyEntry("own", key, new char[0], chain);
		}
		authorities.setCertificateEntry("ca", chain(file(trusted, "ca.pem"))[0]);
		mine.init(keys, new char[0]);
		theirs.init(authorities);
		context.init(mine.getKeyManagers(), theirs.getTrustManagers(), null);
		return context;
	}

	// --- programs of spoke

	static Process start(ProcessBuilder.Redirect errors, List<String> command) throws IOException {
		Process process = new ProcessBuilder(command).redirectError(errors).start();

		started.add(process);
		return process;
	}

	static int end(Process process) throws InterruptedException {
		Check.that(process.waitFor(Dubbo.PATIENCE_MS, TimeUnit.MILLISECONDS), "the end of " + process.info());
		started.remove(process);
		return process.exitValue();
	}

	static Path write(String name, String text) throws IOException {
		Path path = folder.resolve(name);

		Files.writeString(path, text);
		return Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
	}

	static void makeCertificates(String certs, String... options) throws Exception {
		List<String> command = new ArrayList<>(List.of(spoke, "certs", folder.resolve(certs).toString()));

		command.addAll(Arrays.asList(options));
		Process process = start(ProcessBuilder.Redirect.DISCARD, command);
		process.getInputStream().readAllBytes();
		Check.same(0, end(process), "the exit code of spoke certs");
	}

	static String settings(String certs, String name) {
		return "tls = on\ntls.min = 1.2\nheartbeat = 1s\ntls.cert = " + file(certs, name + ".pem") + "\ntls.key = "
			+ file(certs, name + ".key") + "\ntls.ca = " + file(certs, "ca.pem") + "\n";
	}

	static final String SIGNED = "auth = accesskey\naccess.id = shop\naccess.secret.file = ";

	static Process serve(String certs) throws IOException {
		Path token = write("token", TOKEN + "\n");
		Path secret = write("secret", SECRET + "\n");
		String text = "[provider]\n" + settings(certs, "provider") + "handshake.timeout = 60s\n"
			+ "[service.demo.Tokened]\ntoken.file = " + token + "\n"
			+ "[service.demo.Signed]\n" + SIGNED + secret + "\n";

		return start(ProcessBuilder.Redirect.INHERIT,
			List.of(providerProgram, write("provider.conf", text).toString()));
	}

	static int port(Process provider) throws IOException {
		return Integer.parseInt(provider.inputReader().readLine());
	}

	static Process call(int port, String settings, String... options) throws IOException {
		List<String> command = new ArrayList<>(List.of(spoke, "call", "dubbo://127.0.0.1:" + port,
			"demo.EchoService.echo", "\"" + TEXT + "\"", "--timeout", "60s", "--config",
			write("consumer.conf", "[consumer]\n" + settings).toString()));

		command.addAll(Arrays.asList(options));
		return start(ProcessBuilder.Redirect.PIPE, command);
	}

	static String text(InputStream stream) throws IOException {
		return new String(stream.readAllBytes(), "UTF-8");
	}

	// --- Java calls spoke

	// As Dubbo connects: to an address, so without a server's name, without ALPN, and with no look at names.
	static Dubbo.Link connect(SSLContext context, int port, String version) throws IOException {
		InetAddress host = InetAddress.getByName("127.0.0.1");
		SSLSocket socket = (SSLSocket)context.getSocketFactory().createSocket(host, port);
		Dubbo.Link link = new Dubbo.Link(socket);

		socket.setEnabledProtocols(new String[] { version });
		socket.startHandshake();
		Check.same(version, socket.getSession().getProtocol(), "the version of TLS");
		Check.same("", socket.getApplicationProtocol(), "the protocol of ALPN");
		return link;
	}

	static void callsInAllWays(SSLContext context, int port, String version) throws Exception {
		try (Dubbo.Link link = connect(context, port, version)) {
			link.beat();
			Check.same(TEXT, link.call("demo.Tokened", "echo", TEXT, TOKENED).value(), "a call with the token");
			Check.same(TEXT, link.call("demo.Signed", "echo", TEXT, Dubbo.signed("demo.Signed", "echo", SECRET)).value(),
				"a call with the signature");

			Check.same("tea, noted by Java", link.call("demo.Tokened", "push", "", TOKENED).value(), "a push's answer");
			Check.same(1, link.pushed.size(), "the number of pushes");
			Check.same("moved", link.pushed.get(0).method(), "the method of the push");

			// spoke closes a connection of which it hears nothing; the answers to its heartbeats keep this one.
			link.awaitHeartbeats(link.heartbeats + 2);
			Check.same(TEXT, link.call("demo.Tokened", "echo", TEXT, TOKENED).value(), "a call after heartbeats");

			// The answer is not owed to Java's close_notify.
			long last = link.request("demo.Tokened", "echo", "last", TOKENED);
			link.socket.shutdownOutput();
			Check.same("last", link.finish(last).value(), "the answer to a half-closed connection");
			Check.same(null, link.next(), "the frame after the last answer");
		}
	}

	static void isRefused(Dubbo.Result result, String what) {
		Check.same(Dubbo.OK, result.status(), "the status for " + what);
		Check.that(result.exception() != null, "an exception answers " + what);
		Check.same("org.apache.dubbo.rpc.RpcException", result.exception().get("class"), "the class for " + what);
		Check.same(FORBIDDEN_UNPROVEN, result.exception().get("code"), "the code for " + what);
	}

	static void isRefusedWithoutProof(SSLContext context, int port, String version) throws Exception {
		try (Dubbo.Link link = connect(context, port, version)) {
			isRefused(link.call("demo.Tokened", "echo", TEXT, Map.of()), "a call without the token");
			isRefused(link.call("demo.Tokened", "echo", TEXT, Map.of("token", TOKEN + "!")), "a call with a longer token");
			Check.same(TEXT, link.call("demo.Tokened", "echo", TEXT, TOKENED).value(), "a call with the token");
		}
		try (Dubbo.Link link = connect(context, port, version)) {
			isRefused(link.call("demo.Signed", "echo", TEXT, Map.of()), "a call without a signature");
			isRefused(link.call("demo.Signed", "echo", TEXT, Dubbo.signed("demo.Signed", "push", SECRET)),
				"the signature of another method");
			isRefused(link.call("demo.Signed", "echo", TEXT, Dubbo.signed("demo.Signed", "echo", SECRET + "!")),
				"the signature of another key");
			Check.same(null, link.next(), "the frame after the third refusal");
		}
	}

	// The end of a handshake says nothing in TLS 1.3: the server looks at the certificate later.
	static void isNoPeer(SSLContext context, int port, String version) throws Exception {
		try (Dubbo.Link link = connect(context, port, version)) {
			link.beat();
		} catch (SSLException error) {
			return;
		}
		throw new AssertionError("a handshake with a bad certificate succeeds");
	}

	// Java changes its keys after 2^18 bytes, and asks spoke to do the same.
	static void changesKeys(SSLContext context, int port, String version) throws Exception {
		String large = "x".repeat(0x8000);

		try (Dubbo.Link link = connect(context, port, version)) {
			for (int i = 0; i < 64; i++)
				Check.same(large, link.call("demo.Tokened", "echo", large, TOKENED).value(), "a call with 32 KiB");
		}
	}

	static void javaCalls(String certs, String version) throws Exception {
		SSLContext context = context(certs, "consumer", certs);
		Process provider = serve(certs);
		int port = port(provider);

		callsInAllWays(context, port, version);
		isRefusedWithoutProof(context, port, version);
		changesKeys(context, port, version);
		isNoPeer(context("others", "consumer", certs), port, version);
		isNoPeer(context(certs, null, certs), port, version);
		isNoPeer(context(certs, "consumer", "others"), port, version);
		callsInAllWays(context, port, version);
		provider.destroy();
		Check.same(0, end(provider), "the exit code of the provider");
	}

	// --- spoke calls Java

	interface Conversation {
		void run(Dubbo.Link link) throws Exception;
	}

	static class Server implements AutoCloseable {
		final SSLServerSocket socket;
		List<String> offered; // protocols of ALPN

		Server(SSLContext context, String version) throws IOException {
			socket = (SSLServerSocket)context.getServerSocketFactory().createServerSocket(0, 8,
				InetAddress.getByName("127.0.0.1"));
			socket.setEnabledProtocols(new String[] { version });
			socket.setNeedClientAuth(true);
			socket.setSoTimeout(Dubbo.PATIENCE_MS);
		}

		// Like Dubbo's, it takes none of the protocols that are offered by ALPN.
		Dubbo.Link greet() throws IOException {
			Dubbo.Link link = new Dubbo.Link((SSLSocket)socket.accept());

			link.socket.setHandshakeApplicationProtocolSelector((of, protocols) -> {
				offered = protocols;
				return "";
			});
			link.socket.startHandshake();
			return link;
		}

		// spoke gives a connection 5 s, and tries again.
		Dubbo.Link accept() throws IOException {
			for (int tries = 5; ; tries--) {
				try {
					return greet();
				} catch (IOException error) {
					if (tries == 1)
						throw error;
					System.out.println("again after: " + error);
				}
			}
		}

		@Override
		public void close() throws IOException {
			socket.close();
		}
	}

	// Returns the request of the consumer's only call.
	static Dubbo.Frame request(Dubbo.Link link) throws IOException {
		Dubbo.Frame frame = link.next();

		Check.that(frame != null && frame.is(Dubbo.REQUEST | Dubbo.TWO_WAY) && !frame.is(Dubbo.EVENT), "a call comes");
		return frame;
	}

	// A consumer that only calls ends without a word of Dubbo's, but with close_notify.
	static void awaitEnd(Dubbo.Link link) throws IOException {
		Check.same(null, link.next(), "the frame after the last answer");
	}

	static void isServedInAllWays(Dubbo.Link link, String version) throws Exception {
		ExtendedSSLSession session = (ExtendedSSLSession)link.socket.getSession();
		X509Certificate certificate = (X509Certificate)session.getPeerCertificates()[0];

		Check.same(version, session.getProtocol(), "the version of TLS");
		Check.same("[[2, consumer]]", String.valueOf(certificate.getSubjectAlternativeNames()), "the consumer's names");
		Check.same(0, session.getRequestedServerNames().size(), "the number of server names for an address");

		Dubbo.Frame request = request(link);
		Dubbo.Invocation call = Dubbo.Invocation.read(request);
		Check.same("demo.EchoService", call.service(), "the service");
		Check.same("echo", call.method(), "the method");
		Check.same(List.of(TEXT), call.args(), "the arguments");
		Check.same(null, call.attachments().get("token"), "the token of a consumer without one");

		// Before its answer, so that the connection has no other traffic.
		link.awaitHeartbeats(link.heartbeats + 2);
		link.beat();
		link.answer(request, TEXT);
		awaitEnd(link);
	}

	// As Dubbo's TokenFilter answers.
	static void asksForToken(Dubbo.Link link) throws Exception {
		Dubbo.Frame request = request(link);
		Object token = Dubbo.Invocation.read(request).attachments().get("token");

		if (TOKEN.equals(token))
			link.answer(request, TEXT);
		else
			link.refuse(request, "org.apache.dubbo.rpc.RpcException: Invalid token! Forbid invoke remote service "
				+ "demo.EchoService method echo() from consumer 127.0.0.1 to provider 127.0.0.1, consumer incorrect "
				+ "token is " + token);
		awaitEnd(link);
	}

	// Does not answer a signature that is not right, as a failed check says more than an answer.
	static void asksForSignature(Dubbo.Link link) throws Exception {
		Dubbo.Frame request = request(link);
		Map<String, Object> attachments = Dubbo.Invocation.read(request).attachments();
		String timestamp = (String)attachments.get("timestamp");

		Check.same("shop", attachments.get("ak"), "the name of the key");
		Check.that(attachments.get("consumer") instanceof String, "the attachment consumer is a text");
		Check.same(Dubbo.sign("demo.EchoService", "echo", SECRET, timestamp), attachments.get("signature"), "the signature");
		Check.that(Math.abs(Long.parseLong(timestamp) - System.currentTimeMillis()) < 2 * Dubbo.PATIENCE_MS,
			"the signature is of now");
		link.answer(request, TEXT);
		awaitEnd(link);
	}

	static void succeeds(Server server, String settings, Conversation conversation, String... options) throws Exception {
		Process call = call(server.socket.getLocalPort(), settings, options);

		try (Dubbo.Link link = server.accept()) {
			conversation.run(link);
		}
		Check.same("\"" + TEXT + "\"\n", text(call.getInputStream()), "the output of spoke call");
		Check.same("", text(call.getErrorStream()), "the errors of spoke call");
		Check.same(0, end(call), "the exit code of spoke call");
		Check.same(List.of("spoke"), server.offered, "the protocols that spoke offers by ALPN");
	}

	static String fails(Server server, int code, String settings, Conversation conversation, String... options)
		throws Exception {
		Process call = call(server.socket.getLocalPort(), settings, options);

		try (Dubbo.Link link = server.accept()) {
			conversation.run(link);
		}
		String errors = text(call.getErrorStream());
		Check.same("", text(call.getInputStream()), "the output of spoke call");
		Check.same(code, end(call), "the exit code of spoke call: " + errors);
		return errors;
	}

	// Calls a server that spoke does not take for its provider, or that does not take spoke for a consumer.
	static void findNoPeer(Server server, String settings, String sentence, String... options) throws Exception {
		Process call = call(server.socket.getLocalPort(), settings, options);

		try (Dubbo.Link link = server.greet()) {
			Check.same(null, link.next(), "what a consumer sends to a stranger");
			throw new AssertionError("a handshake with a bad certificate succeeds");
		} catch (SSLException error) {
			server.close();
		}
		String errors = text(call.getErrorStream());
		Check.same("", text(call.getInputStream()), "the output of spoke call");
		Check.same(4, end(call), "the exit code of spoke call: " + errors);
		Check.that(errors.contains(sentence), "\"" + sentence + "\" is not in: " + errors);
	}

	static void javaServes(String certs, String version) throws Exception {
		SSLContext context = context(certs, "provider", certs);
		String plain = settings(certs, "consumer");
		String signed = plain + SIGNED + write("secret", SECRET + "\n") + "\n";

		try (Server server = new Server(context, version)) {
			succeeds(server, plain, link -> isServedInAllWays(link, version));
			succeeds(server, plain, Peer::asksForToken, "--token", TOKEN);
			succeeds(server, signed, Peer::asksForSignature);
			String refusal = fails(server, 1, plain, Peer::asksForToken, "--token", TOKEN + "!");
			Check.that(refusal.contains("Invalid token!"), "Dubbo's refusal is not in: " + refusal);
			findNoPeer(server, plain, "none of the expected names", "--peer", "dns:x");
		}
		try (Server server = new Server(context("others", "provider", certs), version)) {
			findNoPeer(server, plain, "certificate");
		}
		// In TLS 1.3 the call is on its way when the alert comes.
		String sentence = version.equals("TLSv1.3") ? "the handshake of the connection failed"
							    : "alert certificate unknown";
		try (Server server = new Server(context, version)) {
			findNoPeer(server, settings("others", "consumer").replace(file("others", "ca.pem").toString(),
				file(certs, "ca.pem").toString()), sentence);
		}
	}

	// --- all of it

	// The first handshake takes seconds on a busy machine, as classes are loaded.
	static void warmUp(String certs) throws Exception {
		try (Server server = new Server(context(certs, "provider", certs), "TLSv1.3")) {
			SSLContext context = context(certs, "consumer", certs);
			Thread client = new Thread(() -> {
				try (Dubbo.Link link = connect(context, server.socket.getLocalPort(), "TLSv1.3")) {
					link.beat();
				} catch (IOException error) {
					error.printStackTrace();
				}
			});

			client.start();
			try (Dubbo.Link link = server.greet()) {
				Check.same(null, link.next(), "what follows a heartbeat");
			}
			client.join();
		}
	}

	interface Part {
		void run(String certs, String version) throws Exception;
	}

	static void run(String name, Part part, String certs, String version) throws Exception {
		part.run(certs, version);
		System.out.println(name + ", " + version + ", " + certs + ": ok");
	}

	static void end() {
		started.forEach(Process::destroyForcibly);
		try (Stream<Path> paths = Files.walk(folder)) {
			paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
		} catch (IOException error) {
			System.err.println(error);
		}
	}

	public static void main(String[] args) throws Exception {
		// Before the first use of TLS: an end without close_notify is an error, and keys change early.
		System.setProperty("com.sun.net.ssl.requireCloseNotify", "true");
		Security.setProperty("jdk.tls.keyLimits", "AES/GCM/NoPadding KeyUpdate 2^18");
		spoke = args[0];
		providerProgram = args[1];
		folder = Files.createTempDirectory("spoke-java");
		Runtime.getRuntime().addShutdownHook(new Thread(Peer::end));

		makeCertificates("P-256");
		makeCertificates("Ed25519", "--ed25519");
		makeCertificates("others");
		warmUp("P-256");
		for (String version : List.of("TLSv1.3", "TLSv1.2")) {
			run("Java calls spoke", Peer::javaCalls, "P-256", version);
			run("spoke calls Java", Peer::javaServes, "P-256", version);
		}
		run("Java calls spoke", Peer::javaCalls, "Ed25519", "TLSv1.3");
		run("spoke calls Java", Peer::javaServes, "Ed25519", "TLSv1.3");
	}
}
