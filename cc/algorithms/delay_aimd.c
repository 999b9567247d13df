// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Delay-based AIMD.
 *
 * D. Leith, R. Shorten, G. McCullagh, J. Heffner, L. Dunn, F. Baker: "Delay-based AIMD congestion
 * control", PFLDnet 2007.
 *
 * H-TCP's increase (eq. 2) while the queueing delay tau is at most tau0; where tau exceeds it, a
 * backoff by beta = delta RTTmin/RTT (eqs. 3 and 4), which empties exactly the queue that the flow
 * can see and, as delta < 1, lets RTTmin ratchet down to the propagation delay. Against loss-based
 * flows tau0 rises with the recent queue (eq. 5) and backoffs are Delta0 apart, with a flat window
 * between (eq. 6). Slow start is limited so that its bursts queue no longer than tau0 (eq. 7).
 * Losses back off by beta too (eq. 6, third case).
 *
 * Readings taken where the paper is ambiguous, each a parameter unless noted:
 *  - eq. 2 prints min and 0.5; read as max and 0.25, which gives Table I (not a parameter).
 *  - Algorithm 1 line 22 compares tau with the base threshold, eq. 6 with the adaptive one:
 * `theta`.
 *  - Algorithm 1 line 8 tests "tau = Tmax"; read as "this ACK set a new RTTmax" (section IV; not a
 *    parameter).
 *  - eq. 7 is about the queue that slow start makes: RTTs of data that was outstanding at a timeout
 *    may contain an outage, and give neither an estimate nor a backoff (not a parameter).
 *  - tau0 in eq. 7 is the base threshold, or the adaptive one: `ss_tau`.
 *  - the listing takes each RTT, the text a smoothed one for tau: `signal`. RTTmin, RTTmax and beta
 *    take each RTT.
 *  - grow iff tau <= tau0, back off iff tau > threshold (not a parameter: measure zero).
 *  - Algorithm 1 line 19 scales alpha by 2(1 - beta), eqs. 1 and 6 do not, and the H-TCP paper
 *    bounds the product below by 1: `alpha_scaling`. beta there is the one of the present RTT.
 *  - an ACK that backs off does not also grow the window (not a parameter).
 *  - slow start while cwnd < ssthresh; the listing's <= differs by one packet (not a parameter).
 *  - at least one round trip lies between delay backoffs, whatever Delta0: the data outstanding at
 *    the last must be acknowledged (not a parameter).
 *  - the listing's a RTT/cwnd is for an ACK of one packet; an ACK of n decays RTTmax n times as
 *    much, if growth counts packets (`count`).
 *  - `preset_rtt_min`: a wrong first RTTmin, as for Figs. 3 and 4, makes sense only if the queue
 *    hides the true one. Until the RTT reaches the preset for the first time, or until a backoff,
 *    shorter RTTs count as the preset.
 *  - timeouts: NewReno's, and they restart Delta (the paper is silent; not a parameter).
 *  - a loss before any RTT sample halves (not a parameter).
 *  - RTTmin never rises (as printed).
 */
#include "knee/host.h"
#include "knee/delay.h"
#include "knee/growth.h"
#include "knee/htcp.h"
#include "knee/reduce.h"
#include "knee/reno.h"

enum { DA_THETA_ADAPTIVE = 0, DA_THETA_BASE = 1 };
enum { DA_SIGNAL_RAW = 0, DA_SIGNAL_SRTT = 1 };
enum { DA_SCALING_OFF = 0, DA_SCALING_ON = 1, DA_SCALING_FLOOR = 2 };
enum { DA_SLOW_START_OFF = 0, DA_SLOW_START_STANDARD = 1, DA_SLOW_START_LIMITED = 2 };
enum { DA_SS_TAU_BASE = 0, DA_SS_TAU_ADAPTIVE = 1 };

/* max_ssthresh before any estimate, or if it does not fit 24 bits of packets. */
#define DA_NO_LIMIT CC_U32_MAX

#define DELAY_AIMD_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	CC_DELACK_PARAM(X) \
	RENO_SSTHRESH_PARAM(X) \
	X(CC_TIME_US, tau0_us, "tau0", "", 0, 10000000, 20000, "", \
	  "AIMD paper Figs. 2 to 4: 20 ms; Fig. 7: 50 ms", \
	  "queueing delay that triggers a backoff, before it adapts") \
	X(CC_PKTS, w0_pkts, "w0", "", 0, 1073741824, 10, "", "AIMD paper eq. 1: no value; reading", \
	  "window up to which delay has no effect") \
	X(CC_PROB_PPM, delta_ppm, "delta", "", 1, 1000000, 900000, "", \
	  "AIMD paper Fig. 4: 0.75; Fig. 8 implies 0.9; reading", \
	  "beta = delta RTTmin/RTT; below 1 it drains the queue to find a lower RTTmin") \
	X(CC_PROB_PPM, beta_max_ppm, "beta_max", "", 1, 1000000, 900000, "", \
	  "AIMD paper Algorithm 1 line 5: 0.9", "largest beta") \
	X(CC_PROB_PPM, beta_min_ppm, "beta_min", "", 0, 900000, 0, "", \
	  "AIMD paper Algorithm 1: none", "smallest beta") \
	X(CC_PROB_PPM, first_beta_ppm, "first_beta", "", 0, 1000000, 0, "", \
	  "AIMD paper Fig. 2: 0.5", "beta of the connection's first backoff; 0: as any other") \
	X(CC_PROB_PPM, gamma_ppm, "gamma", "", 0, 1000000, 700000, "", \
	  "AIMD paper eq. 5: no value, 0 to 1; reading by fit to Figs. 6 and 7", \
	  "weight of the recent queueing delay in the adaptive threshold") \
	X(CC_NUMBER_PPM, decay_ppm, "rtt_max_decay", "", 0, 1000000, 10000, "", \
	  "AIMD paper Algorithm 1 line 3: a, no value; reading", \
	  "fraction of an RTT by which RTTmax decays per round trip") \
	X(CC_NUMBER_PPM, kappa_ppm, "kappa", "", 0, 1000000000, 25000000, "", \
	  "AIMD paper sIII: no value; reading by fit to Figs. 6 and 7", \
	  "least time between delay backoffs, in units of RTTmax - RTTmin") \
	X(CC_TIME_US, low_speed_us, "delta_l", "", 0, 10000000, 1000000, "", "AIMD paper eq. 2: 1 s", \
	  "time after a backoff for which the window grows as NewReno's") \
	X(CC_CHOICE, theta, "theta", "", 0, 1, DA_THETA_ADAPTIVE, "adaptive|base", \
	  "AIMD paper eq. 6; Algorithm 1 line 22; reading DA-c", "threshold of the backoff") \
	X(CC_CHOICE, signal, "signal", "", 0, 1, DA_SIGNAL_RAW, "raw|srtt", \
	  "AIMD paper Algorithm 1; sII-A; reading DA-f", "RTT that gives the queueing delay") \
	X(CC_CHOICE, alpha_scaling, "alpha_scaling", "", 0, 2, DA_SCALING_ON, "off|on|floor", \
	  "AIMD paper Algorithm 1 line 19; eq. 6; reading DA-h", \
	  "increase by alpha, by 2(1 - beta) alpha, or by at least 1") \
	X(CC_CHOICE, slow_start, "slow_start", "", 0, 2, DA_SLOW_START_LIMITED, \
	  "off|standard|limited", "AIMD paper sIV; off in Fig. 8", "slow start") \
	X(CC_CHOICE, ss_tau, "ss_tau", "", 0, 1, DA_SS_TAU_BASE, "base|adaptive", \
	  "AIMD paper eq. 7; reading DA-m", "threshold that limits slow start") \
	X(CC_TIME_US, preset_rtt_min_us, "preset_rtt_min", "", 0, 10000000, 0, "", \
	  "AIMD paper Fig. 3: 200 ms", "first RTTmin; 0: the first RTT")

#define DELAY_AIMD_RULES(R) R(beta_min_ppm, CC_LESS_THAN, beta_max_ppm)

CC_PARAMS_STRUCT(delay_aimd, DELAY_AIMD_PARAMS);

struct delay_aimd_state {
	u64 backoff_us;	       /* last backoff of any cause, or the start */
	u64 prior_backoff_us;  /* prior_*: before the latest loss, for undo */
	struct cc_delay delay; /* rtt_max_us: whole part of the decaying RTTmax */
	u32 rtt_max_q24;       /* its fraction */
	u32 max_ssthresh_q8;   /* packets; DA_NO_LIMIT: none yet */
	u32 srtt_us;	       /* of the latest call */
	u32 hold_pos;	       /* RTTs say nothing of the queue until this is acknowledged */
	u32 prior_cwnd_pkts;
	u32 credit_q16; /* fraction of a packet towards the next +1 */
	u8 holding;
	u8 new_rtt_max; /* by the present ACK */
	u8 backed_off;	/* at least once */
	u8 prior_backed_off;
	u8 preset_held; /* RTTs below preset_rtt_min still count as it */
};

#define DELAY_AIMD_INVARIANTS(X) \
	CC_AT_MOST(X, backoff_us, CC_NOW_MAX_US) \
	CC_AT_MOST(X, prior_backoff_us, CC_NOW_MAX_US) \
	CC_DELAY_INVARIANTS(X) \
	CC_DELAY_RANGE_INVARIANT(X) \
	CC_AT_MOST(X, rtt_max_q24, 0xffffffU) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, credit_q16, 0xffffU) \
	CC_AT_MOST(X, holding, 1U) \
	CC_AT_MOST(X, new_rtt_max, 1U) \
	CC_AT_MOST(X, backed_off, 1U) \
	CC_AT_MOST(X, prior_backed_off, 1U) \
	CC_AT_MOST(X, preset_held, 1U)

static void delay_aimd_init(struct cc_conn *conn, struct delay_aimd_state *st,
			    const struct delay_aimd_params *p)
{
	reno_start(conn, p->initial_ssthresh_pkts);
	st->backoff_us = conn->now_us;
	st->prior_backoff_us = conn->now_us;
	st->delay = (struct cc_delay){.rtt_min_us = p->preset_rtt_min_us,
				      .rtt_max_us = p->preset_rtt_min_us};
	st->max_ssthresh_q8 = DA_NO_LIMIT;
	st->hold_pos = conn->snd_pos;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->preset_held = p->preset_rtt_min_us != 0U;
}

/* The decay of RTTmax, times 2^24: a RTT/cwnd for each counted packet, at most a RTT.
 * Algorithm 1 line 3. */
static u64 delay_aimd_decay_q24(const struct cc_conn *conn, const struct delay_aimd_params *p,
				u32 rtt_us, u32 counted_pkts)
{
	/* 24 bits of RTT and 20 of a; at most RTT * 2^24. */
	u64 per_rtt_q24 = (((u64)rtt_us * p->decay_ppm << 16) / CC_ONE_PPM) << 8;
	u64 window = cc_max_u32(conn->cwnd_pkts, 1U);

	return counted_pkts < window
		   ? cc_mul_up_to_u64(per_rtt_q24 / window, counted_pkts, per_rtt_q24)
		   : per_rtt_q24;
}

/* Algorithm 1 lines 2 to 4. */
static void delay_aimd_sample(const struct cc_conn *conn, struct delay_aimd_state *st,
			      const struct delay_aimd_params *p, const struct cc_ack *ack)
{
	u32 rtt_us = cc_min_u32(cc_max_u32((u32)ack->rtt_us, 1U), CC_TIME_MAX_US);
	u32 counted = reno_counted_pkts(p->count, ack->acked_pkts);
	u64 max_q24 = ((u64)st->delay.rtt_max_us << 24) + st->rtt_max_q24;
	u64 decay_q24, decayed_q24;

	if (st->preset_held && rtt_us >= p->preset_rtt_min_us)
		st->preset_held = 0;
	if (st->preset_held)
		rtt_us = p->preset_rtt_min_us;
	decay_q24 = delay_aimd_decay_q24(conn, p, rtt_us, counted);
	decayed_q24 = max_q24 > decay_q24 ? max_q24 - decay_q24 : 0ULL;
	st->new_rtt_max = (u64)rtt_us << 24 >= decayed_q24;
	st->rtt_max_q24 = st->new_rtt_max ? 0U : (u32)(decayed_q24 & 0xffffffULL);
	st->delay.rtt_max_us = (u32)(decayed_q24 >> 24);
	cc_delay_sample(&st->delay, rtt_us);
}

static void delay_aimd_on_rtt(struct cc_conn *conn, struct delay_aimd_state *st,
			      const struct delay_aimd_params *p, const struct cc_ack *ack)
{
	st->new_rtt_max = 0;
	if (cc_delay_trusts(&st->delay, ack, p->delack_filter))
		delay_aimd_sample(conn, st, p, ack);
	st->srtt_us = conn->srtt_us;
	if (st->holding) {
		st->new_rtt_max = 0;
		st->holding = (u8)cc_after(st->hold_pos, conn->ack_pos);
	}
}

/* tau. */
static u32 delay_aimd_q_us(const struct delay_aimd_state *st, const struct delay_aimd_params *p)
{
	if (p->signal == DA_SIGNAL_RAW)
		return st->delay.q_us;
	return cc_sub_floor_u32(cc_min_u32(st->srtt_us, CC_TIME_MAX_US), st->delay.rtt_min_us);
}

/* Adaptive tau0, eq. 5. */
static u32 delay_aimd_tau0_us(const struct delay_aimd_state *st, const struct delay_aimd_params *p)
{
	u64 base = (u64)p->tau0_us * (CC_ONE_PPM - p->gamma_ppm);
	u64 recent = (u64)cc_delay_qmax_us(&st->delay) * p->gamma_ppm;

	return (u32)((base + recent) / CC_ONE_PPM);
}

/* min(delta RTTmin/RTT, 0.9) at the latest RTT: eq. 4, Algorithm 1 line 5. */
static u64 delay_aimd_beta_q32(const struct delay_aimd_state *st, const struct delay_aimd_params *p)
{
	u64 min_q32 = cc_ppm_to_q32(p->beta_min_ppm);
	u64 max_q32 = cc_ppm_to_q32(p->beta_max_ppm);
	u64 beta_q32;

	if (st->delay.rtt_min_us == 0U)
		return HTCP_HALF_Q32;
	beta_q32 = cc_scale_q32(cc_ppm_to_q32(p->delta_ppm), st->delay.rtt_min_us,
				st->delay.rtt_min_us + st->delay.q_us);
	if (beta_q32 < min_q32)
		return min_q32;
	return beta_q32 < max_q32 ? beta_q32 : max_q32;
}

/* The window after a backoff at this point. */
static u32 delay_aimd_reduced_pkts(const struct cc_conn *conn, const struct delay_aimd_state *st,
				   const struct delay_aimd_params *p)
{
	u64 beta_q32 = !st->backed_off && p->first_beta_ppm != 0U ? cc_ppm_to_q32(p->first_beta_ppm)
								  : delay_aimd_beta_q32(st, p);

	return cc_reduced_q32_pkts(conn->cwnd_pkts, beta_q32);
}

/* Until the data that is outstanding now is acknowledged. */
static void delay_aimd_hold(const struct cc_conn *conn, struct delay_aimd_state *st)
{
	st->holding = 1;
	st->hold_pos = conn->snd_pos;
}

static void delay_aimd_note_backoff(const struct cc_conn *conn, struct delay_aimd_state *st)
{
	st->backoff_us = conn->now_us;
	st->backed_off = 1;
	st->preset_held = 0;
	st->credit_q16 = 0U;
}

/* eq. 6, second case; Algorithm 1 line 22. */
static int delay_aimd_backs_off(const struct cc_conn *conn, const struct delay_aimd_state *st,
				const struct delay_aimd_params *p)
{
	u32 theta_us = p->theta == DA_THETA_BASE ? p->tau0_us : delay_aimd_tau0_us(st, p);
	u64 spacing_us = (u64)cc_delay_qmax_us(&st->delay) * p->kappa_ppm / CC_ONE_PPM;

	return st->delay.rtt_min_us != 0U && cc_delay_test_allowed(conn) && !st->holding &&
	       conn->cwnd_pkts > p->w0_pkts && delay_aimd_q_us(st, p) > theta_us &&
	       cc_sub_floor_u64(conn->now_us, st->backoff_us) > spacing_us;
}

/* eq. 7: the bottleneck's rate, by the drain time of the queue that slow start has made, times
 * tau0. */
static void delay_aimd_estimate(const struct cc_conn *conn, struct delay_aimd_state *st,
				const struct delay_aimd_params *p)
{
	u32 tau_us = p->ss_tau == DA_SS_TAU_BASE ? p->tau0_us : delay_aimd_tau0_us(st, p);
	u32 drain_us = cc_delay_qmax_us(&st->delay);
	/* cwnd/4 times 2^8; 31, 6 and 24 bits. */
	u64 pkts_q8 = cc_div_u64((u64)conn->cwnd_pkts * 64ULL * tau_us, drain_us, DA_NO_LIMIT);

	if (st->new_rtt_max && drain_us != 0U)
		st->max_ssthresh_q8 = pkts_q8 < DA_NO_LIMIT ? (u32)pkts_q8 : DA_NO_LIMIT;
}

/* Algorithm 1 lines 8 to 15: returns the packets left for congestion avoidance. */
static u32 delay_aimd_slow_start(struct cc_conn *conn, struct delay_aimd_state *st,
				 const struct delay_aimd_params *p, u32 counted_pkts)
{
	if (p->slow_start == DA_SLOW_START_STANDARD || st->max_ssthresh_q8 == DA_NO_LIMIT ||
	    (u64)conn->cwnd_pkts << 8 <= st->max_ssthresh_q8)
		return reno_slow_start(conn, p->ss_limit_pkts, counted_pkts);
	/* max_ssthresh/2 per round trip: the quotient by 2 and the step from 2^8 to 2^16. */
	cc_grow_q16(conn, &st->credit_q16, (u64)st->max_ssthresh_q8 << 7, counted_pkts);
	conn->cwnd_pkts = cc_min_u32(conn->cwnd_pkts, conn->ssthresh_pkts);
	return 0U;
}

/* 2(1 - beta) alpha, or as `alpha_scaling` says. */
static u64 delay_aimd_alpha_q16(const struct cc_conn *conn, const struct delay_aimd_state *st,
				const struct delay_aimd_params *p)
{
	u32 x_us = htcp_x_us(cc_sub_floor_u64(conn->now_us, st->backoff_us), p->low_speed_us);
	u64 alpha_q16 = htcp_alpha_q16(x_us);

	if (p->alpha_scaling == DA_SCALING_OFF)
		return alpha_q16;
	alpha_q16 = htcp_alpha_for_beta_q16(alpha_q16, delay_aimd_beta_q32(st, p));
	if (p->alpha_scaling == DA_SCALING_FLOOR && alpha_q16 < 1ULL << 16)
		return 1ULL << 16;
	return alpha_q16;
}

static int delay_aimd_in_slow_start(const struct cc_conn *conn, const struct delay_aimd_params *p)
{
	return p->slow_start != DA_SLOW_START_OFF && reno_in_slow_start(conn);
}

static void delay_aimd_on_ack(struct cc_conn *conn, struct delay_aimd_state *st,
			      const struct delay_aimd_params *p, const struct cc_ack *ack)
{
	u32 counted = reno_counted_pkts(p->count, ack->acked_pkts);

	if (delay_aimd_in_slow_start(conn, p))
		delay_aimd_estimate(conn, st, p);
	if (delay_aimd_backs_off(conn, st, p)) {
		conn->cwnd_pkts = delay_aimd_reduced_pkts(conn, st, p);
		conn->ssthresh_pkts = conn->cwnd_pkts;
		conn->cwnd_cnt = 0U;
		conn->notes |= CC_NOTE_DELAY_BACKOFF;
		delay_aimd_hold(conn, st);
		delay_aimd_note_backoff(conn, st);
		return;
	}
	if (!conn->cwnd_limited)
		return;
	if (delay_aimd_in_slow_start(conn, p))
		counted = delay_aimd_slow_start(conn, st, p, counted);
	if (counted == 0U || delay_aimd_in_slow_start(conn, p))
		return;
	/* eq. 6, first case; otherwise the flat section of Fig. 5. */
	if (conn->cwnd_pkts <= p->w0_pkts || delay_aimd_q_us(st, p) <= delay_aimd_tau0_us(st, p))
		cc_grow_q16(conn, &st->credit_q16, delay_aimd_alpha_q16(conn, st, p), counted);
}

/* eq. 6, third case. */
static u32 delay_aimd_ssthresh(struct cc_conn *conn, struct delay_aimd_state *st,
			       const struct delay_aimd_params *p)
{
	u32 pkts = delay_aimd_reduced_pkts(conn, st, p);

	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->prior_backoff_us = st->backoff_us;
	st->prior_backed_off = st->backed_off;
	delay_aimd_note_backoff(conn, st);
	return pkts;
}

static void delay_aimd_on_event(struct cc_conn *conn, struct delay_aimd_state *st,
				const struct delay_aimd_params *p, u32 event)
{
	(void)p;
	if (event == CC_EVENT_RTO) {
		conn->ssthresh_pkts = reno_ssthresh(conn);
		delay_aimd_hold(conn, st);
	}
}

static u32 delay_aimd_undo(struct cc_conn *conn, struct delay_aimd_state *st,
			   const struct delay_aimd_params *p)
{
	(void)p;
	st->backoff_us = st->prior_backoff_us;
	st->backed_off = st->prior_backed_off;
	return cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);
}

static void delay_aimd_observe(const struct delay_aimd_state *st, const struct delay_aimd_params *p,
			       u32 out[CC_OBSERVE_N])
{
	out[0] = delay_aimd_q_us(st, p);
	out[1] = delay_aimd_tau0_us(st, p);
	out[2] = (u32)((delay_aimd_beta_q32(st, p) * CC_ONE_PPM) >> 32);
	out[3] = st->delay.rtt_min_us;
}

KNEE_ALGORITHM(delay_aimd, DELAY_AIMD_PARAMS, DELAY_AIMD_RULES, DELAY_AIMD_INVARIANTS, CC_NO_RANDOM,
	       "AIMD that backs off at a queueing delay and drains the queue to find the base RTT",
	       "Leith et al., PFLDnet 2007", "q_us|tau0_us|beta_ppm|rtt_min_us");
