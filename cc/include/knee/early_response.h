/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The early response of RED emulated at the sender: a reduction with a probability that rises with
 * the smoothed delay, and the gate that lets one through per round trip.
 */
#ifndef KNEE_EARLY_RESPONSE_H
#define KNEE_EARLY_RESPONSE_H

#include "knee/delay.h"
#include "knee/reno.h"
#include "knee/slow_rtt.h"

enum { CC_EARLY_HOLDOFF_NONE = 0, CC_EARLY_HOLDOFF_ONE_ROUND = 1 };

/* Parameters of the response curve (knee/red.h) and of the gate. The largest tmax keeps 2 tmax
 * within CC_TIME_MAX_US. */
#define CC_EARLY_RESPONSE_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	CC_SLOW_RTT_PARAM(X) \
	X(CC_TIME_US, tmin_us, "tmin", "", 0, 8000000, 5000, "", "F-TCP paper sIII-B: 5 ms", \
	  "queueing delay up to which there is no early response") \
	X(CC_TIME_US, tmax_us, "tmax", "", 1, 8000000, 10000, "", "F-TCP paper sIII-B: 10 ms", \
	  "queueing delay at which the response probability is pmax; above it the curve is steeper") \
	X(CC_PROB_PPM, pmax_ppm, "pmax", "", 0, 1000000, 50000, "", "F-TCP paper sIII-B: 0.05", \
	  "response probability at tmax, per ACK") \
	X(CC_CHOICE, holdoff, "holdoff", "", 0, 1, CC_EARLY_HOLDOFF_ONE_ROUND, "none|one_round", \
	  "reading MP-g", "how soon a second early response may follow the first") \
	X(CC_CHOICE, ss_test, "ss_test", "", 0, 1, 0, "off|on", "reading PE-a", \
	  "whether early responses happen in slow start too")

#define CC_EARLY_RESPONSE_RULES(R) R(tmin_us, CC_LESS_THAN, tmax_us)

/*
 * "At least one round trip since the last early response": no other until the highest position
 * sent at the response has been acknowledged.
 */
struct cc_gate {
	u32 pos;
};

static inline void cc_gate_init(struct cc_gate *gate, const struct cc_conn *conn)
{
	gate->pos = conn->ack_pos;
}

static inline int cc_gate_open(const struct cc_gate *gate, const struct cc_conn *conn)
{
	return !cc_after(gate->pos, conn->ack_pos);
}

/* Call at every ACK: moves a position that was reached along, so that it never seems to lie ahead
 * again when positions wrap. */
static inline void cc_gate_follow(struct cc_gate *gate, const struct cc_conn *conn)
{
	if (cc_gate_open(gate, conn))
		gate->pos = conn->ack_pos;
}

/* True if an early response may happen at this ACK. */
static inline int cc_early_response_due(const struct cc_conn *conn, const struct cc_gate *gate,
					const struct cc_slow_rtt *slow, u32 ss_test)
{
	return slow->srtt_q8_us != 0U && cc_delay_test_allowed(conn) && cc_gate_open(gate, conn) &&
	       (ss_test || !reno_in_slow_start(conn));
}

/* The early response: the window falls to `pkts`, no further than the floor, and slow start ends,
 * ssthresh = new cwnd. */
static inline void cc_early_response(struct cc_conn *conn, struct cc_gate *gate, u32 pkts,
				     u32 holdoff)
{
	conn->cwnd_pkts = cc_max_u32(pkts, CC_CWND_FLOOR_PKTS);
	conn->ssthresh_pkts = conn->cwnd_pkts;
	conn->cwnd_cnt = 0U;
	conn->notes |= CC_NOTE_DELAY_BACKOFF;
	if (holdoff == CC_EARLY_HOLDOFF_ONE_ROUND)
		gate->pos = conn->snd_pos;
}

#endif
