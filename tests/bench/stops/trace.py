# SPDX-License-Identifier: Apache-2.0
# For gdb, which run.sh starts: single-steps from each read until the next one, or until the callback,
# and writes the functions that are entered on the way, each with its file, to the file `out`.
import gdb

WORLD = ("core/virtual/", "tests/")  # not the product


def register(name):
    return int(gdb.parse_and_eval("$" + name)) & (2**64 - 1)


def function_at(pc):
    """The name of the function whose first instruction is at this address, or None."""
    text = gdb.execute("info symbol %d" % pc, to_string=True)
    name = text.split(" in section")[0].strip()
    return None if " + " in name or text.startswith("No symbol") else name


def file_of(name, pc):
    symbol = gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name)
    symtab = symbol.symtab if symbol else gdb.find_pc_line(pc).symtab
    return symtab.filename.replace("../", "") if symtab else "?"


def trace():
    """Returns the entries (depth, name, file), or None if another read comes before the callback."""
    gdb.execute("finish", to_string=True)
    gdb.execute("finish", to_string=True)
    entries, stack, returns = [], [], 0
    while True:
        gdb.execute("stepi", to_string=True)
        pc = register("pc")
        name = function_at(pc)
        if name is None:
            continue
        if name == "stops_read":
            return None
        sp = register("sp")
        while stack and stack[-1] <= sp:
            stack.pop()
            returns += 1
        stack.append(sp)
        entries.append((len(stack) - 1, name, file_of(name, pc)))
        if name == "stops_called_back":
            return entries, returns


def write(lines, entries, returns):
    files, at, climbs = set(), {}, 0
    for depth, name, path in entries[:-1]:
        climbs += depth > 0 and at[depth - 1] != path
        at[depth] = path
        files.add(path)
    for depth, name, path in entries:
        lines.append("%s%s  %s" % ("  " * depth, name, path))
    lines.append("# %d functions, %d files, %d climbs, %d returns"
                 % (len(entries), len(files), climbs, returns))


lines = []
gdb.execute("set pagination off")
gdb.execute("break stops_read", to_string=True)
gdb.execute("run", to_string=True)
while gdb.selected_inferior().pid:
    found = trace()
    if found:
        write(lines, *found)
        gdb.execute("continue", to_string=True)
with open(out, "w") as text:
    text.write("\n".join(lines) + "\n")
