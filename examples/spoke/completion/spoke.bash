# SPDX-License-Identifier: Apache-2.0
# bash completion for spoke
_spoke() {
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local verb=${COMP_WORDS[1]} options= schemes=
	local verbs="call serve bench ping top ls watch tap lock comet certs offline online journal config help"

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$verbs --help --version" -- "$current")
		return
	fi
	# bash splits --option=value, @file and host:port into words.
	if [ "$current" = = ]; then
		current=
	elif [ "$before" = = ]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	[ "$current" != @ ] || { before=@ && current=; }
	[ "$verb $before" != "call -w" ] && [ "$verb $before" != "bench -w" ] &&
		[ "$verb $before" != "ping -w" ] || before=--wire
	case $before in
	: | *://*) return ;;
	@ | --config | --check | --token-file | --admin-token-file | --cert | --key | --ca)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	--wire)
		mapfile -t COMPREPLY < <(compgen -W "dubbo mprpc" -- "$current")
		return
		;;
	--serialization)
		mapfile -t COMPREPLY < <(compgen -W "hessian2 msgpack auto" -- "$current")
		return
		;;
	--cluster)
		mapfile -t COMPREPLY < <(compgen -W "failover failfast failsafe failback forking broadcast available" -- "$current")
		return
		;;
	esac
	case $verb in
	call) options="--timeout --retries --idempotent --cluster --attachment --data --wire --types --generic --serialization --version --group --wait --token --token-file --token-plain --tls --cert --key --ca --peer --config --notify --json --verbose --plain --help" ;;
	serve) options="--service --version --group --port --registry --advertise --heartbeat --weight --delay --drop-rate --freeze-after --token --token-file --tls --cert --key --ca --config --admin --admin-token-file --quiet --plain --help" ;;
	bench) options="--concurrency --rate --calls --duration --warm-up --connections --size --data --timeout --wire --token --token-file --token-plain --tls --cert --key --ca --peer --json --quiet --plain --help" ;;
	ping) options="--count --interval --timeout --heartbeat --service --wire --token --token-file --token-plain --tls --cert --key --ca --peer --quiet --json --plain --help" ;;
	top) options="--interval --count --once --settings --plain --help" ;;
	ls) options="--json --timeout --plain --help" ;;
	watch) options="--json --plain --help" ;;
	tap) options="--json --quiet --raw --full --plain --help" ;;
	lock) options="--wait --ttl --grace --list --break --yes --config --json --quiet --verbose --plain --help" ;;
	comet) options="--check --admin --quiet --plain --help" ;;
	certs) options="--name --days --ed25519 --p256 --for --plain --help" ;;
	offline) options="--token --token-file --timeout --plain --help" ;;
	online) options="--token --token-file --timeout --plain --help" ;;
	journal) options="--json --plain --help" ;;
	config) options="--check --explain --man --plain --help" ;;
	help)
		mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$current")
		return
		;;
	esac
	if [ "$verb" = lock ] && [[ " ${COMP_WORDS[*]:0:COMP_CWORD} " = *" -- "* ]]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
		return
	fi
	case $current in
	-*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current") ;;
	*:*) ;;
	*)
		if [ "$verb" = journal ] && [ "$COMP_CWORD" -gt 2 ]; then
			mapfile -t COMPREPLY < <(compgen -W "list show check export drop retry repair" -- "$current")
			return
		fi
		if [ "$verb" = comet ] || [ "$verb" = certs ] || [ "$verb" = journal ]; then
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
			return
		fi
		if [ "$verb" = config ]; then
			mapfile -t COMPREPLY < <(compgen -W "$(spoke config --explain | sed -n 's/^  \([a-z][a-z.]*\).*/\1/p')" -- "$current")
			return
		fi
		compopt -o nospace
		if [ "$verb" = lock ]; then
			mapfile -t COMPREPLY < <(compgen -W "redis:// redis+unix:// sentinel://" -- "$current")
		else
			schemes=$(spoke help ls | sed -n '/^REGISTRY is /p' | grep -o '[a-z]*://')
			if [ "$verb" != ls ] && [ "$verb" != watch ]; then
				schemes="$schemes dubbo:// msgpack-rpc:// tcp:// unix:"
			fi
			mapfile -t COMPREPLY < <(compgen -W "$schemes" -- "$current")
		fi
		;;
	esac
}
complete -F _spoke spoke
