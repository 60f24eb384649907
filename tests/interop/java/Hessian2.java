// SPDX-License-Identifier: Apache-2.0
// Hessian 2, the serialization of Dubbo: writes texts, integers and maps, and reads also what exceptions consist of.

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

class Hessian2 {
	static class Writer {
		final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

		Writer value(Object value) {
			if (value == null)
				bytes.write('N');
			else if (value instanceof String text)
				text(text);
			else if (value instanceof Integer number)
				bytes.writeBytes(ByteBuffer.allocate(5).put((byte)'I').putInt(number).array());
			else if (value instanceof Map<?, ?> map)
				map(map);
			else
				throw new IllegalArgumentException("no form for " + value.getClass());
			return this;
		}

		// The length counts units of UTF-16, each of which is written on its own.
		private void text(String text) {
			Check.that(text.length() <= 0x8000, "a text needs no second chunk");
			if (text.length() < 32) {
				bytes.write(text.length());
			} else {
				bytes.write('S');
				bytes.write(text.length() >> 8);
				bytes.write(text.length());
			}
			for (char unit : text.toCharArray()) {
				if (unit < 0x80) {
					bytes.write(unit);
				} else if (unit < 0x800) {
					bytes.write(0xc0 | unit >> 6);
					bytes.write(0x80 | unit & 0x3f);
				} else {
					bytes.write(0xe0 | unit >> 12);
					bytes.write(0x80 | unit >> 6 & 0x3f);
					bytes.write(0x80 | unit & 0x3f);
				}
			}
		}

		private void map(Map<?, ?> map) {
			bytes.write('H');
			map.forEach((key, value) -> value(key).value(value));
			bytes.write('Z');
		}
	}

	static class Reader {
		final ByteBuffer bytes;
		final List<Object> values = new ArrayList<>(); // what a reference can name
		final List<String> types = new ArrayList<>();
		final List<List<String>> classes = new ArrayList<>(); // the name, then the fields

		Reader(byte[] body) {
			bytes = ByteBuffer.wrap(body);
		}

		int next() {
			return bytes.get() & 0xff;
		}

		// Objects are maps with their class as "class".
		Object value() {
			int tag = next();

			if (tag <= 0x1f)
				return text(tag);
			if (tag >= 0x30 && tag <= 0x33)
				return text((tag - 0x30) << 8 | next());
			if (tag >= 0x60 && tag <= 0x6f)
				return object(classes.get(tag - 0x60));
			if (tag >= 0x70 && tag <= 0x77)
				return typedList(tag - 0x70);
			if (tag >= 0x78 && tag <= 0x7f)
				return list(tag - 0x78);
			if (tag >= 0x80 && tag <= 0xbf)
				return tag - 0x90;
			if (tag >= 0xc0 && tag <= 0xcf)
				return (tag - 0xc8) << 8 | next();
			if (tag >= 0xd0 && tag <= 0xd7)
				return (tag - 0xd4) << 16 | next() << 8 | next();
			switch (tag) {
			case 'C':
				classes.add(definition());
				return value();
			case 'F':
				return false;
			case 'H':
				return map(new LinkedHashMap<>());
			case 'I':
				return bytes.getInt();
			case 'M':
				return map(new LinkedHashMap<>(Map.of("class", type())));
			case 'N':
				return null;
			case 'O':
				return object(classes.get((Integer)value()));
			case 'Q':
				return values.get((Integer)value());
			case 'S':
				return text(bytes.getShort() & 0xffff);
			case 'R':
				return text(bytes.getShort() & 0xffff) + (String)value();
			case 'T':
				return true;
			case 'V':
				return typedList((Integer)null);
			case 'X':
				return list((Integer)value());
			default:
				throw new IllegalStateException("unexpected tag " + tag + " of Hessian 2");
			}
		}

		private String text(int units) {
			StringBuilder text = new StringBuilder();

			while (units-- > 0) {
				int unit = next();

				if (unit >= 0xe0)
					unit = (unit & 0xf) << 12 | (next() & 0x3f) << 6 | next() & 0x3f;
				else if (unit >= 0xc0)
					unit = (unit & 0x1f) << 6 | next() & 0x3f;
				text.append((char)unit);
			}
			return text.toString();
		}

		private String type() {
			Object type = value();

			if (type instanceof Integer index)
				return types.get(index);
			types.add((String)type);
			return (String)type;
		}

		private List<String> definition() {
			List<String> names = new ArrayList<>(List.of((String)value()));

			for (int count = (Integer)value(); count > 0; count--)
				names.add((String)value());
			return names;
		}

		private Map<String, Object> object(List<String> names) {
			Map<String, Object> object = new LinkedHashMap<>(Map.of("class", names.get(0)));

			values.add(object);
			for (String field : names.subList(1, names.size()))
				object.put(field, value());
			return object;
		}

		private Map<String, Object> map(Map<String, Object> map) {
			values.add(map);
			while (bytes.get(bytes.position()) != 'Z') {
				String key = (String)value();
				map.put(key, value());
			}
			next();
			return map;
		}

		private List<Object> typedList(Integer count) {
			type();
			return list(count == null ? (Integer)value() : count);
		}

		private List<Object> list(int count) {
			List<Object> list = new ArrayList<>();

			values.add(list);
			while (count-- > 0)
				list.add(value());
			return list;
		}
	}
}
