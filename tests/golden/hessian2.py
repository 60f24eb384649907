#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the recorded Hessian 2 frames contain, one line for each frame.

    python3 tests/golden/hessian2.py >tests/golden/hessian2-frames.tsv

Contains a reader of Hessian 2.0, written from the specification, and a writer of the msgpack values that
spoke delivers (transport/HESSIAN.md). The script shares no code with spoke, so the tests compare two readings
of the same bytes. Values of more than LONG_MAX bytes are replaced by their length and FNV-1a hash.
"""
import os
import re
import struct

FOLDER = os.path.dirname(os.path.abspath(__file__))
BATTERY = 'dubbo-2.7.23-hessian2'
UNSENT = ('Optional', 'Object java.util.concurrent.atomic.AtomicInteger')  # Java could not encode these

LONG_MAX = 600  # bytes that are written out


class Reader:
    """Reads values as tuples (kind, ...); containers are numbered in the order in which they begin."""

    def __init__(self, data):
        self.data, self.at = data, 0
        self.refs, self.classes, self.types = [], [], []

    def take(self, count):
        assert self.at + count <= len(self.data), 'truncated'
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, count, signed=True):
        return int.from_bytes(self.take(count), 'big', signed=signed)

    def units(self, count):
        """UTF-16 units, each in one to three bytes."""
        found = []
        for _ in range(count):
            first = self.number(1, False)
            if first < 0x80:
                found.append(first)
            elif first < 0xe0:
                assert first >= 0xc0, 'not a first byte'
                found.append((first & 0x1f) << 6 | self.number(1, False) & 0x3f)
            else:
                assert first < 0xf0, 'no unit has four bytes'
                second = self.number(1, False)
                found.append((first & 0xf) << 12 | (second & 0x3f) << 6 | self.number(1, False) & 0x3f)
        return found

    def text(self, tag):
        units = []
        while tag == 0x52:
            units += self.units(self.number(2, False))
            tag = self.number(1, False)
        if tag < 0x20:
            units += self.units(tag)
        elif 0x30 <= tag < 0x34:
            units += self.units((tag & 3) << 8 | self.number(1, False))
        else:
            assert tag == 0x53, 'not a string: %02x' % tag
            units += self.units(self.number(2, False))
        packed = struct.pack('>%dH' % len(units), *units)
        return packed.decode('utf-16-be', 'surrogatepass')

    def binary(self, tag):
        found = b''
        while tag == 0x41:
            found += self.take(self.number(2, False))
            tag = self.number(1, False)
        if 0x20 <= tag < 0x30:
            return found + self.take(tag - 0x20)
        if 0x34 <= tag < 0x38:
            return found + self.take((tag & 3) << 8 | self.number(1, False))
        assert tag == 0x42, 'not binary: %02x' % tag
        return found + self.take(self.number(2, False))

    def integer(self):
        kind, value = self.value()
        assert kind == 'int'
        return value

    def type_name(self):
        tag = self.data[self.at]
        if tag < 0x20 or 0x30 <= tag < 0x34 or tag in b'RS':
            self.types.append(self.value()[1])
            return self.types[-1]
        return self.types[self.integer()]

    def begin(self, kind, name):
        node = [kind, name, [], len(self.refs)]
        self.refs.append(node)
        return node

    def until_end(self, node):
        while self.data[self.at] != ord('Z'):
            node[2].append(self.value())
        self.at += 1
        return node

    def list_of(self, name, count):
        node = self.begin('list', name)
        if count is None:
            return self.until_end(node)
        for _ in range(count):
            node[2].append(self.value())
        return node

    def instance(self, number):
        name, fields = self.classes[number]
        node = self.begin('object', name)
        for field in fields:
            node[2] += [('text', field), self.value()]
        return node

    def value(self):
        tag = self.number(1, False)
        if tag == 0x4e:
            return ('null',)
        if tag in (0x54, 0x46):
            return ('bool', tag == 0x54)
        if 0x80 <= tag <= 0xbf:
            return ('int', tag - 0x90)
        if 0xc0 <= tag <= 0xcf:
            return ('int', (tag - 0xc8 << 8) + self.number(1, False))
        if 0xd0 <= tag <= 0xd7:
            return ('int', (tag - 0xd4 << 16) + self.number(2, False))
        if tag == 0x49:
            return ('int', self.number(4))
        if 0xd8 <= tag <= 0xef:
            return ('long', tag - 0xe0)
        if 0xf0 <= tag:
            return ('long', (tag - 0xf8 << 8) + self.number(1, False))
        if 0x38 <= tag <= 0x3f:
            return ('long', (tag - 0x3c << 16) + self.number(2, False))
        if tag == 0x59:
            return ('long', self.number(4))
        if tag == 0x4c:
            return ('long', self.number(8))
        if tag in (0x5b, 0x5c):
            return ('double', float(tag - 0x5b))
        if tag in (0x5d, 0x5e):
            return ('double', float(self.number(tag - 0x5c)))
        if tag == 0x5f:
            return ('double', 0.001 * self.number(4))
        if tag == 0x44:
            return ('double', struct.unpack('>d', self.take(8))[0])
        if tag == 0x4a:
            return ('date', self.number(8))
        if tag == 0x4b:
            return ('date', self.number(4) * 60000)
        if tag < 0x20 or 0x30 <= tag < 0x34 or tag in b'RS':
            return ('text', self.text(tag))
        if 0x20 <= tag < 0x30 or 0x34 <= tag < 0x38 or tag in b'AB':
            return ('binary', self.binary(tag))
        if tag == 0x55:
            return self.list_of(self.type_name(), None)
        if tag == 0x56:
            return self.list_of(self.type_name(), self.integer())
        if tag == 0x57:
            return self.list_of(None, None)
        if tag == 0x58:
            return self.list_of(None, self.integer())
        if 0x70 <= tag <= 0x77:
            return self.list_of(self.type_name(), tag - 0x70)
        if 0x78 <= tag <= 0x7f:
            return self.list_of(None, tag - 0x78)
        if tag == 0x48:
            return self.until_end(self.begin('map', None))
        if tag == 0x4d:
            return self.until_end(self.begin('map', self.type_name()))
        if tag == 0x43:
            name = self.value()[1]
            self.classes.append((name, [self.value()[1] for _ in range(self.integer())]))
            return self.value()
        if 0x60 <= tag <= 0x6f:
            return self.instance(tag - 0x60)
        if tag == 0x4f:
            return self.instance(self.integer())
        if tag == 0x51:
            number = self.integer()
            return ('ref', self.refs[number], len(self.refs) - number)
        raise AssertionError('no value begins with %02x' % tag)

    def rest(self):
        found = []
        while self.at < len(self.data):
            found.append(self.value())
        return found


# --- the values that spoke delivers

def number_of(value):
    if 0 <= value < 128 or -32 <= value < 0:
        return struct.pack('b' if value < 0 else 'B', value)
    for head, form, low, high in ((0xcc, '>B', 0, 1 << 8), (0xcd, '>H', 0, 1 << 16), (0xce, '>I', 0, 1 << 32),
                                  (0xd0, '>b', -1 << 7, 0), (0xd1, '>h', -1 << 15, 0), (0xd2, '>i', -1 << 31, 0)):
        if low <= value < high:
            return bytes([head]) + struct.pack(form, value)
    return b'\xd3' + struct.pack('>q', value)


def sized(count, small, heads):
    """The head of a value with a length; small: (first byte, limit)."""
    if count < small[1]:
        return bytes([small[0] | count])
    for head, form, limit in heads:
        if count < limit:
            return bytes([head]) + struct.pack(form, count)
    raise AssertionError('too long')


WIDE = (('>B', 1 << 8), ('>H', 1 << 16), ('>I', 1 << 32))


def text_of(text):
    data = text.encode('utf-8', 'surrogatepass')
    return sized(len(data), (0xa0, 32), [(0xd9 + i, *WIDE[i]) for i in range(3)]) + data


def typed_ext(data):
    return b'\xc9' + struct.pack('>Ib', len(data), 72) + data


def ext_of(kind, data):
    fixed = {1: 0xd4, 2: 0xd5, 4: 0xd6, 8: 0xd7, 16: 0xd8}
    if len(data) in fixed:
        return bytes([fixed[len(data)]]) + struct.pack('b', kind) + data
    head = sized(len(data), (0, 0), [(0xc7 + i, *WIDE[i]) for i in range(3)])
    return head + struct.pack('b', kind) + data


def date_of(ms):
    seconds, nanos = ms // 1000, ms % 1000 * 1000000
    if seconds >> 34 == 0:
        joined = nanos << 34 | seconds
        return ext_of(-1, struct.pack('>Q', joined) if joined >> 32 else struct.pack('>I', joined))
    return ext_of(-1, struct.pack('>Iq', nanos, seconds))


def list_bytes(values):
    body = b''.join(pack(value) for value in values)
    return sized(len(values), (0x90, 16), [(0xdc, *WIDE[1]), (0xdd, *WIDE[2])]) + body


def map_bytes(values):
    return b'\xdf' + struct.pack('>I', len(values) // 2) + b''.join(pack(value) for value in values)


open_nodes = []


def object_bytes(node):
    found = b'\xde' + struct.pack('>H', len(node[2]) // 2 + 1)
    for i in range(0, len(node[2]), 2):
        key, value = node[2][i], node[2][i + 1]
        # Java's "no cause" is the exception itself.
        none = value[0] == 'ref' and value[1] is node and key[1] == 'cause'
        found += pack(key) + (ext_of(82, number_of(value[2]) + b'\xc0') if none else pack(value))
    return found + text_of('class') + text_of(node[1])


def container_bytes(node):
    kind, name = node[0], node[1]
    open_nodes.append(node)
    if kind == 'object':
        found = object_bytes(node)
    else:
        found = list_bytes(node[2]) if kind == 'list' else map_bytes(node[2])
    open_nodes.pop()
    return found if kind == 'object' or name is None else typed_ext(text_of(name) + found)


def pack(value):
    kind = value[0]
    if kind == 'null':
        return b'\xc0'
    if kind == 'bool':
        return b'\xc3' if value[1] else b'\xc2'
    if kind == 'int':
        return number_of(value[1])
    if kind == 'long':
        return b'\xd3' + struct.pack('>q', value[1])
    if kind == 'double':
        return b'\xcb' + struct.pack('>d', value[1])
    if kind == 'date':
        return date_of(value[1])
    if kind == 'text':
        return text_of(value[1])
    if kind == 'binary':
        return sized(len(value[1]), (0, 0), [(0xc4 + i, *WIDE[i]) for i in range(3)]) + value[1]
    if kind == 'ref':
        is_open = any(node is value[1] for node in open_nodes)
        return ext_of(82, number_of(value[2]) + (b'\xc0' if is_open else container_bytes(value[1])))
    return container_bytes(value)


# --- messages

def exception_bytes(node):
    """The class, and the fields with `message` instead of `detailMessage`."""
    found = sized(len(node[2]) // 2, (0x80, 16), [(0xde, *WIDE[1])])
    open_nodes.append(node)
    for i in range(0, len(node[2]), 2):
        key, value = node[2][i], node[2][i + 1]
        if key[1] == 'detailMessage':
            key = ('text', 'message')
        none = value[0] == 'ref' and value[1] is node and key[1] == 'cause'
        found += pack(key) + (b'\xc0' if none else pack(value))
    open_nodes.pop()
    return text_of(node[1]) + found


def reply_bytes(values):
    found = b''
    marker = values[0][1]
    for i, value in enumerate(values):
        found += exception_bytes(value) if i == 1 and marker % 3 == 0 else pack(value)
    return found


KINDS = {0x80: 'request', 0xc0: 'request', 0x00: 'reply', 0xe0: 'probe', 0x20: 'answer', 0xa0: 'event'}


def readable(value, depth=0):
    """A value as a reader likes it, cut short."""
    kind = value[0]
    if kind == 'null':
        return 'null'
    if kind == 'ref':
        return '<ref %d>' % value[2]
    if kind == 'text':
        text = value[1].encode('unicode_escape').decode()
        return '"%s"' % (text if len(text) < 60 else text[:56] + '...')
    if kind == 'binary':
        return '<%d bytes>' % len(value[1])
    if kind == 'list':
        return '%s[%s]' % (value[1] or '', ', '.join(readable(each) for each in value[2][:12]))
    if kind in ('map', 'object'):
        each = ['%s: %s' % (readable(value[2][i]), readable(value[2][i + 1])) for i in range(0, len(value[2]), 2)]
        return '%s{%s}' % (value[1] or '', ', '.join(each))
    return '%s %s' % (kind, value[1])


def fnv(data):
    state = 0xcbf29ce484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return state


def told(frame):
    flags, status, body = frame[2], frame[3], frame[16:]
    kind = KINDS[flags & 0xe0]
    if kind not in ('request', 'reply'):
        return [kind, '', '', '', body.hex(), '-']
    reader = Reader(body)
    values = reader.rest()
    if kind == 'request':
        columns = [kind, values[3][1], values[4][1], str(len(values) - 6)]
        packed = b''.join(pack(value) for value in values[:-1])
        last = values[-1]
        assert last[0] == 'map' or last[0] == 'null'
        packed += map_bytes(last[2])
        shown = values[5:]
    elif status == 20:
        columns = [kind, str(values[0][1]), '', '']
        packed = reply_bytes(values)
        shown = values[1:]
    else:
        columns, packed, shown = [kind, '', '', ''], pack(values[0]), values
        assert len(values) == 1
    text = packed.hex() if len(packed) <= LONG_MAX else 'fnv=%016x;length=%d' % (fnv(packed), len(packed))
    return columns + [text, '; '.join(readable(each) for each in shown)[:200].rstrip() or '-']


def golden(name):
    with open(os.path.join(FOLDER, name), encoding='utf-8', newline='\n') as file:
        return file.read().split('\n')


def calls():
    """The labels of the calls that were sent, in order."""
    for line in golden(BATTERY + '.calls'):
        match = re.match(r'(?:ok|DIFF) +(.*?) +\d+\.\dms ', line)
        if match and match.group(1) not in UNSENT:
            yield match.group(1)


def frames():
    for line in golden('dubbo-frames.tsv')[1:-1]:
        column = line.split('\t')
        frame = bytes.fromhex(column[7])
        if frame[2] & 0x1f == 2:
            yield column[0] + ' ' + column[1], '', frame
    label, labels = '', calls()
    for number, line in enumerate(golden(BATTERY + '.frames')[:-1]):
        way, frame = line.split()
        if way == '->':
            label = next(labels, '')
        yield '%s %d' % (BATTERY, number + 1), label, bytes.fromhex(frame)


def main():
    print('\t'.join(('frame', 'call', 'kind', 'name', 'types', 'args', 'values', 'readable')))
    for name, call, frame in frames():
        print('\t'.join([name, call] + told(frame)))


if __name__ == '__main__':
    main()
