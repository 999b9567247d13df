/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Backlog: the packets that a flow keeps queued, Vegas's diff = cwnd (1 - baseRTT / RTT), that is
 * expected less actual rate, times baseRTT (Brakmo, Peterson, IEEE JSAC 13(8), 1995). Shared by
 * Vegas and by the algorithm that Table I of the CHD paper calls "similar to Vegas".
 *
 * RTTs are in 1/256 us, at most CC_TIME_MAX_US; windows are at most 2^30 packets.
 */
#ifndef KNEE_BACKLOG_H
#define KNEE_BACKLOG_H

#include "knee/contract.h"

/* The backlog times the RTT, below 2^62: it is less than n packets exactly where this is less than
 * n * rtt_q8_us. 0 where the RTT is below baseRTT. */
static inline u64 cc_backlog_rtt(u32 cwnd_pkts, u32 rtt_q8_us, u32 base_us)
{
	return (u64)cwnd_pkts * cc_sub_floor_u32(rtt_q8_us, base_us << 8);
}

/* The backlog in packets, rounded down to 2^-16. 0 where there is no RTT yet. */
static inline u64 cc_backlog_q16(u64 backlog_rtt, u32 rtt_q8_us)
{
	u32 den = cc_max_u32(rtt_q8_us, 1U);
	u64 whole = cc_min_u64(backlog_rtt / den, CC_CWND_MAX_PKTS);
	u64 rest = backlog_rtt % den;

	return (whole << 16) + cc_min_u64((rest << 16) / den, 0xffffULL);
}

/* The backlog in 1/1000 packet, rounded down, at most 2^32 - 1. 0 where there is no RTT yet. */
static inline u32 cc_backlog_thousandths(u64 backlog_rtt, u32 rtt_q8_us)
{
	u32 den = cc_max_u32(rtt_q8_us, 1U);
	u64 whole = cc_min_u64(backlog_rtt / den, CC_CWND_MAX_PKTS);
	u64 rest = backlog_rtt % den;
	u64 thousandths = whole * 1000ULL + rest * 1000ULL / den;

	return thousandths < CC_U32_MAX ? (u32)thousandths : CC_U32_MAX;
}

#endif
