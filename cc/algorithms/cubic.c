// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * CUBIC: loss-based; the window is a cubic function of the time since the last congestion event.
 *
 * L. Xu, S. Ha, I. Rhee, V. Goel, L. Eggert: "CUBIC for Fast and Long-Distance Networks", RFC 9438;
 * slow start of RFC 9406 (knee/hystart.h) as an option.
 *
 * In congestion avoidance, t seconds after it began (section 4.2):
 *
 *   W_cubic(t) = C (t - K)^3 + Wmax,  K = cbrt((Wmax - cwnd_epoch) / C)
 *   target     = W_cubic(t + RTT), at least cwnd, at most 1.5 cwnd
 *   cwnd      += (target - cwnd) / cwnd                           for each packet acknowledged
 *
 * except that where W_cubic(t) is less than W_est, an estimate of Reno's window, cwnd = W_est
 * (section 4.3). A congestion event: ssthresh = beta flight_size, Wmax = cwnd, or less if the
 * window stayed below the last Wmax (sections 4.6, 4.7). After a timeout K = 0 and Wmax = cwnd as
 * congestion avoidance begins (section 4.8). An unnecessary reduction is undone completely
 * (section 4.9.2).
 *
 * Readings taken where the RFC leaves a choice, each a parameter unless noted:
 *  - CU-a: an ACK of several packets counts for all of them: `count`. W_est always counts packets.
 *    One ACK counts for at most a window (not a parameter).
 *  - CU-b: ssthresh from flight_size (never more than cwnd), or from cwnd as "some implementations"
 *    do (section 4.6; Linux): `reduce_from`. cwnd does not grow while the application limits.
 *  - CU-c: once W_est reaches cwnd_prior, alpha = 1 (section 4.3), or is unchanged, as in RFC 8312
 *    section 4.2, which has no such rule: `reno_alpha`.
 *  - CU-j: the RTT of the target is the smoothed one (section 4.1), or the connection's least, as
 *    dMin in Algorithm 1 of the paper (S. Ha, I. Rhee, L. Xu: "CUBIC: A New TCP-Friendly
 *    High-Speed TCP Variant", ACM SIGOPS OSR 42(5), 2008) and in Linux: `rtt`.
 *  - CU-d: W_est may lie below cwnd where W_cubic(t) lies below both: the window is not reduced
 * (not a parameter).
 *  - CU-e: congestion avoidance begins with the first ACK in it for which the window limits
 *    sending. While the application limits, and from the last ACK until sending resumes, t does not
 *    advance: t_epoch moves with the clock (section 5.8). A new stage begins after slow start and
 *    after the stack restarts an idle window (not parameters).
 *  - CU-f: a Wmax that is not above cwnd_epoch is treated as undefined: K = 0, Wmax = cwnd_epoch
 *    (not a parameter).
 *  - CU-g: thresholds are at least 2 packets for congestion marks too (section 4.6 has 1 for cwnd).
 *  - CU-h: slow start while cwnd < ssthresh strictly (section 4.10 has <=), as NewReno here (not a
 *    parameter).
 *  - CU-i: section 4.10 recommends HyStart++; `slow_start` is the standard one by default, so that
 *    comparisons of algorithms show their behaviour after it.
 *
 * Approximations: t, K and RTT are rounded down to 2^-16 s, K beyond 16 s by a part in 10^6; Wmax
 * to whole packets; growth is at most 6 million packets per round trip.
 * crates/knee-cc/tests/cubic.rs measures the error.
 */
#include "knee/host.h"
#include "knee/growth.h"
#include "knee/hystart.h"
#include "knee/reduce.h"
#include "knee/reno.h"

enum { CUBIC_FROM_CWND = 0, CUBIC_FROM_FLIGHT = 1 };
enum { CUBIC_ALPHA_CONSTANT = 0, CUBIC_ALPHA_RISES = 1 };
enum { CUBIC_RTT_SMOOTHED = 0, CUBIC_RTT_LEAST = 1 };
enum { CUBIC_SS_STANDARD = 0, CUBIC_SS_HYSTARTPP = 1 };

/* Bits of cubic_state.flags. */
#define CUBIC_EPOCH 1U	 /* a stage of congestion avoidance is running */
#define CUBIC_RESTART 2U /* the next one is the first after a timeout */

/* Longest time in a stage, us: 19 hours; after that t stays there. */
#define CUBIC_TIME_MAX_US (1ULL << 36)
#define CUBIC_TIME_MAX_Q16 ((1ULL << 31) - 1ULL)
/* Most packets that one ACK counts for. */
#define CUBIC_COUNTED_MAX_PKTS (1U << 30)

#define CUBIC_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	RENO_SSTHRESH_PARAM(X) \
	X(CC_NUMBER_PPM, c_ppm, "c", "", 1000, 1000000000, 400000, "", "RFC 9438 s5.1: 0.4", \
	  "C, packets/s^3: how fast the window moves away from Wmax") \
	X(CC_PROB_PPM, beta_ppm, "beta", "", 100000, 950000, 700000, "", "RFC 9438 s4.6: 0.7", \
	  "fraction of the window that a congestion event leaves") \
	X(CC_CHOICE, fast_convergence, "fast_convergence", "", 0, 1, 1, "off|on", \
	  "RFC 9438 s4.7: should be on among several flows", \
	  "lower Wmax further if the window stayed below the last one") \
	X(CC_CHOICE, reno_friendly, "reno_friendly", "", 0, 1, 1, "off|on", "RFC 9438 s4.3", \
	  "grow at least as fast as an estimate of Reno's window") \
	X(CC_CHOICE, reno_alpha, "reno_alpha", "", 0, 1, CUBIC_ALPHA_RISES, "constant|rises", \
	  "RFC 9438 s4.3; RFC 8312 s4.2: constant; reading CU-c", \
	  "growth of that estimate once it reaches the last event's window: unchanged, or 1 per RTT") \
	X(CC_CHOICE, reduce_from, "reduce_from", "", 0, 1, CUBIC_FROM_FLIGHT, "cwnd|flight_size", \
	  "RFC 9438 s4.6; reading CU-b", "what beta is applied to") \
	X(CC_CHOICE, rtt, "rtt", "", 0, 1, CUBIC_RTT_SMOOTHED, "smoothed|least", \
	  "RFC 9438 s4.1: smoothed; Ha, Rhee, Xu 2008, Algorithm 1: dMin; reading CU-j", \
	  "how far ahead on the curve the target is") \
	X(CC_CHOICE, slow_start, "slow_start", "", 0, 1, CUBIC_SS_STANDARD, \
	  "standard|hystart++", "RFC 9438 s4.10; RFC 9406; reading CU-i", \
	  "the first slow start: until a loss, or until the RTT rises; then ss_limit is L of RFC " \
	  "9406, 8 packets for senders that do not pace")

#define CUBIC_RULES(R)

CC_PARAMS_STRUCT(cubic, CUBIC_PARAMS);

/* prior_*: before the latest reduction, for undo. */
struct cubic_state {
	u64 epoch_us;	    /* t_epoch */
	u64 latest_us;	    /* latest ACK of this stage */
	u64 est_q32;	    /* W_est, packets */
	u32 epoch_moved_us; /* by how much t_epoch is later than before the latest reduction */
	u32 rtt_min_us;	    /* 0: no sample yet */
	u32 prior_est_pkts;
	u32 wmax_pkts; /* 0: undefined */
	u32 prior_wmax_pkts;
	u32 k_q16; /* K, seconds */
	u32 prior_k_q16;
	u32 cwnd_prior_pkts; /* window before the latest reduction */
	u32 prior_cwnd_prior_pkts;
	u32 credit_q16; /* fraction of a packet towards the next +1 */
	struct cc_hystart hystart;
	u8 flags;
	u8 prior_flags;
	u8 prior_valid; /* the latest reduction has not been undone */
};

#define CUBIC_INVARIANTS(X) \
	CC_AT_MOST(X, epoch_us, CC_NOW_MAX_US) \
	CC_AT_MOST(X, latest_us, CC_NOW_MAX_US) \
	CC_AT_MOST(X, est_q32, (u64)CC_CWND_MAX_PKTS << 32) \
	CC_AT_MOST(X, rtt_min_us, CC_TIME_MAX_US) \
	CC_AT_MOST(X, prior_est_pkts, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, wmax_pkts, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, prior_wmax_pkts, CC_CWND_MAX_PKTS) \
	CC_WITHIN(X, cwnd_prior_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_WITHIN(X, prior_cwnd_prior_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, credit_q16, 0xffffU) \
	CC_HYSTART_INVARIANTS(X) \
	CC_AT_MOST(X, flags, CUBIC_RESTART) \
	CC_AT_MOST(X, prior_flags, CUBIC_RESTART) \
	CC_AT_MOST(X, prior_valid, 1U)

static void cubic_init(struct cc_conn *conn, struct cubic_state *st, const struct cubic_params *p)
{
	reno_start(conn, p->initial_ssthresh_pkts);
	st->epoch_us = conn->now_us;
	st->latest_us = conn->now_us;
	st->cwnd_prior_pkts = conn->cwnd_pkts;
	st->prior_cwnd_prior_pkts = conn->cwnd_pkts;
	cc_hystart_start(&st->hystart, conn);
}

static void cubic_on_rtt(struct cc_conn *conn, struct cubic_state *st, const struct cubic_params *p,
			 const struct cc_ack *ack)
{
	(void)conn;
	(void)p;
	if (ack->rtt_us >= 0) {
		/* A sample of 0 (host clock coarser than the path) must not look like "no sample".
		 */
		u32 rtt_us = cc_min_u32(cc_max_u32((u32)ack->rtt_us, 1U), CC_TIME_MAX_US);

		if (st->rtt_min_us == 0U || rtt_us < st->rtt_min_us)
			st->rtt_min_us = rtt_us;
	}
}

/*
 * Cube root of x, for 2^60 <= x < 2^63: its integer part, or one more where that is less than 10^-6
 * above the root. Newton's iteration from 2^21, which is above the root and at most twice it: the
 * relative error falls as 1, 0.42, 0.11, 0.011, 1.2e-4, 1.3e-8, and rounding down never leads below
 * the integer part. So five steps end less than 0.03 above the root. The sixth leads from the
 * integer above it, if that is where they end, to its integer part r; from r it leads up only if x
 * is 3 r^2 or more above r^3, that is, next to the cube of r + 1.
 */
static u32 cubic_root(u64 x)
{
	u64 root = 1ULL << 21;

	for (u32 i = 0U; i < 6U; i++)
		root = (2ULL * root + x / (root * root)) / 3ULL;
	return (u32)root;
}

/* K = cbrt(rise / C), seconds, for rise > 0. The quotient is scaled to 61 to 63 bits for a root of
 * 21 bits. */
static u32 cubic_k_q16(u32 rise_pkts, u32 c_ppm)
{
	u64 scaled = (u64)rise_pkts * CC_ONE_PPM;
	u32 up = (u32)__builtin_clzll(scaled | 1ULL) - 1U;
	u64 quotient = cc_div_u64(cc_shift_out_u64(scaled, up), c_ppm, 1ULL);
	u32 more = (u32)__builtin_clzll(quotient | 1ULL) - 3U;
	/* Powers of two in K^3 2^48, and 72 more so that this is positive: up + more < 72. */
	u32 exponent = cc_sub_floor_u32(48U + 72U, up + more);
	u64 root = cubic_root(cc_shift_out_u64(quotient, more + exponent % 3U));

	return (u32)cc_min_u64(root << exponent / 3U >> 24, CC_U32_MAX);
}

/* Seconds * 2^16, for less than 2^54 us. */
static u64 cubic_seconds_q16(u64 us)
{
	return us * 1024ULL / 15625ULL;
}

/* W_cubic(t) of section 4.2 eq. 1, packets * 2^16; 0 where it is negative. */
static u64 cubic_window_q16(const struct cubic_state *st, const struct cubic_params *p, u64 t_q16)
{
	u64 wmax_q16 = (u64)st->wmax_pkts << 16;
	u64 k_q16 = st->k_q16;
	u64 from_k = t_q16 > k_q16 ? t_q16 - k_q16 : k_q16 - t_q16;
	u64 d_q16 = cc_min_u64(from_k, CUBIC_TIME_MAX_Q16);
	u64 square_q16 = (d_q16 * d_q16) >> 16;
	/* Below 2^62. */
	u64 cube_q16 = square_q16 * (d_q16 >> 16) + ((square_q16 * (d_q16 & 0xffffULL)) >> 16);
	u64 whole = cube_q16 / CC_ONE_PPM;
	u64 rest = cube_q16 % CC_ONE_PPM;
	/* C d^3, at most 2^34 packets. */
	u64 change_q16 =
	    cc_mul_up_to_u64(whole, p->c_ppm, 1ULL << 50) + rest * p->c_ppm / CC_ONE_PPM;

	if (t_q16 > k_q16)
		return wmax_q16 + change_q16;
	return wmax_q16 > change_q16 ? wmax_q16 - change_q16 : 0ULL;
}

/* A stage of congestion avoidance begins. */
static void cubic_epoch_start(const struct cc_conn *conn, struct cubic_state *st,
			      const struct cubic_params *p)
{
	if ((st->flags & CUBIC_RESTART) != 0U || conn->cwnd_pkts >= st->wmax_pkts) {
		st->wmax_pkts = conn->cwnd_pkts;
		st->k_q16 = 0U;
	} else {
		st->k_q16 = cubic_k_q16(cc_sub_floor_u32(st->wmax_pkts, conn->cwnd_pkts), p->c_ppm);
	}
	/* Undo treats a curve older than 71 minutes as 71 minutes old. */
	st->epoch_moved_us = cc_add_sat_u32(
	    st->epoch_moved_us,
	    (u32)cc_min_u64(cc_sub_floor_u64(conn->now_us, st->epoch_us), CC_U32_MAX));
	st->epoch_us = conn->now_us;
	st->est_q32 = (u64)conn->cwnd_pkts << 32;
	st->credit_q16 = 0U;
	st->flags = CUBIC_EPOCH;
}

/* alpha_cubic, at most 3. */
static u64 cubic_alpha_q32(const struct cubic_state *st, const struct cubic_params *p)
{
	u64 less_ppm = cc_sub_floor_u32(CC_ONE_PPM, p->beta_ppm);

	if (p->reno_alpha == CUBIC_ALPHA_RISES && st->est_q32 >> 32 >= st->cwnd_prior_pkts)
		return 1ULL << 32;
	return (3ULL * less_ppm << 32) / ((u64)CC_ONE_PPM + p->beta_ppm);
}

/* W_est of section 4.3 eq. 4. */
static void cubic_estimate(const struct cc_conn *conn, struct cubic_state *st,
			   const struct cubic_params *p, u32 acked_pkts)
{
	u64 more_q32 = cc_div_u64(cubic_alpha_q32(st, p) * acked_pkts, conn->cwnd_pkts, 0ULL);

	st->est_q32 = cc_min_u64(st->est_q32 + more_q32, (u64)conn->cwnd_max_pkts << 32);
}

static void cubic_avoid(struct cc_conn *conn, struct cubic_state *st, const struct cubic_params *p,
			u32 counted_pkts, u32 acked_pkts)
{
	u32 most_pkts = cc_min_u32(conn->cwnd_pkts, CUBIC_COUNTED_MAX_PKTS);
	u64 cwnd_q16 = (u64)conn->cwnd_pkts << 16;
	u64 t_q16, target_q16;

	if ((st->flags & CUBIC_EPOCH) == 0U) {
		if (!conn->cwnd_limited)
			return;
		cubic_epoch_start(conn, st, p);
	} else if (!conn->cwnd_limited) {
		st->epoch_us = cc_min_u64(cc_min_u64(st->epoch_us, conn->now_us) +
					      cc_sub_floor_u64(conn->now_us, st->latest_us),
					  conn->now_us);
		st->latest_us = conn->now_us;
		return;
	}
	st->latest_us = conn->now_us;
	cubic_estimate(conn, st, p, cc_min_u32(acked_pkts, most_pkts));
	t_q16 = cubic_seconds_q16(
	    cc_min_u64(cc_sub_floor_u64(conn->now_us, st->epoch_us), CUBIC_TIME_MAX_US));
	if (p->reno_friendly && cubic_window_q16(st, p, t_q16) < st->est_q32 >> 16) {
		conn->cwnd_pkts = cc_max_u32(conn->cwnd_pkts, (u32)(st->est_q32 >> 32));
		return;
	}
	t_q16 += cubic_seconds_q16(
	    p->rtt == CUBIC_RTT_LEAST ? st->rtt_min_us : cc_min_u32(conn->srtt_us, CC_TIME_MAX_US));
	target_q16 = cc_min_u64(cubic_window_q16(st, p, t_q16), cwnd_q16 + cwnd_q16 / 2ULL);
	if (target_q16 > cwnd_q16)
		cc_grow_q16(conn, &st->credit_q16, target_q16 - cwnd_q16,
			    cc_min_u32(counted_pkts, most_pkts));
}

/* Returns the packets left over for congestion avoidance. */
static u32 cubic_slow_start(struct cc_conn *conn, struct cubic_state *st,
			    const struct cubic_params *p, const struct cc_ack *ack)
{
	u32 counted = reno_counted_pkts(p->count, ack->acked_pkts);

	st->flags &= (u8)(~CUBIC_EPOCH & 0xffU);
	if (p->slow_start == CUBIC_SS_STANDARD || !cc_hystart_active(conn))
		return conn->cwnd_limited ? reno_slow_start(conn, p->ss_limit_pkts, counted) : 0U;
	if (conn->cwnd_limited)
		cc_hystart_grow(conn, &st->hystart, p->ss_limit_pkts, counted);
	if (cc_hystart_ack(&st->hystart, conn, ack->rtt_us)) {
		conn->ssthresh_pkts = cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
		conn->cwnd_cnt = 0U;
	}
	return 0U;
}

static void cubic_on_ack(struct cc_conn *conn, struct cubic_state *st, const struct cubic_params *p,
			 const struct cc_ack *ack)
{
	u32 acked = ack->acked_pkts;
	u32 left;

	if (!reno_in_slow_start(conn)) {
		cubic_avoid(conn, st, p, reno_counted_pkts(p->count, acked), acked);
		return;
	}
	left = cubic_slow_start(conn, st, p, ack);
	if (left != 0U && !reno_in_slow_start(conn))
		cubic_avoid(conn, st, p, left, left);
}

static u32 cubic_ssthresh(struct cc_conn *conn, struct cubic_state *st,
			  const struct cubic_params *p)
{
	u32 cwnd_pkts = conn->cwnd_pkts;
	u32 from_pkts = p->reduce_from == CUBIC_FROM_FLIGHT
			    ? cc_min_u32(cwnd_pkts, conn->outstanding_pkts)
			    : cwnd_pkts;

	/* t_epoch itself stays until a stage begins. */
	st->epoch_moved_us = 0U;
	st->prior_est_pkts = (u32)(st->est_q32 >> 32);
	st->prior_wmax_pkts = st->wmax_pkts;
	st->prior_k_q16 = st->k_q16;
	st->prior_cwnd_prior_pkts = st->cwnd_prior_pkts;
	st->prior_flags = st->flags;
	st->prior_valid = 1;

	/* Section 4.7. */
	if (p->fast_convergence && cwnd_pkts < st->wmax_pkts)
		st->wmax_pkts =
		    (u32)((u64)cwnd_pkts * ((u64)CC_ONE_PPM + p->beta_ppm) / (2ULL * CC_ONE_PPM));
	else
		st->wmax_pkts = cwnd_pkts;
	st->cwnd_prior_pkts = cwnd_pkts;
	st->credit_q16 = 0U;
	st->flags = 0;
	cc_hystart_start(&st->hystart, conn);
	return cc_reduced_pkts(from_pkts, p->beta_ppm);
}

static void cubic_on_event(struct cc_conn *conn, struct cubic_state *st,
			   const struct cubic_params *p, u32 event)
{
	(void)p;
	if (event == CC_EVENT_RTO) {
		st->flags = CUBIC_RESTART;
	} else if (event == CC_EVENT_CWND_RESTART) {
		st->flags &= (u8)(~CUBIC_EPOCH & 0xffU);
	} else if (event == CC_EVENT_TX_START && (st->flags & CUBIC_EPOCH) != 0U) {
		st->epoch_us = cc_min_u64(cc_min_u64(st->epoch_us, conn->now_us) +
					      cc_sub_floor_u64(conn->now_us, st->latest_us),
					  conn->now_us);
		st->latest_us = conn->now_us;
	}
}

/* Section 4.9.2. */
static u32 cubic_undo(struct cc_conn *conn, struct cubic_state *st, const struct cubic_params *p)
{
	u32 window_pkts = cc_max_u32(conn->cwnd_pkts, st->cwnd_prior_pkts);

	(void)p;
	if (!st->prior_valid || conn->cwnd_pkts >= st->cwnd_prior_pkts)
		return conn->cwnd_pkts;
	st->prior_valid = 0;
	st->epoch_us = cc_sub_floor_u64(st->epoch_us, st->epoch_moved_us);
	st->est_q32 = (u64)st->prior_est_pkts << 32;
	st->wmax_pkts = st->prior_wmax_pkts;
	st->k_q16 = st->prior_k_q16;
	st->cwnd_prior_pkts = st->prior_cwnd_prior_pkts;
	st->flags = st->prior_flags;
	/* A return to the first slow start starts its rounds over. */
	cc_hystart_start(&st->hystart, conn);
	return window_pkts;
}

static void cubic_observe(const struct cubic_state *st, const struct cubic_params *p,
			  u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = st->wmax_pkts;
	out[1] = (u32)cc_min_u64((u64)st->k_q16 * 15625ULL / 1024ULL, CC_U32_MAX);
	out[2] = (u32)(st->est_q32 >> 32);
	out[3] = (u32)cc_hystart_in_css(&st->hystart);
}

KNEE_ALGORITHM(cubic, CUBIC_PARAMS, CUBIC_RULES, CUBIC_INVARIANTS, CC_NO_RANDOM,
	       "the window is a cubic function of the time since the last congestion event",
	       "RFC 9438", "wmax_pkts|k_us|w_est_pkts|in_css");
