/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixed-width integers. The underlying types are those of the kernel's own typedefs on every
 * architecture, so that a BPF build may see both.
 */
#ifndef KNEE_TYPES_H
#define KNEE_TYPES_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

_Static_assert(sizeof(u8) == 1 && sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8,
	       "integer widths");

#endif
