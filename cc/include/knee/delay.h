/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shared part of the delay-based algorithms: the connection's RTT extremes, the backoff
 * probability of HD and CHD, and the delay backoff itself.
 */
#ifndef KNEE_DELAY_H
#define KNEE_DELAY_H

#include "knee/contract.h"

/* RTT extremes of one connection, microseconds; q = RTT - RTTmin is the queueing delay. */
struct cc_delay {
	u32 rtt_min_us; /* 0: no sample yet */
	u32 rtt_max_us;
	u32 q_us;	/* of the latest sample */
	u32 delack_sus; /* suspicion that the receiver delays ACKs, 0 ... CC_DELACK_SUS_MAX */
};

#define CC_DELACK_SUS_MAX 5U

/* Invariants of `st->delay`. The second list: where samples alone change it, or keep to them. */
#define CC_DELAY_INVARIANTS(X) \
	X(rtt_min_us, st->delay.rtt_min_us <= CC_TIME_MAX_US) \
	X(rtt_max_us, st->delay.rtt_max_us <= CC_TIME_MAX_US) \
	X(q_us, st->delay.q_us <= CC_TIME_MAX_US) \
	X(delack_sus, st->delay.delack_sus <= CC_DELACK_SUS_MAX)
#define CC_DELAY_RANGE_INVARIANT(X) \
	X(delay_range, st->delay.rtt_min_us + st->delay.q_us <= st->delay.rtt_max_us)

/* The delayed-ACK filter as a parameter; both delay-based algorithms of the CHD paper have it.
 */
#define CC_DELACK_PARAM(X) \
	X(CC_CHOICE, delack_filter, "delack_filter", "", 0, 1, 1, "off|on", \
	  "CHD paper sV, its reference 20; reading RTT", \
	  "leave out RTT samples that a delayed ACK may have lengthened")

/*
 * True if this ACK's RTT sample may be used. A receiver that acknowledges every second packet holds
 * the ACK of a lone one until its timer expires, and that wait is not queueing delay. So an ACK for
 * one packet is not trusted while ACKs for several have been seen lately.
 *
 * Only ACKs of data in order show how the receiver acknowledges: out of order, and when a hole is
 * filled, it answers each packet at once (RFC 5681 section 4.2). Call once for every ACK.
 */
static inline int cc_delay_trusts(struct cc_delay *delay, const struct cc_ack *ack, u32 filter)
{
	u32 sus = delay->delack_sus;
	int in_order = ack->advanced_pkts != 0U && ack->advanced_pkts <= ack->acked_pkts;

	if (in_order && ack->acked_pkts > 1U)
		delay->delack_sus = cc_min_u32(sus + 1U, CC_DELACK_SUS_MAX);
	else if (in_order)
		delay->delack_sus = cc_sub_floor_u32(sus, 1U);
	return ack->rtt_us >= 0 && !(filter && ack->acked_pkts == 1U && sus != 0U);
}

/* Records a sample (CHD paper section III: RTTmin and RTTmax are extremes of all samples). */
static inline void cc_delay_sample(struct cc_delay *delay, u32 rtt_us)
{
	u32 min_us = delay->rtt_min_us;

	/* A sample of 0 (host clock coarser than the path) must not look like "no sample". */
	rtt_us = cc_min_u32(cc_max_u32(rtt_us, 1U), CC_TIME_MAX_US);
	if (min_us == 0U || rtt_us < min_us)
		min_us = rtt_us;
	delay->rtt_min_us = min_us;
	delay->rtt_max_us = cc_max_u32(delay->rtt_max_us, rtt_us);
	delay->q_us = rtt_us - min_us;
}

/* The latest sample. */
static inline u32 cc_delay_latest_us(const struct cc_delay *delay)
{
	return cc_min_u32(delay->rtt_min_us + delay->q_us, CC_TIME_MAX_US);
}

/* Largest queueing delay inferred so far (CHD paper section III: qmax = RTTmax - RTTmin). */
static inline u32 cc_delay_qmax_us(const struct cc_delay *delay)
{
	return cc_sub_floor_u32(delay->rtt_max_us, delay->rtt_min_us);
}

/*
 * Backoff probability g(q), 0 ... 2^32 (HD letter Fig. 1; CHD paper Fig. 1):
 *
 *   region A, qmin < q < qth:   rises linearly from 0 to pmax
 *   region B, qth <= q < qmax:  falls linearly from pmax to 0
 *   elsewhere 0.
 *
 * Where nothing beyond qth has been seen yet (qmax <= qth) there is no region B, and g = pmax for
 * q >= qth. Requires qmin < qth <= CC_TIME_MAX_US.
 */
static inline u64 cc_backoff_prob_q32(u32 q_us, u32 qmin_us, u32 qth_us, u32 qmax_us, u32 pmax_ppm)
{
	u64 pmax_q32 = cc_ppm_to_q32(pmax_ppm);

	if (q_us <= qmin_us)
		return 0ULL;
	if (q_us < qth_us)
		return cc_scale_q32(pmax_q32, q_us - qmin_us, qth_us - qmin_us);
	if (qmax_us <= qth_us)
		return pmax_q32;
	if (q_us >= qmax_us)
		return 0ULL;
	return cc_scale_q32(pmax_q32, qmax_us - q_us, cc_min_u32(qmax_us, CC_TIME_MAX_US) - qth_us);
}

/*
 * The delay backoff: halves the window and ends slow start, ssthresh = new cwnd (HD letter
 * Algorithm 1; CHD paper eq. 2). The stack does not see a congestion event: no retransmission, no
 * recovery, no PRR. The packets above the new window drain as ACKs arrive.
 */
static inline void cc_delay_backoff(struct cc_conn *conn)
{
	conn->cwnd_pkts = cc_max_u32(conn->cwnd_pkts / 2U, CC_CWND_FLOOR_PKTS);
	conn->ssthresh_pkts = conn->cwnd_pkts;
	conn->cwnd_cnt = 0U;
	conn->notes |= CC_NOTE_DELAY_BACKOFF;
}

/*
 * A delay backoff of another depth: the window falls to `pkts`, but not below the floor, and slow
 * start ends, ssthresh = cwnd. If that would not reduce the window, nothing changes.
 */
static inline void cc_delay_reduce(struct cc_conn *conn, u32 pkts)
{
	pkts = cc_max_u32(pkts, CC_CWND_FLOOR_PKTS);
	if (pkts < conn->cwnd_pkts) {
		conn->cwnd_pkts = pkts;
		conn->notes |= CC_NOTE_DELAY_BACKOFF;
	}
	conn->ssthresh_pkts = cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
	conn->cwnd_cnt = 0U;
}

/* The phases in which a delay test may run: the papers are silent on recovery (HD-e). */
static inline int cc_delay_test_allowed(const struct cc_conn *conn)
{
	return conn->phase == CC_OPEN || conn->phase == CC_DISORDER;
}

#endif
