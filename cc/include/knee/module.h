/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rules of FreeBSD's released modules of HD and CHD that their papers do not have:
 * `preset=module` (docs/evidence/interpretations/chd.md).
 */
#ifndef KNEE_MODULE_H
#define KNEE_MODULE_H

#include "knee/contract.h"

enum { MODULE_PRESET_PAPER = 0, MODULE_PRESET_MODULE = 1 };

#define MODULE_PRESET_PARAM(X) \
	X(CC_CHOICE, preset, "preset", "", 0, 1, MODULE_PRESET_PAPER, "paper|module", \
	  "the papers; FreeBSD's released modules", \
	  "rules of the paper, or those that only the released module has")

/* Most packets that one ACK adds in slow start (RFC 3465 with L = 2). */
#define MODULE_SS_LIMIT_PKTS 2U

/* Slow start also at the threshold itself, and past it: after a reduction, which leaves the window
 * at the threshold, the first ACK adds up to two packets. Whether this ACK was one of slow start.
 */
static inline int module_slow_start(struct cc_conn *conn, u32 counted_pkts)
{
	if (conn->cwnd_pkts > conn->ssthresh_pkts)
		return 0;
	conn->cwnd_pkts = cc_min_u32(
	    cc_add_sat_u32(conn->cwnd_pkts, cc_min_u32(counted_pkts, MODULE_SS_LIMIT_PKTS)),
	    conn->cwnd_max_pkts);
	return 1;
}

#endif
