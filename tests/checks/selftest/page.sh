# SPDX-License-Identifier: Apache-2.0
cat <<'HTML' | plant cluster/admin/page.html
<p id="planted"></p>
<script>
e._set = e._compared === e._gone;
$("planted").append($("lacking"), $("k-" + user));
</script>
HTML
echo 'FACT(planted, MS("planted_ms"))' | plant cluster/admin/status.c
red page 'is read, but never set: ._gone' 'is read, but never set: ._compared' 'no element has the id lacking' \
	'does not describe "planted_ms"'
quiet ._set 'id planted' 'id k-'
