// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * LEDBAT++: congestion control for background traffic.
 *
 * P. Balasubramanian, O. Ertugay, D. Havey, M. Bagnulo: "LEDBAT++: Congestion Control for
 * Background Traffic", draft-irtf-iccrg-ledbat-plus-plus. Its base is LEDBAT, RFC 6817. Rules and
 * section numbers are those of published quotations; we did not have the draft's full text.
 *
 * The queueing delay is the RTT, the least of the last four samples, less the base RTT, the least
 * of the last ten minutes. With W the window, per round trip (sections 4.2, 4.3)
 *
 *   GAIN = 1 / min(16, ceil(2 TARGET / base))
 *   W += GAIN                                              delay <= TARGET
 *   W += max(GAIN - C W (delay / TARGET - 1), -W/2)        delay >  TARGET
 *
 * Slow start grows by GAIN per packet; the first ends when the delay exceeds 3/4 TARGET (section
 * 4.1). Two round trips later, and then periodically, a slowdown: the window is two packets for two
 * round trips, so that queues drain and the base RTT shows; then slow start to the window before
 * it. The next slowdown follows after nine times the duration of the last (section 4.4).
 *
 * Readings taken, each a parameter unless noted:
 *  - LB-a: neither a slow start after a slowdown nor one after a timeout ends by delay: `ss_exit`.
 *  - LB-b: the window grows at each ACK, by the delay at that time; it decreases once, at the end
 *    of a marked-packet round that ends above TARGET (not a parameter).
 *  - LB-c: "two round trips" are two marked-packet rounds; a slowdown starts at the end of a round
 *    (not a parameter).
 *  - LB-d: the base RTT is that of ten to twelve and a half minutes (cc/include/knee/buckets.h):
 *    `base_window`.
 *  - LB-e: a loss halves the window, as in RFC 6817; during a slowdown's two round trips also the
 *    window to which it returns (not a parameter).
 *  - LB-f: a slowdown that a loss cuts short ends when the window reaches ssthresh, as any other
 *    (not a parameter).
 *  - the initial window, which the draft limits to two packets, is the host's.
 *  - timeout: NewReno's, with slow start by GAIN; no slowdown and no delay test until the data
 *    outstanding at the timeout is acknowledged (not a parameter).
 */
#include "knee/host.h"
#include "knee/buckets.h"
#include "knee/delay.h"
#include "knee/reno.h"
#include "knee/round.h"

enum { LEDBATPP_EXIT_NEVER = 0, LEDBATPP_EXIT_FIRST = 1, LEDBATPP_EXIT_EVERY = 2 };

#define LEDBATPP_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	X(CC_TIME_US, target_us, "target", "", 1, 10000000, 60000, "", "draft s4.5: 60 ms", \
	  "queueing delay to aim for") \
	X(CC_COUNT, gain_limit, "gain_limit", "", 1, 200, 16, "", \
	  "draft s4.2: 16", "largest divisor of the gain") \
	X(CC_NUMBER_PPM, constant_ppm, "constant", "", 10000, 4000000000, 1000000, "", \
	  "draft s4.3: 1", "C: strength of the decrease") \
	X(CC_NUMBER_PPM, exit_ppm, "exit", "", 0, 10000000, 750000, "", "draft s4.1: 3/4", \
	  "queueing delay, in units of the target, above which slow start ends") \
	X(CC_CHOICE, ss_exit, "ss_exit", "", 0, 2, LEDBATPP_EXIT_FIRST, "never|first|every", \
	  "draft s4.1; reading LB-a", "which slow starts end by delay") \
	X(CC_COUNT, filter, "filter", "", 1, 4, 4, "", "draft s4; RFC 6817", \
	  "number of latest RTT samples whose least gives the delay, 1 to 4") \
	X(CC_TIME_US, base_window_us, "base_window", "", 1000000, 3600000000, 600000000, "", \
	  "RFC 6817 s2.4.2: 10 minutes; reading LB-d", "time over which the base RTT is taken") \
	X(CC_CHOICE, slowdown, "slowdown", "", 0, 1, 1, "off|on", "draft s4.4", \
	  "slow down two round trips after the first slow start, and periodically") \
	X(CC_NUMBER_PPM, interval_ppm, "interval", "", 0, 1000000000, 9000000, "", "draft s4.4: 9", \
	  "time between slowdowns, in units of the last one's duration") \
	X(CC_COUNT, frozen, "frozen", "", 1, 200, 2, "", "draft s4.4: 2", \
	  "round trips with a window of two packets")

#define LEDBATPP_RULES(R)

CC_PARAMS_STRUCT(ledbatpp, LEDBATPP_PARAMS);

enum ledbatpp_stage {
	LEDBATPP_START = 0,  /* first slow start */
	LEDBATPP_SOON = 1,   /* after it: the first slowdown is two round trips away */
	LEDBATPP_FROZEN = 2, /* slowdown: window of two packets */
	LEDBATPP_RAMP = 3,   /* slowdown: slow start to the window before it */
	LEDBATPP_STEADY = 4, /* until the next slowdown */
};

#define LEDBATPP_SOON_ROUNDS 2U
#define LEDBATPP_RECENT 4U

struct ledbatpp_state {
	u64 mark_us; /* when the present slowdown began, or the last one ended */
	u64 wait_us; /* from the last one's end to the next */
	struct cc_buckets base_us;
	u32 recent_us[LEDBATPP_RECENT]; /* RTTs, the latest first; 0: none */
	struct cc_round round;
	u32 resume_pkts;       /* window before the slowdown */
	u32 prior_cwnd_pkts;   /* prior_*: before the latest loss, for undo */
	u32 prior_resume_pkts; /* or, outside a slowdown, the window */
	u8 stage;	       /* enum ledbatpp_stage */
	u8 rounds_left;	       /* of LEDBATPP_SOON or LEDBATPP_FROZEN */
	u8 round_ended;	       /* by the present ACK */
};

#define LEDBATPP_INVARIANTS(X) \
	CC_AT_MOST(X, mark_us, CC_NOW_MAX_US) \
	CC_AT_MOST(X, wait_us, 1000ULL << 32) \
	X(recent_us, st->recent_us[0] <= CC_TIME_MAX_US && st->recent_us[1] <= CC_TIME_MAX_US && \
		     st->recent_us[2] <= CC_TIME_MAX_US && st->recent_us[3] <= CC_TIME_MAX_US) \
	CC_WITHIN(X, resume_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_WITHIN(X, prior_resume_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, stage, LEDBATPP_STEADY) \
	CC_AT_MOST(X, rounds_left, cc_max_u32(p->frozen, LEDBATPP_SOON_ROUNDS)) \
	CC_AT_MOST(X, round_ended, 1U)

static void ledbatpp_init(struct cc_conn *conn, struct ledbatpp_state *st,
			  const struct ledbatpp_params *p)
{
	(void)p;
	cc_round_start(&st->round, conn);
	st->resume_pkts = conn->cwnd_pkts;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->prior_resume_pkts = conn->cwnd_pkts;
}

/* Queueing delay: the least of the last samples over the base; 0 without any. */
static u32 ledbatpp_delay_us(const struct ledbatpp_state *st, const struct ledbatpp_params *p)
{
	u32 least_us = st->recent_us[0];

	for (u32 i = 1U; i < LEDBATPP_RECENT; i++) {
		if (i < p->filter && st->recent_us[i] != 0U)
			least_us = cc_min_u32(least_us, st->recent_us[i]);
	}
	return cc_sub_floor_u32(least_us, cc_buckets_least(&st->base_us));
}

/* 1 / GAIN. Section 4.2; without a base RTT it is the largest. */
static u32 ledbatpp_divisor(const struct ledbatpp_state *st, const struct ledbatpp_params *p)
{
	u32 limit = p->gain_limit;
	u32 base_us = cc_buckets_least(&st->base_us);
	u32 up_us = 2U * p->target_us + cc_sub_floor_u32(base_us, 1U);

	return cc_max_u32(cc_min_u32(cc_div_u32(up_us, base_us, limit), limit), 1U);
}

static void ledbatpp_on_rtt(struct cc_conn *conn, struct ledbatpp_state *st,
			    const struct ledbatpp_params *p, const struct cc_ack *ack)
{
	if (ack->rtt_us >= 0) {
		u32 rtt_us = cc_min_u32(cc_max_u32((u32)ack->rtt_us, 1U), CC_TIME_MAX_US);

		cc_buckets_push(&st->base_us, conn->now_us, p->base_window_us, rtt_us);
		for (u32 i = LEDBATPP_RECENT - 1U; i != 0U; i--)
			st->recent_us[i] = st->recent_us[i - 1U];
		st->recent_us[0] = rtt_us;
	}
	st->round_ended = (u8)cc_round_ended(&st->round, conn);
	if (st->round_ended)
		conn->notes |= CC_NOTE_ROUND;
}

/* Packets to be acknowledged for +1 in congestion avoidance: W / GAIN. */
static u32 ledbatpp_per_packet(const struct cc_conn *conn, u32 divisor)
{
	return (u32)cc_min_u64((u64)cc_max_u32(conn->cwnd_pkts, 1U) * divisor, CC_U32_MAX);
}

/* +1 for each `per_packet` counted packets, up to `limit_pkts`; the rest is kept in cwnd_cnt. */
static void ledbatpp_count(struct cc_conn *conn, u32 per_packet, u32 counted_pkts, u32 limit_pkts)
{
	u32 count = cc_add_sat_u32(conn->cwnd_cnt, counted_pkts);
	u32 add = cc_min_u32(count / per_packet, cc_sub_floor_u32(limit_pkts, conn->cwnd_pkts));

	conn->cwnd_cnt = count % per_packet;
	conn->cwnd_pkts = cc_min_u32(conn->cwnd_pkts + add, conn->cwnd_max_pkts);
}

static void ledbatpp_grow(struct cc_conn *conn, const struct ledbatpp_state *st,
			  const struct ledbatpp_params *p, const struct cc_ack *ack, int above)
{
	u32 counted = reno_counted_pkts(p->count, ack->acked_pkts);
	u32 divisor = ledbatpp_divisor(st, p);

	if (!conn->cwnd_limited)
		return;
	if (reno_in_slow_start(conn)) {
		if (p->ss_limit_pkts != 0U)
			counted = cc_min_u32(counted, p->ss_limit_pkts);
		ledbatpp_count(conn, divisor, counted,
			       cc_min_u32(conn->ssthresh_pkts, conn->cwnd_max_pkts));
	} else if (!above) {
		ledbatpp_count(conn, ledbatpp_per_packet(conn, divisor), counted,
			       conn->cwnd_max_pkts);
	}
}

/*
 * Section 4.3 for a delay above the target: W += max(GAIN - C W (delay / TARGET - 1), -W/2). The
 * fraction of a packet that remains counts as acknowledged packets towards the next +1.
 */
static void ledbatpp_respond(struct cc_conn *conn, const struct ledbatpp_state *st,
			     const struct ledbatpp_params *p, u32 delay_us)
{
	u32 divisor = ledbatpp_divisor(st, p);
	u32 per_packet = ledbatpp_per_packet(conn, divisor);
	u64 cwnd = conn->cwnd_pkts;
	u64 kept_q24 = ((u64)cc_min_u32(conn->cwnd_cnt, per_packet - 1U) << 24) / per_packet;
	/* C (delay / TARGET - 1), no more than 1: 24 + 24 bits, then 31 + 32. */
	u64 excess_q24 = ((u64)cc_sub_floor_u32(delay_us, p->target_us) << 24) / p->target_us;
	u64 part_q24 = cc_min_u64(excess_q24, 1ULL << 31) * p->constant_ppm / CC_ONE_PPM;
	u64 less_q24 = cwnd * cc_min_u64(part_q24, 1ULL << 24);
	u64 more_q24 = cc_div_u64(1ULL << 24, divisor, 0ULL);
	u64 then_q24 = (cwnd << 24) + kept_q24;
	u64 floor_q24 = (u64)cc_min_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS) << 24;

	if (less_q24 <= more_q24) {
		if (!conn->cwnd_limited)
			return;
		then_q24 =
		    cc_min_u64(then_q24 + more_q24 - less_q24, (u64)conn->cwnd_max_pkts << 24);
	} else {
		then_q24 = cc_sub_floor_u64(then_q24, cc_min_u64(less_q24 - more_q24, cwnd << 23));
		if (then_q24 < floor_q24)
			then_q24 = floor_q24;
	}
	conn->cwnd_pkts = cc_min_u32((u32)(then_q24 >> 24), conn->cwnd_max_pkts);
	conn->cwnd_cnt =
	    (u32)(((then_q24 & 0xffffffULL) * ledbatpp_per_packet(conn, divisor)) >> 24);
	if (conn->cwnd_pkts < cwnd) {
		conn->ssthresh_pkts = cc_max_u32(cc_min_u32(conn->ssthresh_pkts, conn->cwnd_pkts),
						 CC_CWND_FLOOR_PKTS);
		conn->notes |= CC_NOTE_DELAY_BACKOFF;
	}
}

/* Section 4.4. */
static void ledbatpp_slow_down(struct cc_conn *conn, struct ledbatpp_state *st,
			       const struct ledbatpp_params *p)
{
	st->stage = LEDBATPP_FROZEN;
	st->rounds_left = (u8)(p->frozen);
	st->mark_us = conn->now_us;
	st->resume_pkts = cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
	conn->ssthresh_pkts = st->resume_pkts;
	conn->cwnd_cnt = 0U;
	if (conn->cwnd_pkts > CC_CWND_FLOOR_PKTS) {
		conn->cwnd_pkts = CC_CWND_FLOOR_PKTS;
		conn->notes |= CC_NOTE_DELAY_BACKOFF;
	}
}

/* The end of a slow start. */
static void ledbatpp_arrive(const struct cc_conn *conn, struct ledbatpp_state *st,
			    const struct ledbatpp_params *p)
{
	if (st->stage == LEDBATPP_START) {
		st->stage = LEDBATPP_SOON;
		st->rounds_left = LEDBATPP_SOON_ROUNDS;
	} else if (st->stage == LEDBATPP_RAMP) {
		u64 took_us = cc_min_u64(cc_sub_floor_u64(conn->now_us, st->mark_us), 1ULL << 32);

		st->stage = LEDBATPP_STEADY;
		st->wait_us = took_us * p->interval_ppm / CC_ONE_PPM;
		st->mark_us = conn->now_us;
	}
}

/* The end of a round. Returns whether it has set the window. */
static int ledbatpp_turn(struct cc_conn *conn, struct ledbatpp_state *st,
			 const struct ledbatpp_params *p, u32 delay_us)
{
	int counted_down = 0;

	if (st->stage == LEDBATPP_SOON || st->stage == LEDBATPP_FROZEN) {
		st->rounds_left = (u8)cc_sub_floor_u32(st->rounds_left, 1U);
		counted_down = st->rounds_left == 0;
	}
	if (st->stage == LEDBATPP_FROZEN) {
		if (counted_down) {
			st->stage = LEDBATPP_RAMP;
			conn->ssthresh_pkts = cc_max_u32(st->resume_pkts, CC_CWND_FLOOR_PKTS);
		}
		return 0;
	}
	if (p->slowdown &&
	    (counted_down || (st->stage == LEDBATPP_STEADY &&
			      cc_sub_floor_u64(conn->now_us, st->mark_us) >= st->wait_us))) {
		ledbatpp_slow_down(conn, st, p);
		return 1;
	}
	if (reno_in_slow_start(conn) || delay_us <= p->target_us)
		return 0;
	ledbatpp_respond(conn, st, p, delay_us);
	return 1;
}

/* True if the delay ends the present slow start. Section 4.1; LB-a. */
static int ledbatpp_exits(const struct cc_conn *conn, const struct ledbatpp_state *st,
			  const struct ledbatpp_params *p, u32 delay_us)
{
	if (p->ss_exit == LEDBATPP_EXIT_NEVER || st->stage == LEDBATPP_FROZEN)
		return 0;
	if (p->ss_exit == LEDBATPP_EXIT_FIRST && st->stage != LEDBATPP_START)
		return 0;
	return reno_in_slow_start(conn) &&
	       (u64)delay_us * CC_ONE_PPM > (u64)p->target_us * p->exit_ppm;
}

static void ledbatpp_on_ack(struct cc_conn *conn, struct ledbatpp_state *st,
			    const struct ledbatpp_params *p, const struct cc_ack *ack)
{
	u32 delay_us = ledbatpp_delay_us(st, p);
	int by_delay = cc_delay_test_allowed(conn);

	if (by_delay && ledbatpp_exits(conn, st, p, delay_us))
		conn->ssthresh_pkts = cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
	if (by_delay && st->round_ended && ledbatpp_turn(conn, st, p, delay_us))
		return;
	if (st->stage == LEDBATPP_FROZEN)
		return;
	ledbatpp_grow(conn, st, p, ack, by_delay && delay_us > p->target_us);
	if (!reno_in_slow_start(conn))
		ledbatpp_arrive(conn, st, p);
}

static u32 ledbatpp_ssthresh(struct cc_conn *conn, struct ledbatpp_state *st,
			     const struct ledbatpp_params *p)
{
	(void)p;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->prior_resume_pkts = conn->cwnd_pkts;
	if (st->stage != LEDBATPP_FROZEN)
		return reno_ssthresh(conn);
	st->prior_resume_pkts = st->resume_pkts;
	st->resume_pkts = cc_max_u32(st->resume_pkts / 2U, CC_CWND_FLOOR_PKTS);
	return reno_ssthresh(conn);
}

static void ledbatpp_on_event(struct cc_conn *conn, struct ledbatpp_state *st,
			      const struct ledbatpp_params *p, u32 event)
{
	(void)conn;
	(void)st;
	(void)p;
	(void)event;
}

static u32 ledbatpp_undo(struct cc_conn *conn, struct ledbatpp_state *st,
			 const struct ledbatpp_params *p)
{
	(void)p;
	/* The loss may have come before the slowdown. */
	if (st->stage == LEDBATPP_FROZEN) {
		st->resume_pkts = cc_max_u32(st->resume_pkts, st->prior_resume_pkts);
		return conn->cwnd_pkts;
	}
	return cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);
}

static void ledbatpp_observe(const struct ledbatpp_state *st, const struct ledbatpp_params *p,
			     u32 out[CC_OBSERVE_N])
{
	out[0] = ledbatpp_delay_us(st, p);
	out[1] = cc_buckets_least(&st->base_us);
	out[2] = ledbatpp_divisor(st, p);
	out[3] = st->stage;
}

KNEE_ALGORITHM(
    ledbatpp, LEDBATPP_PARAMS, LEDBATPP_RULES, LEDBATPP_INVARIANTS, CC_NO_RANDOM,
    "background traffic: limits its queueing delay, and slows down to measure the base RTT",
    "draft-irtf-iccrg-ledbat-plus-plus", "q_us|base_rtt_us|gain_divisor|stage");
