// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * m-PERT: PERT that competes with loss-based flows.
 *
 * K. Kotla, A. L. N. Reddy: "Making a delay-based protocol adaptive to heterogeneous environments",
 * IWQoS 2008; used in section IV-F of J. Sansa-Otim, I. Rai, J. M. van der Hulst (F-TCP), whose
 * values of Tmin, Tmax and pmax are the defaults here. The other constants are those of public
 * implementations; each is a parameter.
 *
 * PERT (pert.c) with
 *  - a curve that reaches 1 at T3 = max(2 Tmax, 0.65 qmax), where
 *    qmax = max(10 ms, RTTmax - RTTmin);
 *  - a decrease of q / (q + qmax) instead of 35 %;
 *  - growth of alpha / cwnd per packet, alpha in 1 ... 32, changed every 5 S:
 *      compete     a window of packets in a row with q >= qmax / 2: other flows fill the queue, so
 *                  +0.1, up to the target 1 + (p_E / p_L) h(q), which makes up for the early
 *                  responses that a loss-based flow does not make (h: 0 at qmax / 2, 1 from
 *                  0.65 qmax); no limit until a loss has been seen;
 *      high speed  a window of packets in a row with q <= Tmin: +0.5;
 *      safe        otherwise: times 0.9;
 *  - p_E and p_L, the rates of early responses and of losses, from the packets between them as RFC
 *    5348 section 5.4 averages loss intervals. Only their ratio is needed.
 *
 * Intervals: two histories of eight do not fit the state as 32-bit numbers. Each past interval is a
 * 16-bit floating-point number, 5 bits of exponent and 11 of fraction with a hidden leading one:
 * exact up to 4096 packets, within 2^-12 of the interval above, up to 2^32 packets. All weights are
 * positive, so the average is within 2^-12 as well and p_E / p_L within 2^-11; a shared shift would
 * lose the short intervals next to a long one, and a recursive average would not forget an interval
 * after eight others. The running interval is kept exactly, and so is the one before the latest
 * loss, so that undo() can resume it.
 *
 * Readings taken where the sources are ambiguous, each a parameter unless noted:
 *  - alpha starts at 1, for coexistence; 32 gives the fast start: `alpha0` (MP-a).
 *  - runs of ACKs are counted in packets and compared with the window in packets, and alpha / cwnd
 *    is added with its fraction (MP-b; not a parameter).
 *  - p is computed at every ACK and is 0 below Tmin (MP-c; not a parameter).
 *  - a loss halves the window, or takes q / (q + qmax) of it: `loss_decrease` (MP-d). A timeout
 *    always halves.
 *  - the safe region decays alpha whatever q is (MP-e; not a parameter).
 *  - Tmin = 20 ms, Tmax = 40 ms for long paths of 1 Gb/s: `tmin`, `tmax` (MP-f).
 *  - one early response per round trip: `holdoff` (MP-g).
 *  - with fewer than eight intervals, the average is over those, with their weights;
 *    the first one starts with the connection; p_E is 0 before the first early response (MP-h; not
 *    a parameter).
 *  - if both q <= Tmin and q >= qmax / 2: compete (MP-i; not a parameter).
 *  - alpha does not change in slow start; its first period begins after it (MP-j; not a parameter).
 *  - slow start, rounding, delayed ACKs: as PERT.
 */
#include "knee/host.h"
#include "knee/delay.h"
#include "knee/early_response.h"
#include "knee/red.h"
#include "knee/reno.h"
#include "knee/slow_rtt.h"

enum { MPERT_LOSS_HALVE = 0, MPERT_LOSS_EARLY = 1 };
enum { MPERT_SAFE = 0, MPERT_COMPETE = 1, MPERT_HIGH_SPEED = 2 };

#define MPERT_ALPHA_MIN_Q16 (1U << 16)
#define MPERT_ALPHA_MAX_Q16 (32U << 16)

#define MPERT_PARAMS(X) \
	CC_EARLY_RESPONSE_PARAMS(X) \
	X(CC_TIME_US, qmax_us, "qmax", "", 0, 10000000, 0, "", "m-PERT: observed", \
	  "largest queueing delay of the path; 0: largest one observed, at least qmax_floor") \
	X(CC_TIME_US, qmax_floor_us, "qmax_floor", "", 1, 10000000, 10000, "", "m-PERT: 10 ms", \
	  "smallest value used for the largest queueing delay observed") \
	X(CC_NUMBER_PPM, alpha0_ppm, "alpha0", "", 1000000, 32000000, 1000000, "", \
	  "reading MP-a: 1, or 32 for a fast start", "growth per round trip at the start, packets") \
	X(CC_NUMBER_PPM, alpha_period_ppm, "alpha_period", "", 1000000, 100000000, 5000000, "", \
	  "m-PERT: 5", "time between two changes of alpha, in slow smoothed RTTs") \
	X(CC_NUMBER_PPM, compete_step_ppm, "compete_step", "", 0, 31000000, 100000, "", \
	  "m-PERT: 0.1", "largest rise of alpha in the compete region") \
	X(CC_NUMBER_PPM, high_speed_step_ppm, "high_speed_step", "", 0, 31000000, 500000, "", \
	  "m-PERT: 0.5", "rise of alpha in the high-speed region") \
	X(CC_NUMBER_PPM, safe_factor_ppm, "safe_factor", "", 0, 1000000, 900000, "", \
	  "m-PERT: 0.9", "factor that multiplies alpha in the safe region") \
	X(CC_CHOICE, loss_decrease, "loss_decrease", "", 0, 1, MPERT_LOSS_HALVE, "halve|early", \
	  "reading MP-d", "a loss halves the window, or reduces it as an early response does")

#define MPERT_RULES(R) CC_EARLY_RESPONSE_RULES(R)

CC_PARAMS_STRUCT(mpert, MPERT_PARAMS);

/* Packets between events of one kind. */
#define MPERT_INTERVALS 8U
struct mpert_intervals {
	u16 past[MPERT_INTERVALS]; /* newest first, floating point; 0: none */
	u32 running_pkts;	   /* since the latest event */
};

/* The result of mpert_pack() for 2^32 - 1. */
#define MPERT_PACKED_MAX (22U << 11)

#define MPERT_PAST_INVARIANT(X, kind) \
	X(kind, st->kind.past[0] <= MPERT_PACKED_MAX && st->kind.past[1] <= MPERT_PACKED_MAX && \
		    st->kind.past[2] <= MPERT_PACKED_MAX && st->kind.past[3] <= MPERT_PACKED_MAX && \
		    st->kind.past[4] <= MPERT_PACKED_MAX && st->kind.past[5] <= MPERT_PACKED_MAX && \
		    st->kind.past[6] <= MPERT_PACKED_MAX && st->kind.past[7] <= MPERT_PACKED_MAX)

struct mpert_state {
	struct cc_delay delay;
	struct cc_slow_rtt slow;
	struct cc_gate gate;
	u32 alpha_q16;
	u32 alpha_time_us;	       /* when alpha was last changed, low 32 bits */
	u32 region_pkts;	       /* acknowledged in a row in this region */
	u32 prior_cwnd_pkts;	       /* before the latest loss, for undo */
	u32 before_loss_pkts;	       /* interval that the latest loss ended; 0: none */
	u16 growth_q16;		       /* fraction of a packet counted, in addition to cwnd_cnt */
	u8 region;		       /* of the latest ACK; MPERT_SAFE: neither of the others */
	struct mpert_intervals losses; /* past: without before_loss_pkts */
	struct mpert_intervals responses;
};

#define MPERT_INVARIANTS(X) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_SLOW_RTT_INVARIANT(X) \
	CC_WITHIN(X, alpha_q16, MPERT_ALPHA_MIN_Q16, MPERT_ALPHA_MAX_Q16) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, region, MPERT_HIGH_SPEED) \
	MPERT_PAST_INVARIANT(X, losses) \
	MPERT_PAST_INVARIANT(X, responses)

/* To 16-bit floating point, rounded to the nearest. With n = m * 2^shift, 2^11 <= m < 2^12, the
 * number's bits are (shift << 11) + m: the leading one of m counts the exponent up by one, and so
 * does a carry out of the rounding. */
static u16 mpert_pack(u32 n)
{
	u32 shift = 0U;
	u32 rounded;

	for (u32 step = 16U; step != 0U; step /= 2U) {
		if (n >> step >> shift >= 1U << 11)
			shift += step;
	}
	rounded = (n >> shift) + (shift != 0U ? n >> (shift - 1U) & 1U : 0U);
	/* At most (21 << 11) + 2^12. A bound is masked here and below: a constant on one path would
	 * make the verifier look at all that follows once more. */
	return (u16)(((shift << 11) + rounded) & 0xffffU);
}

static u64 mpert_unpack(u16 packed)
{
	u64 fraction = packed & 0x7ffU;
	u32 exponent = (u32)packed >> 11;

	if (exponent == 0U)
		return fraction;
	/* A u32 that mpert_pack() packed is 2^32 at most. */
	return (fraction + 0x800ULL) << (exponent - 1U) & ((1ULL << 33) - 1ULL);
}

static void mpert_push(struct mpert_intervals *intervals, u32 pkts)
{
	for (u32 i = MPERT_INTERVALS - 1U; i > 0U; i--)
		intervals->past[i] = intervals->past[i - 1U];
	intervals->past[0] = mpert_pack(pkts);
}

/* The running interval ends. Gives its length, at least 1. */
static u32 mpert_end(struct mpert_intervals *intervals)
{
	u32 pkts = cc_max_u32(intervals->running_pkts, 1U);

	intervals->running_pkts = 0U;
	return pkts;
}

/* Weighted sum of intervals; weights in fifths. The average is weighted_pkts / weight. */
struct mpert_sum {
	u64 weighted_pkts; /* at most 30 * 2^32 */
	u32 weight;	   /* at most 30; 0: no interval yet */
};

/* RFC 5348 section 5.4: the eight newest intervals, weights 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2; or, if
 * that gives more, the running one in front of all but the oldest of them. `newest_pkts`, unless 0,
 * is an interval newer than those in `intervals`. */
static struct mpert_sum mpert_sum(const struct mpert_intervals *intervals, u32 newest_pkts)
{
	struct mpert_sum past = {0};
	u64 with_running_pkts = 5ULL * intervals->running_pkts;
	u64 newer_pkts = 0ULL;

	for (u32 i = 0U; i < MPERT_INTERVALS; i++) {
		u32 weight = i < 4U ? 5U : 8U - i;
		u64 pkts;

		if (newest_pkts == 0U)
			pkts = mpert_unpack(intervals->past[i]);
		else
			pkts = mpert_unpack(i == 0U ? mpert_pack(newest_pkts)
						    : intervals->past[i - 1U]);
		if (pkts == 0ULL)
			break;
		past.weighted_pkts += weight * pkts;
		past.weight += weight;
		with_running_pkts += weight * newer_pkts;
		newer_pkts = pkts;
	}
	if (past.weight != 0U && with_running_pkts > past.weighted_pkts)
		past.weighted_pkts = with_running_pkts;
	return past;
}

/* p_E / p_L, which is the average loss interval over the average one between early responses: below
 * 2^58. `losses` is that of st->losses, with at least one interval. */
static u64 mpert_early_per_loss_q16(const struct mpert_state *st, const struct mpert_sum *losses)
{
	struct mpert_sum responses = mpert_sum(&st->responses, 0U);

	/* 30 * 30 * 2^32 is less than 2^42. */
	return cc_div_u64((losses->weighted_pkts * responses.weight & ((1ULL << 42) - 1ULL)) << 16,
			  responses.weighted_pkts * losses->weight, 0ULL);
}

static u32 mpert_q_us(const struct mpert_state *st)
{
	return cc_slow_rtt_q_us(&st->slow, st->delay.rtt_min_us);
}

static u32 mpert_qmax_us(const struct mpert_state *st, const struct mpert_params *p)
{
	return p->qmax_us != 0U ? p->qmax_us
				: cc_max_u32(cc_delay_qmax_us(&st->delay), p->qmax_floor_us);
}

static u64 mpert_prob_q32(const struct mpert_state *st, const struct mpert_params *p)
{
	/* 0.65 qmax, and no sum wraps: qmax is at most CC_TIME_MAX_US. */
	u32 t3_us = cc_max_u32(2U * p->tmax_us, mpert_qmax_us(st, p) * 13U / 20U);

	return cc_red_prob_q32(mpert_q_us(st), p->tmin_us, p->tmax_us, t3_us, p->pmax_ppm);
}

/* The window that an early response leaves: the part 1 - q / (q + qmax), at least half. */
static u32 mpert_kept_pkts(const struct mpert_state *st, const struct mpert_params *p, u32 pkts)
{
	u32 qmax_us = mpert_qmax_us(st, p);
	u32 q_us = cc_min_u32(mpert_q_us(st), qmax_us);

	return (u32)cc_min_u64(cc_div_u64((u64)pkts * qmax_us, q_us + qmax_us, pkts), pkts);
}

/*
 * The compete region's target less 1: (p_E / p_L) h(q), at most 31. With k1 and k2 written out,
 *
 *   h = (16 / 1500) (100 - qmax / (q - 0.49 qmax)) = 160 (2 q - qmax) / (3 (100 q - 49 qmax))
 *
 * for qmax / 2 <= q < 0.65 qmax, where it rises from 0 to 1.
 */
static u32 mpert_target_above_1_q16(const struct mpert_state *st, const struct mpert_params *p)
{
	u32 most_q16 = MPERT_ALPHA_MAX_Q16 - MPERT_ALPHA_MIN_Q16;
	struct mpert_sum losses = mpert_sum(&st->losses, st->before_loss_pkts);
	u64 q_us = mpert_q_us(st);
	u64 qmax_us = mpert_qmax_us(st, p);
	u64 ratio_q16, num = 1ULL, den = 1ULL;

	if (losses.weight == 0U)
		return most_q16;
	if (2ULL * q_us <= qmax_us)
		return 0U;
	ratio_q16 = mpert_early_per_loss_q16(st, &losses);
	if (20ULL * q_us < 13ULL * qmax_us) {
		num = 160ULL * cc_sub_floor_u64(2ULL * q_us, qmax_us);
		den = 3ULL * cc_sub_floor_u64(100ULL * q_us, 49ULL * qmax_us);
	}
	/* Below this limit the product is below 2^53. */
	if (ratio_q16 >= cc_div_u64(most_q16 * den, num, ~0ULL))
		return most_q16;
	return (u32)cc_min_u64(
	    cc_div_u64(cc_mul_up_to_u64(ratio_q16, num, most_q16 * den), den, 0ULL), most_q16);
}

/* To the nearest; up to 2^21 for numbers up to 32. */
static u32 mpert_ppm_to_q16(u32 ppm)
{
	return (u32)((((u64)ppm << 16) + CC_ONE_PPM / 2U) / CC_ONE_PPM);
}

/* Changes alpha for the region that the last window of packets lay in. Slow start does not
 * use alpha, and its windows lie in no region: there only the period restarts. */
static void mpert_adapt(const struct cc_conn *conn, struct mpert_state *st,
			const struct mpert_params *p)
{
	u32 now_us = cc_low_u32(conn->now_us);
	u64 elapsed_us = cc_wrapping_sub_u32(now_us, st->alpha_time_us);
	u32 region = st->region_pkts >= conn->cwnd_pkts ? st->region : MPERT_SAFE;
	u32 alpha_q16 = st->alpha_q16;

	if (reno_in_slow_start(conn)) {
		st->alpha_time_us = now_us;
		return;
	}
	if (elapsed_us * CC_ONE_PPM < (u64)p->alpha_period_ppm * cc_slow_rtt_us(&st->slow))
		return;
	st->alpha_time_us = now_us;
	if (region == MPERT_COMPETE)
		alpha_q16 = cc_min_u32(alpha_q16 + mpert_ppm_to_q16(p->compete_step_ppm),
				       MPERT_ALPHA_MIN_Q16 + mpert_target_above_1_q16(st, p));
	else if (region == MPERT_HIGH_SPEED)
		alpha_q16 = cc_min_u32(alpha_q16 + mpert_ppm_to_q16(p->high_speed_step_ppm),
				       MPERT_ALPHA_MAX_Q16);
	else
		alpha_q16 =
		    (u32)(((u64)alpha_q16 * p->safe_factor_ppm + CC_ONE_PPM / 2U) / CC_ONE_PPM);
	st->alpha_q16 = cc_max_u32(alpha_q16, MPERT_ALPHA_MIN_Q16);
}

static void mpert_init(struct cc_conn *conn, struct mpert_state *st, const struct mpert_params *p)
{
	cc_gate_init(&st->gate, conn);
	st->alpha_q16 = mpert_ppm_to_q16(p->alpha0_ppm);
	st->alpha_time_us = cc_low_u32(conn->now_us);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
}

/* Counts the packets acknowledged in a row in one region. */
static void mpert_count_region(struct mpert_state *st, const struct mpert_params *p,
			       u32 counted_pkts)
{
	u32 q_us = mpert_q_us(st);
	u8 region = MPERT_SAFE;

	if (2U * q_us >= mpert_qmax_us(st, p))
		region = MPERT_COMPETE;
	else if (q_us <= p->tmin_us)
		region = MPERT_HIGH_SPEED;
	st->region_pkts = cc_add_sat_u32(region == st->region ? st->region_pkts : 0U, counted_pkts);
	st->region = region;
}

static void mpert_on_rtt(struct cc_conn *conn, struct mpert_state *st, const struct mpert_params *p,
			 const struct cc_ack *ack)
{
	if (cc_delay_trusts(&st->delay, ack, p->delack_filter)) {
		cc_delay_sample(&st->delay, (u32)ack->rtt_us);
		cc_slow_rtt_sample(&st->slow, (u32)ack->rtt_us, p->srtt_weight_ppm);
	}
	if (st->delay.rtt_min_us != 0U)
		mpert_count_region(st, p, reno_counted_pkts(p->count, ack->acked_pkts));
	cc_gate_follow(&st->gate, conn);
	st->losses.running_pkts = cc_add_sat_u32(st->losses.running_pkts, ack->acked_pkts);
	st->responses.running_pkts = cc_add_sat_u32(st->responses.running_pkts, ack->acked_pkts);
}

/* Congestion avoidance: alpha / cwnd per packet. The progress towards the next +1 is kept: whole
 * packets in cwnd_cnt, the fraction in the state. */
static void mpert_avoid(struct cc_conn *conn, struct mpert_state *st, u32 counted_pkts)
{
	u64 window_q16 = (u64)cc_max_u32(conn->cwnd_pkts, 1U) << 16;
	u64 sum_q16 =
	    ((u64)conn->cwnd_cnt << 16) + st->growth_q16 + (u64)counted_pkts * st->alpha_q16;
	u32 steps_pkts = (u32)cc_min_u64(sum_q16 / window_q16, CC_U32_MAX);

	sum_q16 %= window_q16;
	conn->cwnd_cnt = (u32)(sum_q16 >> 16);
	st->growth_q16 = (u16)(sum_q16 & 0xffffULL);
	conn->cwnd_pkts =
	    cc_min_u32(cc_add_sat_u32(conn->cwnd_pkts, steps_pkts), conn->cwnd_max_pkts);
}

static void mpert_on_ack(struct cc_conn *conn, struct mpert_state *st, const struct mpert_params *p,
			 const struct cc_ack *ack)
{
	u32 counted_pkts = reno_counted_pkts(p->count, ack->acked_pkts);

	if (st->slow.srtt_q8_us != 0U)
		mpert_adapt(conn, st, p);
	if (cc_early_response_due(conn, &st->gate, &st->slow, p->ss_test) &&
	    cc_happens(ack->random, mpert_prob_q32(st, p))) {
		mpert_push(&st->responses, mpert_end(&st->responses));
		cc_early_response(conn, &st->gate, mpert_kept_pkts(st, p, conn->cwnd_pkts),
				  p->holdoff);
		return;
	}
	if (!conn->cwnd_limited)
		return;
	if (reno_in_slow_start(conn))
		counted_pkts = reno_slow_start(conn, p->ss_limit_pkts, counted_pkts);
	if (counted_pkts != 0U && !reno_in_slow_start(conn))
		mpert_avoid(conn, st, counted_pkts);
}

static u32 mpert_ssthresh(struct cc_conn *conn, struct mpert_state *st,
			  const struct mpert_params *p)
{
	u32 flight_pkts = cc_min_u32(conn->cwnd_pkts, conn->outstanding_pkts);

	st->prior_cwnd_pkts = conn->cwnd_pkts;
	if (st->before_loss_pkts != 0U)
		mpert_push(&st->losses, st->before_loss_pkts);
	st->before_loss_pkts = mpert_end(&st->losses);
	if (p->loss_decrease == MPERT_LOSS_HALVE)
		return reno_ssthresh(conn);
	return cc_max_u32(mpert_kept_pkts(st, p, flight_pkts), CC_CWND_FLOOR_PKTS);
}

static void mpert_on_event(struct cc_conn *conn, struct mpert_state *st,
			   const struct mpert_params *p, u32 event)
{
	(void)st;
	(void)p;
	if (event == CC_EVENT_RTO)
		conn->ssthresh_pkts = reno_ssthresh(conn);
}

/* It was not a loss: resume the interval that it ended. */
static u32 mpert_undo(struct cc_conn *conn, struct mpert_state *st, const struct mpert_params *p)
{
	(void)p;
	st->losses.running_pkts = cc_add_sat_u32(st->losses.running_pkts, st->before_loss_pkts);
	st->before_loss_pkts = 0U;
	return cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);
}

static void mpert_observe(const struct mpert_state *st, const struct mpert_params *p,
			  u32 out[CC_OBSERVE_N])
{
	struct mpert_sum losses = mpert_sum(&st->losses, st->before_loss_pkts);
	u64 ratio_q16 = losses.weight != 0U ? mpert_early_per_loss_q16(st, &losses) : 0ULL;

	out[0] = mpert_q_us(st);
	out[1] = mpert_qmax_us(st, p);
	out[2] = (u32)(((u64)st->alpha_q16 * CC_ONE_PPM) >> 16);
	/* From 2^12 on, more than 32 bits. */
	out[3] = ratio_q16 < 1ULL << 28 ? (u32)((ratio_q16 * CC_ONE_PPM) >> 16) : CC_U32_MAX;
}

KNEE_ALGORITHM(mpert, MPERT_PARAMS, MPERT_RULES, MPERT_INVARIANTS, CC_USES_RANDOM,
	       "PERT that grows faster beside loss-based flows and on idle paths",
	       "Kotla, Reddy, IWQoS 2008", "q_us|qmax_us|alpha_ppm|early_per_loss_ppm");
