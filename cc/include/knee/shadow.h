/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Growth of a window and of a shadow window, which CHD and CDG share: the window that a NewReno
 * flow would have, had it not backed off on delay (CHD paper eq. 3).
 */
#ifndef KNEE_SHADOW_H
#define KNEE_SHADOW_H

#include "knee/contract.h"
#include "knee/reno.h"

enum { SHADOW_GROWTH_ROUND = 0, SHADOW_GROWTH_ACK = 1 };

/*
 * Growth for one ACK; nothing while the application, not the window, limits sending. In slow start
 * the shadow window grows by as much as the window, then by one packet per round. 0: there is none.
 */
static inline void shadow_grow(struct cc_conn *conn, u32 *shadow_pkts, u32 growth, u32 count,
			       u32 ss_limit_pkts, u32 acked_pkts, int round_ended)
{
	u32 before_pkts = conn->cwnd_pkts;
	u32 counted = reno_counted_pkts(count, acked_pkts);

	if (!conn->cwnd_limited)
		return;
	if (reno_in_slow_start(conn)) {
		u32 left = reno_slow_start(conn, ss_limit_pkts, counted);

		if (growth == SHADOW_GROWTH_ACK && left != 0U && !reno_in_slow_start(conn))
			reno_avoid(conn, left);
		if (*shadow_pkts != 0U)
			*shadow_pkts = cc_min_u32(
			    cc_add_sat_u32(*shadow_pkts,
					   cc_sub_floor_u32(conn->cwnd_pkts, before_pkts)),
			    conn->cwnd_max_pkts);
		return;
	}
	if (growth == SHADOW_GROWTH_ACK)
		reno_avoid(conn, counted);
	if (!round_ended)
		return;
	if (growth == SHADOW_GROWTH_ROUND)
		conn->cwnd_pkts = cc_min_u32(conn->cwnd_pkts + 1U, conn->cwnd_max_pkts);
	if (*shadow_pkts != 0U)
		*shadow_pkts = cc_min_u32(*shadow_pkts + 1U, conn->cwnd_max_pkts);
}

#endif
