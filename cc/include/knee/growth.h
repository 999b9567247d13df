/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Growth by a fractional number of packets per round trip.
 */
#ifndef KNEE_GROWTH_H
#define KNEE_GROWTH_H

#include "knee/contract.h"

/* Largest alpha that cc_grow_q16() takes: 2^22.6 packets. */
#define CC_ALPHA_MAX_Q16 (6U * 1000000ULL << 16)
/* Most packets that one ACK counts for in cc_grow_q16(). */
#define CC_COUNTED_MAX_PKTS (1U << 25)

/*
 * cwnd += alpha/cwnd for each counted packet (H-TCP paper eq. 1, the increment). Progress
 * towards the next +1 is kept: whole packets in cwnd_cnt, as NewReno's count of acknowledged
 * packets is, and the fraction in `credit_q16`, below 2^16. With alpha = 1 this is reno_avoid().
 */
static inline void cc_grow_q16(struct cc_conn *conn, u32 *credit_q16, u64 alpha_q16,
			       u32 counted_pkts)
{
	u64 window = cc_max_u32(conn->cwnd_pkts, 1U);
	u64 alpha = alpha_q16 < CC_ALPHA_MAX_Q16 ? alpha_q16 : CC_ALPHA_MAX_Q16;
	u64 counted = cc_min_u32(counted_pkts, CC_COUNTED_MAX_PKTS);
	/* Below 2^63.6 + 2^48. */
	u64 credit = alpha * counted + ((u64)conn->cwnd_cnt << 16) + *credit_q16;
	u64 steps = (credit >> 16) / window;
	u64 left_pkts = (credit >> 16) % window;
	u64 room = cc_sub_floor_u32(conn->cwnd_max_pkts, conn->cwnd_pkts);

	conn->cwnd_cnt = (u32)left_pkts;
	*credit_q16 = (u32)(credit & 0xffffULL);
	conn->cwnd_pkts =
	    cc_min_u32(conn->cwnd_pkts + (u32)cc_min_u64(steps, room), conn->cwnd_max_pkts);
}

#endif
