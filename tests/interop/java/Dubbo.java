// SPDX-License-Identifier: Apache-2.0
// The wire of Dubbo, as the Java implementation 2.7 writes it: frames, calls, heartbeats, and signatures.

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.net.ssl.SSLSocket;

class Dubbo {
	static final int PATIENCE_MS = 60000;
	static final int OK = 20;
	static final int SERVICE_ERROR = 70;
	static final String STRING = "Ljava/lang/String;";
	static final byte[] NOTHING = { 'N' }; // null, the body of a heartbeat
	static final int REQUEST = 0x80;
	static final int TWO_WAY = 0x40;
	static final int EVENT = 0x20;
	static final int HESSIAN2 = 2;

	record Frame(int flag, int status, long id, byte[] body) {
		boolean is(int bits) {
			return (flag & bits) == bits;
		}
	}

	record Invocation(String service, String method, List<Object> args, Map<String, Object> attachments) {
		static Invocation read(Frame frame) {
			Hessian2.Reader reader = new Hessian2.Reader(frame.body);
			List<Object> args = new ArrayList<>();

			Check.same(HESSIAN2, frame.flag & 0x1f, "the serialization of a request");
			Check.same("2.0.2", reader.value(), "the version of Dubbo's protocol");
			String service = (String)reader.value();
			reader.value(); // the service's version
			String method = (String)reader.value();
			for (String types = (String)reader.value(); !types.isEmpty(); types = types.substring(STRING.length())) {
				Check.that(types.startsWith(STRING), "texts are the arguments, not " + types);
				args.add(reader.value());
			}
			@SuppressWarnings("unchecked")
			Map<String, Object> attachments = (Map<String, Object>)reader.value();
			Check.that(!reader.bytes.hasRemaining(), "nothing follows the attachments");
			return new Invocation(service, method, args, attachments);
		}
	}

	// What the method gave: a value or an exception, or the text of another status.
	record Result(int status, Object value, Map<?, ?> exception, String text) {
		static Result read(Frame frame) {
			Hessian2.Reader reader = new Hessian2.Reader(frame.body);

			Check.same(HESSIAN2, frame.flag & 0x1f, "the serialization of an answer");
			if (frame.status != OK)
				return new Result(frame.status, null, null, (String)reader.value());
			int marker = (Integer)reader.value();
			Object value = marker % 3 == 2 ? null : reader.value();
			return marker % 3 == 0 ? new Result(OK, null, (Map<?, ?>)value, null)
					       : new Result(OK, value, null, null);
		}
	}

	static class Link implements AutoCloseable {
		final SSLSocket socket;
		final DataInputStream in;
		final OutputStream out;
		long lastId;
		int heartbeats; // of the peer, which were answered
		final List<Invocation> pushed = new ArrayList<>();

		Link(SSLSocket socket) throws IOException {
			this.socket = socket;
			socket.setSoTimeout(PATIENCE_MS);
			socket.setTcpNoDelay(true);
			in = new DataInputStream(socket.getInputStream());
			out = socket.getOutputStream();
		}

		void send(int flag, int status, long id, byte[] body) throws IOException {
			out.write(ByteBuffer.allocate(16 + body.length).putShort((short)0xdabb).put((byte)(flag | HESSIAN2))
				.put((byte)status).putLong(id).putInt(body.length).put(body).array());
		}

		// Returns null at the peer's close_notify. An end without it is an exception.
		Frame read() throws IOException {
			int first = in.read();

			if (first < 0)
				return null;
			Check.same(0xda, first, "the first byte of a frame");
			Check.same(0xbb, in.read(), "the second byte of a frame");
			int flag = in.read();
			int status = in.read();
			long id = in.readLong();
			return new Frame(flag, status, id, in.readNBytes(in.readInt()));
		}

		// Answers heartbeats and pushes; returns any other frame.
		Frame next() throws IOException {
			for (;;) {
				Frame frame = read();

				if (frame == null || !frame.is(REQUEST) || !take(frame))
					return frame;
			}
		}

		// Answers the peer's heartbeats until there were as many.
		void awaitHeartbeats(int count) throws IOException {
			while (heartbeats < count) {
				Frame frame = read();

				Check.that(frame != null && take(frame), "a heartbeat comes next");
			}
		}

		private boolean take(Frame frame) throws IOException {
			if (frame.is(EVENT | TWO_WAY) && Arrays.equals(frame.body, NOTHING)) {
				heartbeats++;
				send(EVENT, OK, frame.id, frame.body);
				return true;
			}
			if (frame.is(EVENT) || !Invocation.read(frame).service.equals("demo.Prices"))
				return false;
			pushed.add(Invocation.read(frame));
			answer(frame, pushed.get(pushed.size() - 1).args.get(0) + ", noted by Java");
			return true;
		}

		void answer(Frame request, Object value) throws IOException {
			Hessian2.Writer writer = new Hessian2.Writer().value(4).value(value).value(Map.of("dubbo", "2.0.2"));

			send(0, OK, request.id, writer.bytes.toByteArray());
		}

		void refuse(Frame request, String text) throws IOException {
			send(0, SERVICE_ERROR, request.id, new Hessian2.Writer().value(text).bytes.toByteArray());
		}

		long request(String service, String method, String arg, Map<String, String> more) throws IOException {
			Map<String, String> attachments = new LinkedHashMap<>();

			attachments.put("path", service);
			attachments.put("remote.application", "java-peer");
			attachments.put("interface", service);
			attachments.put("version", "0.0.0");
			attachments.putAll(more);
			Hessian2.Writer writer = new Hessian2.Writer().value("2.0.2").value(service).value("0.0.0").value(method);
			writer.value(STRING).value(arg).value(attachments);
			send(REQUEST | TWO_WAY, 0, ++lastId, writer.bytes.toByteArray());
			return lastId;
		}

		Result finish(long id) throws IOException {
			Frame frame = next();

			Check.that(frame != null, "the peer ends instead of its answer");
			Check.that((frame.flag & (REQUEST | EVENT)) == 0, "the answer to a call comes next");
			Check.same(id, frame.id, "the id of the answer");
			return Result.read(frame);
		}

		Result call(String service, String method, String arg, Map<String, String> more) throws IOException {
			return finish(request(service, method, arg, more));
		}

		// Sends a heartbeat, as Dubbo does, and reads its answer.
		void beat() throws IOException {
			send(REQUEST | TWO_WAY | EVENT, 0, ++lastId, NOTHING);
			Frame frame = next();
			Check.that(frame != null && !frame.is(REQUEST) && frame.is(EVENT), "a heartbeat is answered by an event");
			Check.same(lastId, frame.id, "the id of a heartbeat's answer");
			Check.same(OK, frame.status, "the status of a heartbeat's answer");
			Check.that(Arrays.equals(frame.body, NOTHING), "the body of a heartbeat's answer is null");
		}

		@Override
		public void close() throws IOException {
			socket.close();
		}
	}

	// Dubbo's signature of a request without version and group.
	static String sign(String service, String method, String key, String timestamp) throws Exception {
		Mac mac = Mac.getInstance("HmacSHA256");

		mac.init(new SecretKeySpec(key.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
		String text = String.join("#", service + "::", method, key, timestamp);
		return Base64.getEncoder().encodeToString(mac.doFinal(text.getBytes(StandardCharsets.UTF_8)));
	}

	static Map<String, String> signed(String service, String method, String key) throws Exception {
		String now = String.valueOf(System.currentTimeMillis());

		return Map.of("timestamp", now, "ak", "shop", "consumer", "java-peer", "signature",
			sign(service, method, key, now));
	}
}
