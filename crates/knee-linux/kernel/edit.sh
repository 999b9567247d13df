#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Edits a Linux source tree for the host `linux`. Usage: edit.sh TREE
#
# Each call of `edit` names a file, a function or section (`-`: the whole file), and a sed pattern. A pattern that
# matches another number of lines than expected ends the script with the name of the edit, before the tree is used.
set -eu
tree=${1:?usage: edit.sh TREE}

# edit FILE FUNCTION LINES PATTERN REPLACEMENT: the function runs from the first line that matches FUNCTION to the next
# line that begins with `}`; a section of Kconfig, to the next empty line.
edit() {
	file=$tree/$1
	[ -f "$file" ] || {
		echo "this kernel has no $1" >&2
		exit 3
	}
	case $2 in
	-) range='1,$' ;;
	config*) range="/$2/,/^\$/" ;;
	*) range="/$2/,/^}/" ;;
	esac
	found=$(sed -n "$range{\\@$4@p}" "$file" | wc -l)
	[ "$found" -eq "$3" ] || {
		echo "$1: $found lines of $2 match \`$4\`; $3 expected" >&2
		exit 3
	}
	sed -i "$range{s@$4@$5@}" "$file"
}

# Randomness comes from the seed that Knee gives (cc/host/linux/run.c), not from the machine, the build or the
# command line.
edit arch/um/os-Linux/util.c 'os_getrandom(' 1 '\<getrandom(' 'knee_random('
edit arch/um/os-Linux/util.c - 1 '^\(ssize_t \)os_\(getrandom(.*)\)$' 'long knee_random(void *, unsigned long, unsigned int);\n&'
edit drivers/char/random.c 'random_init\(_early\)\?(const' 2 '_mix_pool_bytes(\(init_utsname\|utsname\|command_line\)' 'if (0) &'

# The clock counts nanoseconds, and standing still costs nothing.
edit arch/um/include/linux/time-internal.h - 1 'TIMER_MULTIPLIER[[:space:]].*' 'TIMER_MULTIPLIER 1'
edit arch/um/include/linux/time-internal.h - 1 'TIMER_MIN_DELTA[[:space:]].*' 'TIMER_MIN_DELTA 1'
edit arch/um/kernel/time.c 'itimer_next_event(' 1 'delta += 1' 'delta += time_travel_mode != TT_MODE_INFCPU'
edit arch/um/kernel/time.c 'timer_read(' 1 'time_travel_update_time_rel(.*)' '(void)0'

# 250 ticks a second, as in the distributions' kernels.
edit arch/um/Kconfig 'config HZ$' 1 'default 100' 'default 250'

# Knee's own folder.
grep -q '^obj-y += knee/$' "$tree/net/Makefile" || printf 'obj-y += knee/\n' >>"$tree/net/Makefile"
