#!/usr/bin/env bash
# Proves with Frama-C's Eva that the algorithms' C has no runtime errors.
# docs/explanation/proof.md states the assumptions.
#
#   scripts/prove.sh [NAME ...]            the algorithms named, or all
#   scripts/prove.sh --due                 those whose sources differ from the proved ones; if none, the quickest
#   scripts/prove.sh --planted [NAME ...]  a bug planted in each must raise an alarm, one in a state break its invariant
#   scripts/prove.sh --record [NAME ...]   writes the open alarms to proofs/open.txt
#
# proofs/open.txt lists the alarms that are not explained away yet: an alarm that is not in it, or
# one in it that no longer comes, is an error. proofs/proved.txt has a line for each algorithm that is proved: name,
# digest of the analysed sources, seconds of processor time. A proof writes it; commit it with the change.
#
# KNEE_PROVE_JOBS: analyses at a time, else one per core; KNEE_PROVE_SECONDS: the longest that one may take, else 900;
# KNEE_PROVE_BUDGET: --due ends after so many seconds, and fails if something is left; else it proves all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v frama-c >/dev/null; then
	echo "no frama-c; install the Debian package frama-c-base" >&2
	exit 1
fi

# Small functions whose results must keep their relation to the arguments; the same without names.
inlined=cc_min_u32,cc_max_u32,cc_min_u64,cc_max_u64,cc_sub_floor_u32,cc_sub_floor_u64
inlined+=,cc_add_sat_u32,cc_delay_trusts
# Functions known by their specification only (docs/explanation/proof.md): arithmetic made to wrap, by name, and
# those whose bounds are proved apart; the latter of knee/abse.h.
specified=cc_wrapping_sub_u32,cc_wrapping_sub_u64,cc_shift_out_u64,cc_mul_up_to_u64
abse_specified=abse_part,abse_rate_q24,abse_within_q11,abse_within_us,abse_take_q11
abse_specified+=,abse_backlog_us,abse_towards_q24,abse_mean
# Least and most of the largest window: any; then QUIC's, so that a window above the host's own maximum shows.
ranges="2U:CC_CWND_MAX_PKTS 1048576U:1048576U"

# analyse ROOT NAME LOG [CWND_LEAST CWND_MOST]: Eva on an algorithm under ROOT.
analyse() {
	local root=$1 name=$2 log=$3 least=$4 most=$5 known=$specified more=()
	if grep -q '"knee/abse.h"' "$root/cc/algorithms/$name.c"; then
		known+=,$abse_specified
		# A case for each number of leading zeros, and for the cases of a split annotation; as many
		# rounds without widening as the bounds of the state take to settle.
		more=(-eva-split-return-function prove_leading_zeros:full
			-eva-slevel-function prove_leading_zeros:100,abse_float:100,abse_ratio_q20:400
			-eva-interprocedural-splits -eva-widening-delay 8)
	fi
	(
		cd "$root"
		timeout "${KNEE_PROVE_SECONDS:-900}" frama-c -eva -eva-precision 2 -eva-partition-history 1 \
			-eva-domains octagon,symbolic-locations,equality \
			-warn-signed-overflow -warn-unsigned-overflow \
			-warn-signed-downcast -warn-unsigned-downcast \
			-eva-warn-key builtins:missing-spec=abort \
			-kernel-warn-key annot:missing-spec=abort \
			-kernel-warn-key typing:implicit-function-declaration=abort \
			-inline-calls "$inlined" -eva-use-spec "$known" "${more[@]}" \
			-cpp-extra-args="-DPROVE_CWND_LEAST_PKTS=$least -DPROVE_CWND_MOST_PKTS=$most -Iproofs -Icc/include" \
			"cc/algorithms/$name.c"
	) >"$log" 2>&1
}

# digest NAME: of the algorithm's sources and how they are analysed. Comments and blanks do not count; annotations do.
digest() {
	local ours
	mapfile -t ours < <(gcc -MM -MG -Iproofs -Icc/include "cc/algorithms/$1.c" | tr -d '\134' | tr ' ' '\n' |
		grep -E '^(cc|proofs)/' | LC_ALL=C sort)
	{
		sed -n '/^inlined=/,/^# digest /p' scripts/prove.sh | grep -v '^[[:space:]]*#'
		perl -0777 -pe 's{("(?:\\.|[^"\\])*")|/\*(?!\@).*?\*/|//(?!\@)[^\n]*}{$1 // " "}gse; s/\s+/ /g' "${ours[@]}"
	} | sha256sum | cut -c1-32
}

# alarms NAME LOG: a line for each alarm, "NAME FILE:LINE WHAT", and for each invariant of the state that may not hold;
# exit 1 if the analysis is not one.
alarms() {
	local name=$1 log=$2
	if ! grep -q '^\[eva:summary\]' "$log"; then
		echo "$name: no analysis:" >&2
		tail -n 20 "$log" >&2
		return 1
	fi
	# A warning's text continues in indented lines.
	awk -v name="$name" '
		function flush() { if (text != "") { gsub(/ +/, " ", text); print name, text } text = "" }
		/^\[eva:alarm\]/ { flush(); sub(/^\[eva:alarm\] /, ""); sub(/ Warning: */, " "); text = $0; next }
		text != "" && /^  / { text = text " " $0; next }
		{ flush() }
		END { flush() }' "$log" | sed -E 's/:([0-9]+): /:\1 /' | sort -u
	grep -oE 'Frama_C_show_each_violated_[a-z0-9_]+' "$log" | sort -u |
		sed "s|^Frama_C_show_each_violated_|$name cc/algorithms/$name.c invariant |" || true
}

# unreached NAME LOG: the callbacks from which no call returns.
unreached() {
	local name=$1 log=$2 callbacks="init ssthresh on_event undo observe on_ack"
	grep -q 'KNEE_RATE_ALGORITHM' "cc/algorithms/$name.c" || callbacks+=" on_rtt"
	for callback in $callbacks; do
		grep -q "Frama_C_show_each_returned_$callback:" "$log" || echo "$callback"
	done
}

# prove ROOT OUT NAME: OUT/NAME.alarms, OUT/NAME.unreached, OUT/NAME.seconds of processor time; OUT/NAME.failed if not,
# OUT/NAME.late if KNEE_PROVE_END, in seconds of the system's clock, came first. In a shell of its own.
prove() {
	local root=$1 out=$2 name=$3 missing range least most left
	: >"$out/$name.all"
	: >"$out/$name.unreached"
	for range in $ranges; do
		least=${range%:*} most=${range#*:}
		local log="$out/$name.${most//[^0-9A-Z]/}.log"
		if [[ -n ${KNEE_PROVE_END:-} ]]; then
			left=$((KNEE_PROVE_END - $(date +%s)))
			[[ $left -gt 0 ]] || { touch "$out/$name.late"; return; }
			[[ $left -gt ${KNEE_PROVE_SECONDS:-900} ]] || KNEE_PROVE_SECONDS=$left
		fi
		analyse "$root" "$name" "$log" "$least" "$most" || true
		if ! alarms "$name" "$log" >>"$out/$name.all" 2>"$out/$name.why"; then
			if [[ -n ${KNEE_PROVE_END:-} && $(date +%s) -ge $KNEE_PROVE_END ]]; then
				touch "$out/$name.late"
				return
			fi
			cat "$out/$name.why" >&2
			touch "$out/$name.failed"
			return
		fi
		missing=$(unreached "$name" "$log")
		if [[ -n $missing ]]; then
			printf '%s\n' "$missing" >>"$out/$name.unreached"
		fi
	done
	sort -u "$out/$name.all" >"$out/$name.alarms"
	times >"$out/$name.times"
	awk 'NR == 2 { gsub("s", ""); split($1 "m" $2, t, "m"); printf "%.0f\n", 60 * (t[1] + t[3]) + t[2] + t[4] }' \
		"$out/$name.times" >"$out/$name.seconds"
}

mode=prove
case ${1:-} in
--planted | --record | --due)
	mode=${1#--}
	shift
	;;
-*)
	sed -n '2,15s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
names=("$@")
if [[ ${#names[@]} -eq 0 ]]; then
	mapfile -t names < <(cd cc/algorithms && printf '%s\n' *.c | sed 's/\.c$//')
fi
for name in "${names[@]}"; do
	if [[ ! -f cc/algorithms/$name.c ]]; then
		echo "$name: no such algorithm (cc/algorithms/$name.c)" >&2
		exit 2
	fi
done

# isdue NAME: true if proofs/proved.txt does not have it as it is.
isdue() { ! grep -q "^$1 $(digest "$1") " proofs/proved.txt; }

# by_time: names in, one a line, those that took least in the last proof first; unknown ones last, small files first.
by_time() {
	local name
	while read -r name; do
		echo "$(sed -n "s/^$name [0-9a-f]* //p" proofs/proved.txt | grep . || echo 999999) \
			$(wc -c <"cc/algorithms/$name.c") $name"
	done | sort -n -k1,1 -k2,2 | awk '{ print $3 }'
}

if [[ $mode == due ]]; then
	mapfile -t all < <(printf '%s\n' "${names[@]}" | by_time)
	names=()
	for name in "${all[@]}"; do
		if isdue "$name"; then names+=("$name"); fi
	done
	if [[ ${#names[@]} -eq 0 ]]; then
		echo "nothing is due: all ${#all[@]} algorithms are as they were proved"
		# One proof shows that proofs still work here.
		names=("${all[0]}")
	else
		echo "due: ${names[*]}"
	fi
	[[ -z ${KNEE_PROVE_BUDGET:-} ]] || export KNEE_PROVE_END=$(($(date +%s) + KNEE_PROVE_BUDGET))
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jobs=${KNEE_PROVE_JOBS:-$(nproc)}
export -f prove analyse alarms unreached
export inlined specified abse_specified ranges

if [[ $mode == planted ]]; then
	status=0
	bugs=()
	for name in "${names[@]}"; do
		if [[ ! -f proofs/planted/$name.patch ]]; then
			echo "$name: no planted bug (proofs/planted/$name.patch)" >&2
			status=1
			continue
		fi
		bugs+=("$name")
		[[ ! -f proofs/planted/$name-invariant.patch ]] || bugs+=("$name-invariant")
	done
	for bug in "${bugs[@]}"; do
		patch=proofs/planted/$bug.patch
		mkdir -p "$work/$bug/tree" "$work/$bug/out"
		cp -r cc proofs "$work/$bug/tree"
		if ! patch -s -p1 -d "$work/$bug/tree" <"$patch"; then
			echo "$bug: $patch does not apply any more" >&2
			status=1
			rm -rf "${work:?}/$bug"
		fi
	done
	# shellcheck disable=SC2016 # the inner shell expands
	printf '%s\n' "${bugs[@]}" | xargs -P "$jobs" -I{} bash -c \
		'[[ -d $1/$2 ]] && prove "$1/$2/tree" "$1/$2/out" "${2%-invariant}"; true' _ "$work" {}
	for bug in "${bugs[@]}"; do
		name=${bug%-invariant}
		found=$work/$bug/out/$name.alarms
		[[ -f $found ]] || { status=1; continue; }
		# Lines move with a patch: only an alarm of a kind that is not in proofs/open.txt counts.
		new=$(cut -d' ' -f3- "$found" | sort | comm -23 - \
			<(grep "^$name " proofs/open.txt | cut -d' ' -f3- | sort))
		# A bug in the state causes no runtime error: nothing but its invariant shows it.
		[[ $bug == "$name" ]] || new=$(grep '^invariant ' <<<"$new" || true)
		new=${new%%$'\n'*}
		if [[ -n $new ]]; then
			echo "$bug: found: $new"
		else
			echo "$bug: NOT FOUND"
			status=1
		fi
	done
	exit "$status"
fi

# By WP: the functions whose bounds Eva takes from their specification, and two invariants of several algorithms' state
# that relate its fields, which a sample leaves so.
lemmas() {
	cat >"$work/lemmas.c" <<-'END'
		#define _Static_assert(a, b) extern int unused_
		/*@ assigns \result \from x; */
		int __builtin_clzll(unsigned long long x);
		#include "knee/abse.h"
		#include "knee/delay.h"
		#include "knee/mean.h"
		/*@ requires \valid(delay);
		    assigns *delay;
		    ensures delay->rtt_min_us + delay->q_us <= delay->rtt_max_us; */
		void delay_range(struct cc_delay *delay, u32 rtt_us) { cc_delay_sample(delay, rtt_us); }
		/*@ requires \valid(mean) && mean->n <= mean->sum_us <= mean->n * CC_TIME_MAX_US;
		    assigns *mean;
		    ensures mean->n <= mean->sum_us <= mean->n * CC_TIME_MAX_US; */
		void mean_range(struct cc_mean *mean, u32 rtt_us) { cc_mean_sample(mean, rtt_us); }
	END
	WHY3CONFIG=$work/why3.conf why3 config detect >/dev/null 2>&1 || true
	WHY3CONFIG=$work/why3.conf timeout 300 frama-c \
		-inline-calls cc_min_u32,cc_min_u64,cc_max_u32,cc_delay_sample,cc_mean_sample -wp -wp-rte \
		-warn-unsigned-overflow -warn-unsigned-downcast \
		-wp-fct "cc_mul_up_to_u64,$abse_specified,delay_range,mean_range" \
		-wp-prover z3 -wp-timeout 60 -cpp-extra-args=-Icc/include "$work/lemmas.c" \
		>"$work/lemmas.log" 2>&1 || true
	local goals
	goals=$(sed -n 's/^\[wp\] Proved goals: *//p' "$work/lemmas.log")
	echo "lemmas: $goals goals proved"
	[[ -n $goals && ${goals%% */*} -eq ${goals##*/ } ]]
}

start=$SECONDS
status=0
lemmas || { tail -n 20 "$work/lemmas.log" >&2; status=1; }
# remember NAME [SECONDS]: proved in so many seconds, as it was when the proof began; without them, not proved.
remember() {
	local name=$1 seconds=${2:-} new=""
	[[ -z $seconds ]] || new="$name $(cat "$work/$name.digest")"
	# Another time for the same proof is no news.
	[[ -z $new ]] || ! grep -q "^$new " proofs/proved.txt || return 0
	{
		grep -v "^$name " proofs/proved.txt || true
		[[ -z $new ]] || echo "$new $seconds"
	} | LC_ALL=C sort >"$work/proved.txt"
	cp "$work/proved.txt" proofs/proved.txt
}

for name in "${names[@]}"; do digest "$name" >"$work/$name.digest"; done
# shellcheck disable=SC2016 # the inner shell expands
printf '%s\n' "${names[@]}" | xargs -P "$jobs" -I{} bash -c 'prove . "$1" "$2"' _ "$work" {}
late=()
for name in "${names[@]}"; do
	if [[ -e $work/$name.late ]]; then
		late+=("$name")
		continue
	fi
	if [[ -e $work/$name.failed || ! -f $work/$name.alarms ]]; then
		echo "$name: NOT ANALYSED"
		status=1
		remember "$name"
		continue
	fi
	recorded=$(grep "^$name " proofs/open.txt | sort -u || true)
	found=$(cat "$work/$name.alarms")
	missing=$(sort -u "$work/$name.unreached" | tr '\n' ' ')
	if [[ -n $missing ]]; then
		echo "$name: NOT REACHED: $missing"
		status=1
		remember "$name"
		continue
	fi
	if [[ $mode == record ]]; then
		sed -i "/^$name /d" proofs/open.txt
		[[ -z $found ]] || printf '%s\n' "$found" >>proofs/open.txt
		recorded=$found
	fi
	if [[ $found != "$recorded" ]]; then
		echo "$name: NOT AS RECORDED (> now, < in proofs/open.txt)"
		diff <(printf '%s\n' "$recorded") <(printf '%s\n' "$found") | grep '^[<>] .' | sed 's/^/  /' || true
		status=1
		remember "$name"
		continue
	elif [[ -n $found ]]; then
		echo "$name: $(wc -l <"$work/$name.alarms") alarms open, as recorded ($(cat "$work/$name.seconds") s)"
	else
		echo "$name: no alarm, all callbacks reached ($(cat "$work/$name.seconds") s)"
	fi
	remember "$name" "$(cat "$work/$name.seconds")"
done
if [[ ${#late[@]} -gt 0 ]]; then
	echo "NOT PROVED, for want of time: ${late[*]}. Run scripts/prove.sh --due and commit proofs/proved.txt" >&2
	status=1
fi
[[ $mode != record ]] || sort -o proofs/open.txt proofs/open.txt
echo "${#names[@]} algorithms in $((SECONDS - start)) s"
exit "$status"
