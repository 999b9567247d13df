// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * H-TCP: loss-based AIMD whose increase grows with the time since the last congestion event.
 *
 * G. Armitage, L. Stewart, M. Welzl, J. Healy: "An independent H-TCP implementation under FreeBSD
 * 7.0 - description and observed behaviour", ACM CCR 38(3), 2008; D. Leith, R. Shorten: "H-TCP: TCP
 * Congestion Control for High Bandwidth-Delay Product Paths", Internet draft -04, 2007.
 *
 * Per ACK in congestion avoidance: cwnd += alpha(Delta)/cwnd (eqs. 1 and 2), where Delta is the
 * time since the last congestion event and alpha = 1 for the first `delta_l`. At a congestion
 * event: ssthresh = beta cwnd (eq. 11) and Delta starts again, before recovery, whose time counts
 * (section 4.5). The extensions are parameters: RTT scaling (eqs. 3 to 5), adaptive backoff (eqs. 6
 * to 11), adaptive reset. All off is the core, which the paper evaluates and which is the default;
 * `rtt_scaling=on adaptive_backoff=on` is the paper's "de facto" H-TCP.
 *
 * Readings taken where the paper is ambiguous, each a parameter unless noted:
 *  - eqs. 5 and 9 each start from the raw alpha; with both extensions on they multiply, with one
 *    final max(1, .) (not a parameter).
 *  - RTTmax - RTTmin shrinks to 7/8 at a congestion event (eq. 10), to 0.95 in Linux and FreeBSD:
 *    `fade`.
 *  - eq. 1 gives the increment, not the window (not a parameter).
 *  - the RTT is the stack's smoothed one, as in the paper's stack, or the latest sample: `signal`.
 *  - the first congestion event halves: beta adapts only after it: `first_event`.
 *  - Delta starts again at the second of two timeouts in a row only (section 4.5): `rto_restart`.
 *    The contract does not report a timer that expires again before any progress; two in a row are
 *    two reported timeouts without a round trip in good order between them. With `first`, undo
 *    reverses the effect of a spurious timeout. Otherwise a timeout is NewReno's.
 *  - the fixed-point alpha of the paper (Listing 2), or the exact one: `alpha_form`.
 *  - adaptive reset, which the paper only names, is that of the public implementations: beta = 1/2
 *    at an event where the largest achieved throughput since the last event differs by more than
 *    `reset_threshold` from the one before, and at the next event.
 *  - what Linux does differently: `linux_compat`.
 *  - Delta counts idle time too (as printed; not a parameter).
 *  - RTTmin = RTTmax = the eighth RTT update (section 4.3: RTTmin waits for eight; RTTmax waits
 * with it); until then beta = 1/2 and rho = 1 (not a parameter).
 */
#include "knee/host.h"
#include "knee/delay.h"
#include "knee/growth.h"
#include "knee/htcp.h"
#include "knee/reduce.h"
#include "knee/reno.h"
#include "knee/round.h"

enum { HTCP_ALPHA_EXACT = 0, HTCP_ALPHA_LISTING2 = 1 };
enum { HTCP_FIRST_HALF = 0, HTCP_FIRST_ADAPTIVE = 1 };
enum { HTCP_SIGNAL_RAW = 0, HTCP_SIGNAL_SRTT = 1 };
enum { HTCP_RTO_FIRST = 0, HTCP_RTO_SECOND = 1 };

/* RTT updates before RTTmin and RTTmax are set (section 4.3). */
#define HTCP_MIN_SAMPLES 8U
/* Rounds after an event whose throughput is neither smoothed nor compared. */
#define HTCP_RESET_ROUNDS 3U
/* linux_compat: largest rise of RTTmax per sample; RTTmin up to which beta does not adapt. */
#define HTCP_COMPAT_RISE_US 20000U
#define HTCP_COMPAT_RTT_MIN_US 10000U

#define HTCP_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	RENO_SSTHRESH_PARAM(X) \
	X(CC_TIME_US, low_speed_us, "delta_l", "", 0, 10000000, 1000000, "", \
	  "H-TCP paper s3.1: 1 s", \
	  "time after a congestion event for which the window grows as NewReno's") \
	X(CC_CHOICE, alpha_form, "alpha_form", "", 0, 1, HTCP_ALPHA_EXACT, "exact|listing2", \
	  "H-TCP paper eq. 2; Listing 2; reading HT-g", \
	  "exact alpha, or rounded as in the paper's implementation") \
	X(CC_CHOICE, rtt_scaling, "rtt_scaling", "rtt_scaling", 0, 1, 0, "off|on", \
	  "H-TCP paper s3.2; s6: core", "scale alpha with the RTT") \
	X(CC_CHOICE, adaptive_backoff, "adaptive_backoff", "adaptive_backoff", 0, 1, 0, "off|on", \
	  "H-TCP paper s3.3; s6: core", "beta = RTTmin/RTTmax instead of 1/2") \
	X(CC_CHOICE, adaptive_reset, "adaptive_reset", "", 0, 1, 0, "off|on", \
	  "H-TCP paper s3.3: not evaluated", \
	  "adaptive backoff halves if the achieved throughput has changed") \
	X(CC_TIME_US, rtt_ref_us, "rtt_ref", "", 1000, 10000000, 100000, "", \
	  "H-TCP paper s3.2: 100 ms", "RTT at which RTT scaling leaves alpha unchanged") \
	X(CC_NUMBER_PPM, rho_min_ppm, "rho_min", "", 0, 1000000, 100000, "", \
	  "H-TCP paper s3.2: 0.1", "smallest factor of RTT scaling") \
	X(CC_NUMBER_PPM, rho_max_ppm, "rho_max", "", 1000000, 10000000, 2000000, "", \
	  "H-TCP paper s3.2: 2", "largest factor of RTT scaling") \
	X(CC_PROB_PPM, beta_min_ppm, "beta_min", "", 0, 1000000, 500000, "", \
	  "H-TCP paper s3.3: 0.5", "smallest beta of adaptive backoff") \
	X(CC_PROB_PPM, beta_max_ppm, "beta_max", "", 0, 1000000, 800000, "", \
	  "H-TCP paper s3.3: 0.8", "largest beta of adaptive backoff") \
	X(CC_PROB_PPM, fade_ppm, "fade", "", 0, 1000000, 875000, "", \
	  "H-TCP paper eq. 10: 7/8; reading HT-b", \
	  "fraction of RTTmax - RTTmin that a congestion event leaves") \
	X(CC_CHOICE, first_event, "first_event", "", 0, 1, HTCP_FIRST_HALF, "half|adaptive", \
	  "reading HT-h: as Linux and FreeBSD", \
	  "whether adaptive backoff halves at the connection's first congestion event") \
	X(CC_PROB_PPM, reset_threshold_ppm, "reset_threshold", "", 0, 1000000, 200000, "", \
	  "Shorten, Leith 2004: 20 %; reading HT-k", \
	  "relative change of the throughput at which adaptive reset halves") \
	X(CC_CHOICE, signal, "signal", "", 0, 1, HTCP_SIGNAL_SRTT, "raw|srtt", \
	  "H-TCP paper s4.5: smoothed; reading HT-e", "RTT from which RTTmin, RTTmax and rho are computed") \
	X(CC_CHOICE, rto_restart, "rto_restart", "", 0, 1, HTCP_RTO_SECOND, "first|second", \
	  "H-TCP paper s4.5: second; reading HT-i", \
	  "which of consecutive timeouts restarts Delta") \
	X(CC_CHOICE, linux_compat, "linux_compat", "", 0, 1, 0, "off|on", "reading HT-f", \
	  "Linux's rules: RTTmax rises by 20 ms a sample in good order, rho of RTTmin, beta adapts " \
	  "above 10 ms, alpha in whole packets, Delta from the end of a recovery on")

#define HTCP_RULES(R) R(beta_min_ppm, CC_LESS_THAN, beta_max_ppm)

CC_PARAMS_STRUCT(htcp, HTCP_PARAMS);

struct htcp_state {
	u64 event_us;	    /* last congestion event, or the start */
	u64 prior_event_us; /* prior_*: before the latest reduction, for undo */
	u64 round_start_us;
	struct cc_delay delay; /* rtt_min_us = 0: fewer than eight samples */
	struct cc_round round;
	u32 round_start_pkts; /* delivered when the round started; wraps */
	u32 rate_q8;	      /* smoothed achieved throughput, packets/s */
	u32 rate_max_q8;      /* its maximum since the last event */
	u32 rate_prev_q8;     /* that maximum at the last event */
	u32 prior_rate_prev_q8;
	u32 prior_rtt_max_us;
	u32 prior_cwnd_pkts;
	u32 credit_q16;	 /* fraction of a packet towards the next +1 */
	u32 alpha_milli; /* for observe */
	u8 samples;	 /* up to HTCP_MIN_SAMPLES */
	u8 rounds;	 /* since the last event, up to HTCP_RESET_ROUNDS */
	u8 adapting;	 /* beta may adapt: after the first event, not after a reset */
	u8 prior_adapting;
	u8 timed_out;	/* a timeout without a round in good order since */
	u8 prior_valid; /* the latest reduction has not been undone */
};

#define HTCP_INVARIANTS(X) \
	CC_AT_MOST(X, event_us, CC_NOW_MAX_US) \
	CC_AT_MOST(X, prior_event_us, CC_NOW_MAX_US) \
	CC_AT_MOST(X, round_start_us, CC_NOW_MAX_US) \
	CC_DELAY_INVARIANTS(X) \
	X(rtt_range, st->delay.rtt_min_us <= st->delay.rtt_max_us) \
	CC_AT_MOST(X, prior_rtt_max_us, CC_TIME_MAX_US) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, credit_q16, 0xffffU) \
	X(alpha_milli, st->alpha_milli >= 1000U) \
	CC_AT_MOST(X, samples, HTCP_MIN_SAMPLES) \
	CC_AT_MOST(X, rounds, HTCP_RESET_ROUNDS) \
	CC_AT_MOST(X, adapting, 1U) \
	CC_AT_MOST(X, prior_adapting, 1U) \
	CC_AT_MOST(X, timed_out, 1U) \
	CC_AT_MOST(X, prior_valid, 1U)

static void htcp_init(struct cc_conn *conn, struct htcp_state *st, const struct htcp_params *p)
{
	reno_start(conn, p->initial_ssthresh_pkts);
	st->event_us = conn->now_us;
	st->prior_event_us = conn->now_us;
	st->round_start_us = conn->now_us;
	cc_round_start(&st->round, conn);
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->alpha_milli = 1000U;
	st->adapting = p->first_event == HTCP_FIRST_ADAPTIVE;
	st->prior_adapting = st->adapting;
}

/* eqs. 6 and 7, from the eighth RTT update on. */
static void htcp_sample(const struct cc_conn *conn, struct htcp_state *st,
			const struct htcp_params *p, u32 rtt_us)
{
	u32 before_us = st->delay.rtt_max_us;

	if (st->samples < HTCP_MIN_SAMPLES && ++st->samples < HTCP_MIN_SAMPLES)
		return;
	cc_delay_sample(&st->delay, rtt_us);
	if (p->linux_compat && before_us != 0U &&
	    (conn->phase != CC_OPEN ||
	     cc_sub_floor_u32(st->delay.rtt_max_us, before_us) > HTCP_COMPAT_RISE_US))
		st->delay.rtt_max_us = before_us;
}

/* The throughput of the round that has ended; adaptive reset's measure. */
static void htcp_rate(const struct cc_conn *conn, struct htcp_state *st, const struct cc_ack *ack)
{
	u64 pkts = cc_wrapping_sub_u32(cc_low_u32(ack->delivered_pkts), st->round_start_pkts);
	u64 rate_q8 = cc_div_u64(pkts * (256ULL * 1000000ULL),
				 cc_sub_floor_u64(conn->now_us, st->round_start_us), 0ULL);
	u32 now_q8 = rate_q8 < CC_U32_MAX ? (u32)rate_q8 : CC_U32_MAX;

	st->round_start_us = conn->now_us;
	st->round_start_pkts = cc_low_u32(ack->delivered_pkts);
	if (st->rounds < HTCP_RESET_ROUNDS) {
		st->rounds++;
		st->rate_q8 = now_q8;
		st->rate_max_q8 = now_q8;
		return;
	}
	st->rate_q8 = (u32)((3ULL * st->rate_q8 + now_q8) / 4ULL);
	st->rate_max_q8 = cc_max_u32(st->rate_max_q8, st->rate_q8);
}

static void htcp_on_rtt(struct cc_conn *conn, struct htcp_state *st, const struct htcp_params *p,
			const struct cc_ack *ack)
{
	if (p->signal == HTCP_SIGNAL_RAW) {
		if (cc_delay_trusts(&st->delay, ack, p->delack_filter))
			htcp_sample(conn, st, p, (u32)ack->rtt_us);
	} else if (ack->rtt_us >= 0 && conn->srtt_us != 0U) {
		htcp_sample(conn, st, p, conn->srtt_us);
	}
	if (!cc_round_ended(&st->round, conn))
		return;
	conn->notes |= CC_NOTE_ROUND;
	htcp_rate(conn, st, ack);
	if (conn->phase == CC_OPEN || conn->phase == CC_DISORDER)
		st->timed_out = 0;
}

/* eq. 8, bounded; 1/2 where it does not adapt. */
static u64 htcp_beta_q32(const struct htcp_state *st, const struct htcp_params *p)
{
	u64 min_q32 = cc_ppm_to_q32(p->beta_min_ppm);
	u64 max_q32 = cc_ppm_to_q32(p->beta_max_ppm);
	u64 beta_q32;

	if (!p->adaptive_backoff || !st->adapting || st->delay.rtt_min_us == 0U)
		return HTCP_HALF_Q32;
	if (p->linux_compat && st->delay.rtt_min_us <= HTCP_COMPAT_RTT_MIN_US)
		return HTCP_HALF_Q32;
	beta_q32 = cc_scale_q32(1ULL << 32, st->delay.rtt_min_us, st->delay.rtt_max_us);
	if (beta_q32 < min_q32)
		return min_q32;
	return beta_q32 < max_q32 ? beta_q32 : max_q32;
}

/* eq. 3, bounded, times 2^24. At most 10 * 2^24. */
static u64 htcp_rho_q24(const struct htcp_state *st, const struct htcp_params *p)
{
	u64 min_q24 = ((u64)p->rho_min_ppm << 24) / CC_ONE_PPM;
	u64 max_q24 = ((u64)p->rho_max_ppm << 24) / CC_ONE_PPM;
	u64 rtt_us = st->delay.rtt_min_us + (p->linux_compat ? 0U : st->delay.q_us);
	u64 rho_q24 = cc_div_u64(rtt_us << 24, p->rtt_ref_us, 1ULL << 24);

	if (rtt_us == 0ULL)
		return 1ULL << 24;
	if (rho_q24 < min_q24)
		return min_q24;
	return rho_q24 < max_q24 ? rho_q24 : max_q24;
}

/* linux_compat: whole packets, at least one. */
static u64 htcp_compat_q16(u64 alpha_q16, const struct htcp_params *p)
{
	if (!p->linux_compat)
		return alpha_q16;
	return alpha_q16 > 1ULL << 16 ? alpha_q16 >> 16 << 16 : 1ULL << 16;
}

/* eqs. 2, 5 and 9. */
static u64 htcp_scaled_alpha_q16(const struct cc_conn *conn, const struct htcp_state *st,
				 const struct htcp_params *p)
{
	u32 x_us = htcp_x_us(cc_sub_floor_u64(conn->now_us, st->event_us), p->low_speed_us);
	u64 alpha_q16 = p->alpha_form == HTCP_ALPHA_EXACT ? htcp_alpha_q16(x_us)
							  : htcp_alpha_listing2_q16(x_us);

	alpha_q16 = htcp_compat_q16(alpha_q16, p);
	/* alpha_q16 < 2^34.2, rho_q24 < 2^27.4. */
	if (p->rtt_scaling)
		alpha_q16 = htcp_compat_q16((alpha_q16 * htcp_rho_q24(st, p)) >> 24, p);
	if (p->adaptive_backoff)
		alpha_q16 = htcp_alpha_for_beta_q16(alpha_q16, htcp_beta_q32(st, p));
	return alpha_q16 > 1ULL << 16 ? alpha_q16 : 1ULL << 16;
}

static void htcp_on_ack(struct cc_conn *conn, struct htcp_state *st, const struct htcp_params *p,
			const struct cc_ack *ack)
{
	u64 alpha_q16 = htcp_scaled_alpha_q16(conn, st, p);
	u64 milli = (alpha_q16 * 1000ULL) >> 16;
	u32 counted = reno_counted_to_avoid(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);

	st->alpha_milli = milli < CC_U32_MAX ? (u32)milli : CC_U32_MAX;
	if (counted != 0U)
		cc_grow_q16(conn, &st->credit_q16, alpha_q16, counted);
}

/* Adaptive reset: whether the achieved throughput has changed since the last event. */
static int htcp_rate_changed(const struct htcp_state *st, const struct htcp_params *p)
{
	u64 now = st->rate_max_q8;
	u64 before = st->rate_prev_q8;
	u64 change = now > before ? now - before : before - now;

	return change * CC_ONE_PPM > before * p->reset_threshold_ppm;
}

static u32 htcp_ssthresh(struct cc_conn *conn, struct htcp_state *st, const struct htcp_params *p)
{
	u32 range_us = cc_delay_qmax_us(&st->delay);
	u64 beta_q32;

	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->prior_event_us = st->event_us;
	st->prior_rtt_max_us = st->delay.rtt_max_us;
	st->prior_adapting = st->adapting;
	st->prior_rate_prev_q8 = st->rate_prev_q8;
	st->prior_valid = 1;

	/* After a change of throughput: halve now and, as `adapting` is 0 then, at the next
	 * event. */
	if (p->adaptive_reset && htcp_rate_changed(st, p)) {
		st->adapting = 0;
		beta_q32 = htcp_beta_q32(st, p);
	} else {
		beta_q32 = htcp_beta_q32(st, p);
		st->adapting = 1;
	}
	st->rate_prev_q8 = st->rate_max_q8;
	st->rounds = 0;
	st->event_us = conn->now_us;
	st->credit_q16 = 0U;
	/* eq. 10. */
	st->delay.rtt_max_us = cc_min_u32(
	    st->delay.rtt_min_us + (u32)((u64)range_us * p->fade_ppm / CC_ONE_PPM), CC_TIME_MAX_US);
	return cc_reduced_q32_pkts(conn->cwnd_pkts, beta_q32);
}

/* Undoes the latest call of ssthresh(), except for the RTTs and rounds since. */
static void htcp_revert(struct htcp_state *st)
{
	st->event_us = st->prior_event_us;
	if (!st->prior_valid)
		return;
	st->prior_valid = 0;
	st->delay.rtt_max_us = cc_max_u32(st->delay.rtt_max_us, st->prior_rtt_max_us);
	st->adapting = st->prior_adapting;
	/* The maximum of the epoch that continues. */
	st->rate_max_q8 = cc_max_u32(st->rate_max_q8, st->rate_prev_q8);
	st->rate_prev_q8 = st->prior_rate_prev_q8;
	st->rounds = HTCP_RESET_ROUNDS;
}

static void htcp_on_event(struct cc_conn *conn, struct htcp_state *st, const struct htcp_params *p,
			  u32 event)
{
	if (event == CC_EVENT_RECOVERED) {
		st->timed_out = 0;
		if (p->linux_compat)
			st->event_us = conn->now_us;
	} else if (event == CC_EVENT_RTO) {
		htcp_revert(st);
		if (p->rto_restart == HTCP_RTO_FIRST || st->timed_out)
			st->event_us = conn->now_us;
		st->timed_out = 1;
		conn->ssthresh_pkts = reno_ssthresh(conn);
	}
}

static u32 htcp_undo(struct cc_conn *conn, struct htcp_state *st, const struct htcp_params *p)
{
	(void)p;
	htcp_revert(st);
	return cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);
}

static void htcp_observe(const struct htcp_state *st, const struct htcp_params *p,
			 u32 out[CC_OBSERVE_N])
{
	out[0] = st->alpha_milli;
	out[1] = (u32)((htcp_beta_q32(st, p) * CC_ONE_PPM) >> 32);
	out[2] = st->delay.rtt_min_us;
	out[3] = st->delay.rtt_max_us;
}

KNEE_ALGORITHM(htcp, HTCP_PARAMS, HTCP_RULES, HTCP_INVARIANTS, CC_NO_RANDOM,
	       "H-TCP: increase grows with the time since the last congestion event",
	       "Armitage et al., ACM CCR 38(3), 2008",
	       "alpha_milli|beta_ppm|rtt_min_us|rtt_max_us");
