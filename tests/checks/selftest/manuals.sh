# SPDX-License-Identifier: Apache-2.0
printf '.Dd January 1, 2026\n.Dt PLANT 1\n.Os\n.Sh NAME\n.Nm plant\n.Nd a plant\n.Plant here\n' |
	plant examples/spoke/plant.1
sed 's/^\.It In spoke\/url\.h$/.It In spoke\/plant.h/; s/spoke_reply_error ./spoke_plant_error ./
	s/SPOKE_ECANCELED/SPOKE_EPLANTED/
	s/spoke_reply(request, text)/spoke_reply(plant)/' examples/spoke/spoke.3 \
	>"$copy/examples/spoke/spoke.3"
head -c 8193 "$copy/examples/spoke/spoke.1" | plant core/PLANT.md
echo 'See `call/planted` and `call/retry`.' | plant ARCHITECTURE.md
printf '\tX("planted", string, true, NULL)\n' | plant transport/wire/http/http.h
red manuals 'HTTP.md: does not describe "planted"' 'ARCHITECTURE.md: no floor has call/planted' 'core/PLANT.md: has 8193 bytes' 'MANUAL.md: has no link to core/PLANT.md' \
	'examples/spoke/plant.1: does not format cleanly' 'does not name <spoke/url.h>' \
	'names <spoke/plant.h>, which is not there' 'no header has spoke_plant_error' \
	'no header has SPOKE_EPLANTED' 'does not compile'
quiet call/retry 'link to core/VALUES.md' 'spoke.3: does not format' wheel_inline 'no header has spoke_call'

# Without mandoc there may be groff.
mkdir "$work/bin"
formats=groff
command -v groff >"$work/which" || formats='this needs mandoc or groff'
for tool in awk basename cat cc cmp comm dirname find grep grotty groff grops mktemp rm sed sh sort tbl tr troff wc; do
	path=$(command -v $tool) && ln -s "$path" "$work/bin/$tool"
done
usual=$PATH
[ "$formats" != groff ] || formats='examples/spoke/plant.1: does not format cleanly'
PATH=$work/bin
red manuals "$formats"
quiet 'spoke.3: does not format'
PATH=$usual
