/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Growth and reduction of NewReno (RFC 5681, RFC 6582), shared by every algorithm that departs
 * from it only in part.
 */
#ifndef KNEE_RENO_H
#define KNEE_RENO_H

#include "knee/contract.h"

enum { RENO_COUNT_ACKS = 0, RENO_COUNT_PACKETS = 1 };

/* Growth parameters; every algorithm that grows as NewReno puts these first in its list. */
#define RENO_GROWTH_PARAMS(X) \
	X(CC_CHOICE, count, "count", "", 0, 1, RENO_COUNT_PACKETS, "acks|packets", \
	  "RFC 5681 s3.1; RFC 3465", \
	  "growth counts ACKs (halved by delayed ACKs) or the packets that they acknowledge") \
	X(CC_PKTS, ss_limit_pkts, "ss_limit", "", 0, 1000000, 0, "", "RFC 3465 s2.2 (L)", \
	  "most packets that one ACK adds in slow start; 0: no limit, as in Linux")

/* The first threshold as a parameter, for experiments that start without slow start, or with a
 * known path. */
#define RENO_SSTHRESH_PARAM(X) \
	X(CC_PKTS, initial_ssthresh_pkts, "initial_ssthresh", "", 0, 1073741824, 0, "", \
	  "RFC 5681 s3.1: arbitrarily high", \
	  "slow start threshold before any congestion; 0: none")

/* Sets it, unless the host knows a threshold. */
static inline void reno_start(struct cc_conn *conn, u32 initial_ssthresh_pkts)
{
	if (initial_ssthresh_pkts != 0U && conn->ssthresh_pkts == CC_SSTHRESH_INFINITE)
		conn->ssthresh_pkts = cc_max_u32(initial_ssthresh_pkts, CC_CWND_FLOOR_PKTS);
}

static inline int reno_in_slow_start(const struct cc_conn *conn)
{
	return conn->cwnd_pkts < conn->ssthresh_pkts;
}

/* Packets that this ACK counts for, given the counting rule. */
static inline u32 reno_counted_pkts(u32 count, u32 acked_pkts)
{
	return count == RENO_COUNT_ACKS ? cc_min_u32(acked_pkts, 1U) : acked_pkts;
}

/* Slow start: +1 per counted packet, up to ssthresh. Returns the packets left over for
 * congestion avoidance. RFC 5681 section 3.1 eq. 2. */
static inline u32 reno_slow_start(struct cc_conn *conn, u32 ss_limit_pkts, u32 counted_pkts)
{
	u32 limit = ss_limit_pkts != 0U ? ss_limit_pkts : CC_U32_MAX;
	u32 room = cc_min_u32(conn->ssthresh_pkts, conn->cwnd_max_pkts);
	/* The excess over the limit is not carried over. */
	u32 wanted = cc_min_u32(counted_pkts, limit);
	u32 add = cc_min_u32(wanted, cc_sub_floor_u32(room, conn->cwnd_pkts));

	conn->cwnd_pkts = cc_min_u32(conn->cwnd_pkts + add, conn->cwnd_max_pkts);
	return cc_sub_floor_u32(wanted, add);
}

/* Congestion avoidance: +1 for each window of counted packets, 1/cwnd per packet with the
 * remainder carried (RFC 5681 section 3.1 eq. 3; H-TCP paper eq. 1 with alpha = 1). */
static inline void reno_avoid(struct cc_conn *conn, u32 counted_pkts)
{
	u32 window = cc_max_u32(conn->cwnd_pkts, 1U);
	u32 count = cc_add_sat_u32(conn->cwnd_cnt, counted_pkts);
	u32 steps = count / window;

	conn->cwnd_cnt = count % window;
	conn->cwnd_pkts = cc_min_u32(cc_add_sat_u32(conn->cwnd_pkts, steps), conn->cwnd_max_pkts);
}

/* Slow start for one ACK; nothing while the application, not the window, limits sending. Returns
 * the counted packets left for congestion avoidance; 0: none. */
static inline u32 reno_counted_to_avoid(struct cc_conn *conn, u32 count, u32 ss_limit_pkts,
					u32 acked_pkts)
{
	u32 counted = reno_counted_pkts(count, acked_pkts);

	if (!conn->cwnd_limited)
		return 0U;
	if (reno_in_slow_start(conn))
		counted = reno_slow_start(conn, ss_limit_pkts, counted);
	return reno_in_slow_start(conn) ? 0U : counted;
}

/* Growth for one ACK. */
static inline void reno_grow(struct cc_conn *conn, u32 count, u32 ss_limit_pkts, u32 acked_pkts)
{
	u32 counted = reno_counted_to_avoid(conn, count, ss_limit_pkts, acked_pkts);

	if (counted != 0U)
		reno_avoid(conn, counted);
}

/* max(FlightSize / 2, 2): RFC 5681 section 3.1 eq. 4. Packets sent by limited transmit do not
 * count as flight (RFC 3042 section 2), hence the minimum with cwnd. */
static inline u32 reno_ssthresh(const struct cc_conn *conn)
{
	return cc_max_u32(cc_min_u32(conn->cwnd_pkts, conn->outstanding_pkts) / 2U,
			  CC_CWND_FLOOR_PKTS);
}

#endif
