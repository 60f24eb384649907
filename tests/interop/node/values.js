// SPDX-License-Identifier: Apache-2.0
// The values that the Node peers send, and a text for the values that they receive.
'use strict';

const java = require('js-to-java');

const LONG_TEXT = 'x'.repeat(32767) + '\u{1f600}' + 'y'.repeat(40000);

const shared = { $class: 'java.util.HashMap', $: { a: 1 } };

const point = (x, y) => java('spoke.interop.Point', { x: java.int(x), y: java.double(y) });

// One value per kind, with the Java type that the library needs to write it. A null has no type: the
// library dubbo-remoting derives java.lang.Object, and apache-dubbo-js needs one.
const kinds = {
	null: () => java('java.lang.Object', null),
	true: () => java.Boolean(true),
	false: () => java.Boolean(false),
	zero: () => java.Integer(0),
	int: () => java.Integer(-123456),
	long: () => java.Long('9007199254740993'),
	small_long: () => java.Long(5),
	double: () => java.Double(-2.5),
	third: () => java.Double(1 / 3),
	empty: () => java.String(''),
	string: () => java.String('h\u00e9llo \u4e16'),
	emoji: () => java.String('a\u{1f600}b'),
	long_string: () => java.String(LONG_TEXT),
	bytes: () => Buffer.from([1, 2, 255]),
	date: () => java('java.util.Date', new Date(1600000000123)),
	minutes: () => java('java.util.Date', new Date(1600000020000)),
	list: () => java('java.util.ArrayList', [1, 'two', null, [true]]),
	array: () => java.array('int', [1, 2, 3]),
	set: () => java('java.util.HashSet', ['a', 'b']),
	map: () => java('java.util.HashMap', { nested: { two: [2] }, one: 1 }),
	object: () => point(3, 4.5),
	nested: () => java('spoke.interop.Line', { from: point(1, 0.5), to: point(2, 1.5), name: 'l' }),
	enum: () => java.enum('spoke.interop.Color', 'RED'),
	decimal: () => java.BigDecimal('12.50'),
	shared: () => java('java.util.ArrayList', [shared, shared]),
};

function bytesText(bytes) {
	return bytes.length > 32 ? `bytes(${bytes.length})` : `bytes:${bytes.toString('hex')}`;
}

function stringText(text) {
	const units = [...Array(text.length).keys()].map(i => text.charCodeAt(i));
	if (text.length > 200)
		return `string(${text.length}, ${units.reduce((sum, unit) => (sum * 31 + unit) >>> 0, 7)})`;
	return `"${units.map(u => (u < 127 && u > 31 ? String.fromCharCode(u) : `\\u${u.toString(16).padStart(4, '0')}`)).join('')}"`;
}

// Returns a text in ASCII for a value as the library has read it. Libraries drop the names of classes.
function describe(value, above = []) {
	if (value === null || value === undefined)
		return 'null';
	if (typeof value === 'string')
		return stringText(value);
	if (typeof value !== 'object')
		return String(value);
	if (Buffer.isBuffer(value))
		return bytesText(value);
	if (value instanceof Date)
		return `date:${value.getTime()}`;
	if (value instanceof Error)
		return `error:${value.name}:${stringText(value.message)}`;
	if (above.includes(value))
		return 'cycle';
	const below = [...above, value];
	if (Array.isArray(value))
		return `[${value.map(item => describe(item, below)).join(', ')}]`;
	const keys = Object.keys(value).sort();
	return `{${keys.map(key => `${key}: ${describe(value[key], below)}`).join(', ')}}`;
}

module.exports = { kinds, describe };
