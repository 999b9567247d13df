#!/usr/bin/env bash
# Checks the C sources: format; no warning from gcc or clang; every header stands alone.
# KNEE_CLANG, KNEE_CLANG_FORMAT and KNEE_GCC name other tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The first of the given commands that exists, of the Debian package named first.
tool() {
	local package=$1
	shift
	for candidate in "$@"; do
		if command -v "$candidate" >/dev/null; then
			printf '%s\n' "$candidate"
			return
		fi
	done
	echo "none of: $*; install the Debian package $package" >&2
	return 1
}
clang=${KNEE_CLANG:-$(tool clang-19 clang-19 clang)}
clang_format=${KNEE_CLANG_FORMAT:-$(tool clang-format-19 clang-format-19 clang-format)}
gcc=${KNEE_GCC:-$(tool gcc gcc)}

mapfile -t all < <(find cc -name '*.[ch]' | sort)
# The BPF host's are compiled with each algorithm, by crates/knee-kernel; those of cc/host/module and cc/host/linux need
# a kernel's headers and are compiled with it, by crates/knee-linux.
mapfile -t sources < <(find cc -name '*.c' -not -path 'cc/host/bpf/*' -not -path 'cc/host/module/*' \
	-not -path 'cc/host/linux/*' | sort)
mapfile -t headers < <(find cc/include -name '*.h' | sort)
[[ ${#sources[@]} -gt 0 && ${#headers[@]} -gt 0 ]]

"$clang_format" --dry-run --Werror "${all[@]}"
echo "format: ${#all[@]} files ($("$clang_format" --version))"

flags=(-std=c11 -O2 -ffreestanding -Wall -Wextra -Werror -Wconversion -Wsign-conversion
	-Icc/include -Icc/host/native)
for compiler in "$gcc" "$clang"; do
	for source in "${sources[@]}"; do
		"$compiler" "${flags[@]}" -c "$source" -o /dev/null
	done
	for header in "${headers[@]}"; do
		printf '#include "%s"\n' "${header#cc/include/}" |
			"$compiler" "${flags[@]}" -fsyntax-only -x c -
	done
	echo "warnings: ${#sources[@]} sources, ${#headers[@]} headers" \
		"($("$compiler" --version | head -n 1))"
done
