/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What PERT and m-PERT share: the slow smoothed RTT, the parameters of the response curve, and the
 * early response with the gate that lets one through per round trip.
 *
 * The slow smoothed RTT stands by itself: it needs nothing else of this file.
 */
#ifndef KNEE_PERT_H
#define KNEE_PERT_H

#include "knee/delay.h"
#include "knee/reno.h"

/*
 * Smoothed queueing delay: S - RTTmin, where S <- weight * S + (1 - weight) * r at every sample and
 * S starts at the first one. S is kept in 1/256 us and rounded to the nearest, so it stays within
 * 1/(512 (1 - weight)) us of the exact recursion: 0.2 us at weight 0.99, 2 us at 0.999.
 */
struct cc_slow_rtt {
	u32 srtt_q8_us; /* 0: no sample yet */
};

#define CC_SLOW_RTT_PARAM(X) \
	X(CC_PROB_PPM, srtt_weight_ppm, "srtt_weight", "", 0, 999000, 990000, "", \
	  "PERT: 0.99, from public implementations", \
	  "weight of the past in the slow smoothed RTT, per sample; 0: each sample as it is")

/* Takes a sample in. */
static inline void cc_slow_rtt_sample(struct cc_slow_rtt *slow, u32 rtt_us, u32 weight_ppm)
{
	u32 rtt_q8_us = cc_min_u32(cc_max_u32(rtt_us, 1U), CC_TIME_MAX_US) << 8;
	u64 gain_ppm = (u64)cc_sub_floor_u32(CC_ONE_PPM, weight_ppm);
	u32 was_q8_us = slow->srtt_q8_us;
	int up = rtt_q8_us > was_q8_us;
	u64 away_q8_us = up ? rtt_q8_us - was_q8_us : was_q8_us - rtt_q8_us;
	u32 step_q8_us = (u32)((away_q8_us * gain_ppm + CC_ONE_PPM / 2U) / CC_ONE_PPM);

	if (was_q8_us == 0U)
		slow->srtt_q8_us = rtt_q8_us;
	else
		slow->srtt_q8_us = up ? was_q8_us + step_q8_us : was_q8_us - step_q8_us;
}

/* S, to the nearest microsecond; 0: no sample yet. */
static inline u32 cc_slow_rtt_us(const struct cc_slow_rtt *slow)
{
	return (slow->srtt_q8_us + 128U) >> 8;
}

/* Smoothed queueing delay, to the nearest microsecond. S lies above the least of its samples. */
static inline u32 cc_slow_rtt_q_us(const struct cc_slow_rtt *slow, u32 rtt_min_us)
{
	return cc_sub_floor_u32(cc_slow_rtt_us(slow), rtt_min_us);
}

enum { PERT_HOLDOFF_NONE = 0, PERT_HOLDOFF_ONE_ROUND = 1 };

/* Parameters that both have. The largest tmax keeps 2 tmax within CC_TIME_MAX_US. */
#define PERT_SHARED_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	CC_SLOW_RTT_PARAM(X) \
	X(CC_TIME_US, tmin_us, "tmin", "", 0, 8000000, 5000, "", "F-TCP paper sIII-B: 5 ms", \
	  "queueing delay up to which there is no early response") \
	X(CC_TIME_US, tmax_us, "tmax", "", 1, 8000000, 10000, "", "F-TCP paper sIII-B: 10 ms", \
	  "queueing delay at which the response probability is pmax; above it the curve is steeper") \
	X(CC_PROB_PPM, pmax_ppm, "pmax", "", 0, 1000000, 50000, "", "F-TCP paper sIII-B: 0.05", \
	  "response probability at tmax, per ACK") \
	X(CC_CHOICE, holdoff, "holdoff", "", 0, 1, PERT_HOLDOFF_ONE_ROUND, "none|one_round", \
	  "reading MP-g", "how soon a second early response may follow the first") \
	X(CC_CHOICE, ss_test, "ss_test", "", 0, 1, 0, "off|on", "reading PE-a", \
	  "whether early responses happen in slow start too")

#define PERT_SHARED_RULES(R) R(tmin_us, CC_LESS_THAN, tmax_us)

/*
 * "At least one round trip since the last early response": no other until the highest position
 * sent at the response has been acknowledged.
 */
struct pert_gate {
	u32 pos;
};

static inline void pert_gate_init(struct pert_gate *gate, const struct cc_conn *conn)
{
	gate->pos = conn->ack_pos;
}

static inline int pert_gate_open(const struct pert_gate *gate, const struct cc_conn *conn)
{
	return !cc_after(gate->pos, conn->ack_pos);
}

/* To be called at every ACK: takes a position that was reached along, so that it never comes to
 * lie ahead again when positions wrap. */
static inline void pert_gate_follow(struct pert_gate *gate, const struct cc_conn *conn)
{
	if (pert_gate_open(gate, conn))
		gate->pos = conn->ack_pos;
}

/* Whether an early response may happen at this ACK. */
static inline int pert_test_due(const struct cc_conn *conn, const struct pert_gate *gate,
				const struct cc_slow_rtt *slow, u32 ss_test)
{
	return slow->srtt_q8_us != 0U && cc_delay_test_allowed(conn) &&
	       pert_gate_open(gate, conn) && (ss_test || !reno_in_slow_start(conn));
}

/* The early response: the window falls to `pkts`, no further than the floor, and slow start ends,
 * ssthresh = new cwnd. */
static inline void pert_respond(struct cc_conn *conn, struct pert_gate *gate, u32 pkts, u32 holdoff)
{
	conn->cwnd_pkts = cc_max_u32(pkts, CC_CWND_FLOOR_PKTS);
	conn->ssthresh_pkts = conn->cwnd_pkts;
	conn->cwnd_cnt = 0U;
	conn->notes |= CC_NOTE_DELAY_BACKOFF;
	if (holdoff == PERT_HOLDOFF_ONE_ROUND)
		gate->pos = conn->snd_pos;
}

#endif
