// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Copa: a target rate of 1 / (delta dq).
 *
 * V. Arun, H. Balakrishnan: "Copa: practical delay-based congestion control for the Internet",
 * NSDI 2018.
 *
 * dq = RTTstanding - RTTmin: the minimum RTT of the last srtt/2 and of 10 s. At every
 * ACK (section 2.1)
 *
 *   cwnd += v / (delta cwnd)   if cwnd / RTTstanding <= 1 / (delta dq)
 *   cwnd -= v / (delta cwnd)   otherwise,
 *
 * v / delta packets per round trip. v is 1 and doubles with every round trip once the window has
 * gone the same way for three. Slow start doubles the window until its rate exceeds the target.
 * delta is 0.5 (default mode). If the queue has not been nearly empty for 5 round trips, a
 * loss-based flow must be filling it (section 2.2): in competitive mode 1/delta grows by 1 per
 * round trip and is halved by a loss, but is at least that of the default mode. The sender paces at
 * 2 cwnd / RTTstanding: profile RATE.
 *
 * Readings taken, each a parameter unless noted:
 *  - CO-a: the windows of RTTmin and RTTstanding are cut into quarters: a minimum is of one to one
 *    and a quarter windows (cc/include/knee/buckets.h). RTTstanding is taken over 8/9 of its
 *    window, so that its minimum is of 8/9 to 10/9 of srtt/2 (not a parameter).
 *  - CO-b: v / delta is at most the window: no growth is faster than slow start (not a parameter).
 *  - CO-c: a window that equals that of a round trip ago has no direction, and v = 1 (not a
 *    parameter).
 *  - CO-d: "nearly empty" is dq <= 0.1 (RTTmax - RTTmin): "less" would never be true if the RTT
 *    did not vary at all (not a parameter). RTTmax is that of the running round trip and the four
 *    before it.
 *  - CO-e: round trips of slow start do not count towards competitive mode (not a parameter).
 *  - CO-f: a loss leaves the window unchanged, in both modes, and ends slow start. To an algorithm
 *    a congestion mark looks the same: `loss_window`.
 *  - CO-g: the rule of section 2.1 continues in recovery (not a parameter).
 *  - CO-h: v belongs to a round trip: until its end a high v also serves the other direction, so a
 *    window that rose by doubling falls as fast. A deployed version resets v where the direction
 *    turns: `velocity_reset`.
 *  - CO-i: a timeout, which the paper does not mention, is NewReno's: half the window as threshold,
 *    slow start from one packet, and v = 1 (not a parameter).
 *  - CO-k: a link that sends whole packets seldom holds less than one, and a tenth of the range is
 *    less than that where queues are short: two Copa flows alone on a path took each other for
 *    loss-based, which section 2.2 does not intend. So one packet at the flow's own rate,
 *    dq <= RTTstanding / cwnd, counts as nearly empty too: `empty_floor`.
 *  - CO-l: before the first RTT sample the sender does not pace (not a parameter).
 *  - CO-m: a loss halves 1/delta at most once per round trip: the one that begins a recovery, then
 *    those of its third and later round trips (not a parameter). A recovery whose repairs are lost
 *    too has no end.
 *  - CO-n: more than 30 % lost in two round trips, of at least 20 packets, leave 0.7 of the window,
 *    as in the authors' program; the paper has no such rule: `excess_loss`.
 */
#include "knee/host.h"
#include "knee/buckets.h"
#include "knee/reno.h"

enum { COPA_MODE_AUTO = 0, COPA_MODE_DEFAULT = 1, COPA_MODE_COMPETITIVE = 2 };
enum { COPA_FLOOR_NONE = 0, COPA_FLOOR_PACKET = 1 };
enum { COPA_LOSS_KEEP = 0, COPA_LOSS_HALVE = 1 };
enum { COPA_RESET_ROUND = 0, COPA_RESET_REVERSAL = 1 };

#define COPA_PARAMS(X) \
	RENO_GROWTH_PARAMS(X) \
	X(CC_NUMBER_PPM, delta_ppm, "delta", "", 1000, 100000000, 500000, "", \
	  "Copa paper s2.2: 0.5", "delta of the default mode; 1/delta packets are kept queued") \
	X(CC_CHOICE, mode, "mode", "", 0, 2, COPA_MODE_AUTO, "auto|default|competitive", \
	  "Copa paper s2.2", "switch between the modes according to the queue, or stay in one") \
	X(CC_TIME_US, rtt_min_window_us, "rtt_min_window", "", 100000, 600000000, 10000000, "", \
	  "Copa paper s2.1: 10 s", "time over which RTTmin is taken") \
	X(CC_NUMBER_PPM, standing_ppm, "standing", "", 10000, 4000000, 500000, "", \
	  "Copa paper s2.1: srtt/2", "time over which RTTstanding is taken, as a fraction of srtt") \
	X(CC_COUNT, velocity_after, "velocity_after", "", 1, 100, 3, "", \
	  "Copa paper s2.1: 3", \
	  "round trips in one direction after which v doubles") \
	X(CC_CHOICE, velocity_reset, "velocity_reset", "", 0, 1, COPA_RESET_ROUND, "round|reversal", \
	  "Copa paper s2.1; reading CO-h", \
	  "reset v at the end of a round trip, or as soon as the direction turns") \
	X(CC_NUMBER_PPM, empty_ppm, "empty", "", 0, 1000000, 100000, "", "Copa paper s2.2: 0.1", \
	  "fraction of the RTT's range up to which dq means a nearly empty queue") \
	X(CC_CHOICE, empty_floor, "empty_floor", "", 0, 1, COPA_FLOOR_PACKET, "none|packet", \
	  "reading CO-k", "whether a dq of one packet at the flow's own rate counts as nearly empty too") \
	X(CC_COUNT, empty_rounds, "empty_rounds", "", 1, 200, 5, "", \
	  "Copa paper s2.2: 5", \
	  "round trips without a nearly empty queue after which a loss-based flow is inferred") \
	X(CC_CHOICE, loss_window, "loss_window", "", 0, 1, COPA_LOSS_KEEP, "keep|halve", \
	  "Copa paper s2.2; reading CO-f", "what a loss does to the window") \
	X(CC_PROB_PPM, excess_loss_ppm, "excess_loss", "", 0, 1000000, 300000, "", \
	  "authors' program; reading CO-n", \
	  "fraction lost in two round trips above which the window falls to 0.7 of it; 1: never") \
	X(CC_CHOICE, pacing, "pacing", "", 0, 1, 1, "off|on", "Copa paper s2.1", \
	  "pace at 2 cwnd/RTTstanding")

#define COPA_RULES(R)

CC_PARAMS_STRUCT(copa, COPA_PARAMS);

enum { COPA_STILL = 0, COPA_UP = 1, COPA_DOWN = 2 };

/* Largest RTTs of the running round and the four before it, 24 bits each, the running one lowest.
 */
struct copa_largest {
	u64 lo, hi;
};

struct copa_state {
	struct copa_largest largest_us;
	struct cc_buckets min_us;      /* RTTmin */
	struct cc_buckets standing_us; /* RTTstanding */
	u32 round_end_pkts;	       /* total delivered, as in struct cc_ack */
	u32 round_pkts;		       /* window when the round began */
	u32 fraction_q32;	       /* of a packet, of the window */
	u32 inv_delta_q16;	       /* 1/delta, packets */
	u32 prior_inv_delta_q16;       /* prior_*: before the latest loss, for undo */
	u32 prior_cwnd_pkts;
	u8 velocity_log2 : 5; /* v = 2^this */
	u8 direction : 2;     /* of the latest round: COPA_* */
	u8 competitive : 1;   /* mode */
	u8 loss_seen : 1;     /* ssthresh() was called since the latest ACK */
	u8 round_lossy : 1;   /* a packet was marked lost in the running round */
	u8 halved : 2;	      /* rounds until losses of the same recovery count, CO-m */
	u8 told_rounds : 2;   /* rounds that have ended since told_pkts was 0 */
	u8 same_rounds;	      /* how many rounds in that direction */
	u8 since_empty;	      /* rounds that have ended since the queue was nearly empty */
	u16 told_pkts;	      /* delivered or lost, the first 65535 of them; CO-n */
	u16 told_lost_pkts;   /* the lost ones */
};

#define COPA_INVARIANTS(X) \
	CC_WITHIN(X, round_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_WITHIN(X, inv_delta_q16, 1U, COPA_INV_DELTA_MAX_Q16) \
	CC_WITHIN(X, prior_inv_delta_q16, 1U, COPA_INV_DELTA_MAX_Q16) \
	CC_WITHIN(X, prior_cwnd_pkts, 1U, CC_CWND_MAX_PKTS) \
	CC_AT_MOST(X, velocity_log2, COPA_VELOCITY_MAX_LOG2) \
	CC_AT_MOST(X, direction, COPA_DOWN) \
	CC_AT_MOST(X, halved, COPA_HALVED_ROUNDS) \
	CC_AT_MOST(X, told_rounds, COPA_TOLD_ROUNDS)

/* 1/delta does not grow beyond this, packets. */
#define COPA_INV_DELTA_MAX_Q16 0xffff0000U
#define COPA_VELOCITY_MAX_LOG2 30U
/* The round of the loss that begins a recovery, and the next. */
#define COPA_HALVED_ROUNDS 2U
/* CO-n: least to judge losses by. */
#define COPA_TOLD_ROUNDS 2U
#define COPA_TOLD_LEAST_PKTS 20U
#define COPA_MOST_BYTES_PER_S ((1ULL << 42) * CC_ONE_PPM)

/* 1/delta of the default mode. */
static u32 copa_inv_delta_q16(const struct copa_params *p)
{
	return (u32)cc_div_u64((u64)CC_ONE_PPM << 16, p->delta_ppm, 0ULL);
}

static void copa_init(struct cc_conn *conn, struct copa_state *st, const struct copa_params *p)
{
	st->round_pkts = conn->cwnd_pkts;
	st->inv_delta_q16 = copa_inv_delta_q16(p);
	st->prior_inv_delta_q16 = st->inv_delta_q16;
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->competitive = p->mode == COPA_MODE_COMPETITIVE ? 1 : 0;
}

static u32 copa_lane_us(u64 lanes)
{
	return (u32)(lanes & CC_TIME_MAX_US);
}

static u32 copa_rtt_max_us(const struct copa_state *st)
{
	u64 lo = st->largest_us.lo, hi = st->largest_us.hi;
	u32 newer_us = cc_max_u32(copa_lane_us(lo), copa_lane_us(lo >> 24));
	u32 older_us = cc_max_u32(copa_lane_us(hi >> 8), copa_lane_us(hi >> 32));
	u32 middle_us = copa_lane_us(lo >> 48 | cc_shift_out_u64(hi, 16U));

	return cc_max_u32(cc_max_u32(newer_us, older_us), middle_us);
}

/* The RTTs that the samples give; at most CC_TIME_MAX_US. */
struct copa_rtt {
	u32 min_us;	 /* RTTmin */
	u32 standing_us; /* RTTstanding */
	u32 dq_us;	 /* queueing delay */
};

static struct copa_rtt copa_rtt(const struct copa_state *st)
{
	u32 min_us = cc_buckets_least(&st->min_us);
	u32 standing_us = cc_buckets_least(&st->standing_us);
	struct copa_rtt rtt = {min_us, standing_us, cc_sub_floor_u32(standing_us, min_us)};

	return rtt;
}

/* Section 2.2; CO-d, CO-k. */
static int copa_nearly_empty(const struct cc_conn *conn, const struct copa_state *st,
			     const struct copa_params *p, const struct copa_rtt *rtt)
{
	if (p->empty_floor == COPA_FLOOR_PACKET &&
	    (u64)rtt->dq_us * conn->cwnd_pkts <= rtt->standing_us)
		return 1;
	return (u64)rtt->dq_us * CC_ONE_PPM <=
	       (u64)cc_sub_floor_u32(copa_rtt_max_us(st), rtt->min_us) * p->empty_ppm;
}

/* Takes in the sample of an ACK; whether it has one. CO-a. */
static int copa_sample(const struct cc_conn *conn, struct copa_state *st,
		       const struct copa_params *p, const struct cc_ack *ack)
{
	u32 rtt_us;
	u64 srtt_us;

	if (ack->rtt_us < 0)
		return 0;
	rtt_us = cc_min_u32(cc_max_u32((u32)ack->rtt_us, 1U), CC_TIME_MAX_US);
	srtt_us = cc_min_u32(conn->srtt_us != 0U ? conn->srtt_us : rtt_us, CC_TIME_MAX_US);
	cc_buckets_push(&st->min_us, conn->now_us, p->rtt_min_window_us, rtt_us);
	cc_buckets_push(&st->standing_us, conn->now_us,
			srtt_us * p->standing_ppm * 8ULL / (9ULL * CC_ONE_PPM), rtt_us);
	if (rtt_us > (st->largest_us.lo & CC_TIME_MAX_US))
		st->largest_us.lo = (st->largest_us.lo & ~(u64)CC_TIME_MAX_US) | rtt_us;
	return 1;
}

/* The direction of the window over the round that has ended, and v. Section 2.1 step 4. */
static void copa_turn(struct copa_state *st, const struct copa_params *p, u32 window_pkts)
{
	u8 direction = COPA_STILL;

	if (window_pkts != st->round_pkts)
		direction = window_pkts > st->round_pkts ? COPA_UP : COPA_DOWN;
	st->round_pkts = window_pkts;
	if (direction == COPA_STILL || direction != st->direction) {
		st->direction = direction & 3U;
		st->same_rounds = direction != COPA_STILL;
		st->velocity_log2 = 0;
	} else {
		st->same_rounds = (u8)cc_min_u32(st->same_rounds + 1U, 255U);
	}
	if (st->same_rounds >= p->velocity_after && st->velocity_log2 < COPA_VELOCITY_MAX_LOG2)
		st->velocity_log2++;
}

static void copa_halve_inv_delta(struct copa_state *st, const struct copa_params *p)
{
	st->inv_delta_q16 = cc_max_u32(st->inv_delta_q16 / 2U, copa_inv_delta_q16(p));
}

/* The mode, and in competitive mode AIMD of 1/delta. Section 2.2; CO-m. */
static void copa_switch(struct copa_state *st, const struct copa_params *p, int slow_start)
{
	u8 before = st->competitive;

	st->since_empty = slow_start ? 0 : (u8)cc_min_u32(st->since_empty + 1U, 255U);
	if (p->mode == COPA_MODE_AUTO)
		st->competitive = st->since_empty > p->empty_rounds ? 1 : 0;
	if (!st->competitive || !before)
		st->inv_delta_q16 = copa_inv_delta_q16(p);
	else if (st->round_lossy && st->halved == 0)
		copa_halve_inv_delta(st, p);
	else if (!slow_start)
		st->inv_delta_q16 =
		    cc_min_u32(cc_add_sat_u32(st->inv_delta_q16, 1U << 16), COPA_INV_DELTA_MAX_Q16);
}

static void copa_round(struct copa_state *st, const struct copa_params *p, u32 window_pkts,
		       int slow_start)
{
	st->largest_us.hi = cc_shift_out_u64(st->largest_us.hi, 24U) | st->largest_us.lo >> 40;
	st->largest_us.lo = cc_shift_out_u64(st->largest_us.lo, 24U);
	copa_switch(st, p, slow_start);
	st->round_lossy = 0;
	if (st->halved > 0)
		st->halved--;
	if (slow_start)
		st->round_pkts = window_pkts;
	else
		copa_turn(st, p, window_pkts);
}

/* Counts the packets that an ACK tells of. */
static void copa_count(struct copa_state *st, const struct cc_ack *ack)
{
	u32 lost_pkts = cc_min_u32(ack->lost_pkts, 0xffffU - st->told_pkts);
	u32 told_pkts = cc_add_sat_u32(st->told_pkts + lost_pkts, ack->acked_pkts);

	if (ack->lost_pkts != 0U)
		st->round_lossy = 1;
	st->told_lost_pkts = (u16)cc_min_u32(st->told_lost_pkts + lost_pkts, 0xffffU);
	st->told_pkts = (u16)cc_min_u32(told_pkts, 0xffffU);
}

static void copa_forget_losses(struct copa_state *st)
{
	st->told_rounds = 0;
	st->told_pkts = 0;
	st->told_lost_pkts = 0;
}

/* After the end of a round: whether too much has been lost. CO-n. */
static int copa_loses_too_much(struct copa_state *st, const struct copa_params *p)
{
	u64 excess = (u64)st->told_pkts * p->excess_loss_ppm;
	u64 lost = (u64)st->told_lost_pkts * CC_ONE_PPM;

	if (st->told_rounds < COPA_TOLD_ROUNDS)
		st->told_rounds++;
	if (st->told_rounds < COPA_TOLD_ROUNDS || st->told_pkts < COPA_TOLD_LEAST_PKTS)
		return 0;
	copa_forget_losses(st);
	return lost > excess;
}

/* cwnd / RTTstanding > 1 / (delta dq): exact, for windows below 2^31. */
static int copa_above_target(const struct copa_state *st, const struct copa_rtt *rtt,
			     u32 window_pkts)
{
	u64 target = ((u64)rtt->standing_us * st->inv_delta_q16) >> 16;

	return (u64)window_pkts * rtt->dq_us > target;
}

/* v / delta packets; CO-b. */
static u64 copa_step_q16(const struct copa_state *st, u32 window_pkts)
{
	return cc_min_u64((u64)st->inv_delta_q16
			      << cc_min_u32(st->velocity_log2, COPA_VELOCITY_MAX_LOG2),
			  (u64)window_pkts << 16);
}

/* v / (delta cwnd) for each counted packet, at most a window's; 2^32 of each. Wrong by less than
 * 2^-32 packets for each counted one, in favour of the larger window. */
static u64 copa_change_q32(const struct copa_state *st, u32 window_pkts, u32 counted_pkts,
			   u32 rounding)
{
	u64 window_step = (copa_step_q16(st, window_pkts) << 16) + rounding;

	return cc_min_u64(cc_div_u64(window_step, window_pkts, 0ULL), 1ULL << 32) *
	       cc_min_u32(counted_pkts, window_pkts);
}

/* The window after an increase. No sum reaches 2^64: windows are below 2^31. */
static u32 copa_increased(const struct cc_conn *conn, struct copa_state *st, u32 window_pkts,
			  u32 counted_pkts)
{
	u64 window_q32 = ((u64)window_pkts << 32 | st->fraction_q32) +
			 copa_change_q32(st, window_pkts, counted_pkts, window_pkts - 1U);

	if (window_q32 >> 32 >= conn->cwnd_max_pkts) {
		st->fraction_q32 = 0U;
		return cc_max_u32(conn->cwnd_max_pkts, window_pkts);
	}
	st->fraction_q32 = cc_low_u32(window_q32);
	return (u32)cc_min_u64(window_q32 >> 32, conn->cwnd_max_pkts);
}

/* The window after a decrease by this, at least two packets unless it was smaller. */
static u32 copa_decreased(struct copa_state *st, u32 window_pkts, u64 change_q32)
{
	u32 floor_pkts = cc_min_u32(window_pkts, CC_CWND_FLOOR_PKTS);
	u64 room_q32 = (u64)cc_sub_floor_u32(window_pkts, floor_pkts) << 32 | st->fraction_q32;
	u64 left_q32 = cc_sub_floor_u64(room_q32, change_q32);

	st->fraction_q32 = cc_low_u32(left_q32);
	return cc_min_u32(floor_pkts + (u32)(left_q32 >> 32), window_pkts);
}

/* The direction turns to this one, and v is 1 at once; a new round begins. CO-h. */
static void copa_reverse(const struct cc_conn *conn, struct copa_state *st, u8 direction,
			 const struct cc_ack *ack)
{
	if (st->direction == direction || st->velocity_log2 == 0)
		return;
	st->direction = direction & 3U;
	st->same_rounds = 0;
	st->velocity_log2 = 0;
	st->round_pkts = conn->cwnd_pkts;
	st->round_end_pkts = cc_low_u32(ack->delivered_pkts);
}

/* The rule of section 2.1 for one ACK: the window after it. */
static u32 copa_moved(const struct cc_conn *conn, struct copa_state *st,
		      const struct copa_params *p, const struct cc_ack *ack,
		      const struct copa_rtt *rtt)
{
	u32 window_pkts = conn->cwnd_pkts;
	u32 counted = reno_counted_pkts(p->count, ack->acked_pkts);
	int above = copa_above_target(st, rtt, window_pkts);

	if (p->velocity_reset == COPA_RESET_REVERSAL)
		copa_reverse(conn, st, above ? COPA_DOWN : COPA_UP, ack);
	if (above)
		return copa_decreased(st, window_pkts,
				      copa_change_q32(st, window_pkts, counted, 0U));
	return conn->cwnd_limited ? copa_increased(conn, st, window_pkts, counted) : window_pkts;
}

static void copa_pace(struct cc_conn *conn, const struct copa_params *p, u32 standing_us)
{
	/* 44 bits, and 20 more for microseconds. */
	u64 bytes =
	    cc_min_u64(2ULL * conn->cwnd_pkts * cc_min_u32(conn->mss_bytes, 1U << 17), 1ULL << 44);

	if (p->pacing && standing_us != 0U)
		conn->pacing_bytes_per_s =
		    cc_min_u64(bytes * CC_ONE_PPM / standing_us, COPA_MOST_BYTES_PER_S);
}

/* Slow start does not resume below a window that the rules have lowered. */
static void copa_set_window(struct cc_conn *conn, u32 window_pkts)
{
	if (window_pkts < conn->cwnd_pkts)
		conn->ssthresh_pkts =
		    cc_max_u32(cc_min_u32(conn->ssthresh_pkts, window_pkts), CC_CWND_FLOOR_PKTS);
	conn->cwnd_pkts = window_pkts;
}

static void copa_avoid(struct cc_conn *conn, struct copa_state *st, const struct copa_params *p,
		       const struct cc_ack *ack, const struct copa_rtt *rtt)
{
	copa_set_window(conn, copa_moved(conn, st, p, ack, rtt));
}

/* To 0.7 of the window, which gives no direction. CO-n. */
static void copa_reduce(struct cc_conn *conn, struct copa_state *st)
{
	u64 change_q32 = ((u64)conn->cwnd_pkts << 32) / 10ULL * 3ULL;

	copa_set_window(conn, copa_decreased(st, conn->cwnd_pkts, change_q32));
	st->round_pkts = conn->cwnd_pkts;
}

/* Ends the round if this ACK delivers a packet that was sent in it. */
static void copa_end_round(struct cc_conn *conn, struct copa_state *st, const struct copa_params *p,
			   const struct cc_ack *ack, int slow_start)
{
	if (cc_after(st->round_end_pkts, ack->sample_prior_pkts))
		return;
	st->round_end_pkts = cc_low_u32(ack->delivered_pkts);
	conn->notes |= CC_NOTE_ROUND;
	copa_round(st, p, conn->cwnd_pkts, slow_start);
	if (copa_loses_too_much(st, p))
		copa_reduce(conn, st);
}

/* The window of an ACK outside a timeout. */
static void copa_grow(struct cc_conn *conn, struct copa_state *st, const struct copa_params *p,
		      const struct cc_ack *ack, const struct copa_rtt *rtt)
{
	if (reno_in_slow_start(conn)) {
		if (!copa_above_target(st, rtt, conn->cwnd_pkts)) {
			if (conn->cwnd_limited)
				reno_slow_start(conn, p->ss_limit_pkts,
						reno_counted_pkts(p->count, ack->acked_pkts));
			return;
		}
		conn->ssthresh_pkts = cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
		st->round_pkts = conn->cwnd_pkts;
	}
	copa_avoid(conn, st, p, ack, rtt);
}

static void copa_on_ack(struct cc_conn *conn, struct copa_state *st, const struct copa_params *p,
			const struct cc_ack *ack)
{
	int sampled = copa_sample(conn, st, p, ack);
	struct copa_rtt rtt = copa_rtt(st);

	if (sampled && copa_nearly_empty(conn, st, p, &rtt))
		st->since_empty = 0;
	copa_count(st, ack);
	copa_end_round(conn, st, p, ack, reno_in_slow_start(conn));
	if (st->loss_seen && p->loss_window == COPA_LOSS_HALVE) {
		conn->cwnd_pkts = cc_min_u32(conn->cwnd_pkts, conn->ssthresh_pkts);
		st->round_pkts = conn->cwnd_pkts;
	}
	st->loss_seen = 0;
	if (conn->phase == CC_LOSS)
		reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);
	else
		copa_grow(conn, st, p, ack, &rtt);
	copa_pace(conn, p, rtt.standing_us);
}

static u32 copa_ssthresh(struct cc_conn *conn, struct copa_state *st, const struct copa_params *p)
{
	st->prior_cwnd_pkts = conn->cwnd_pkts;
	st->prior_inv_delta_q16 = st->inv_delta_q16;
	st->loss_seen = 1;
	st->halved = COPA_HALVED_ROUNDS;
	if (st->competitive)
		copa_halve_inv_delta(st, p);
	if (p->loss_window == COPA_LOSS_HALVE)
		return reno_ssthresh(conn);
	conn->notes |= CC_NOTE_LOSS_TOLERATED;
	return cc_max_u32(conn->cwnd_pkts, CC_CWND_FLOOR_PKTS);
}

static void copa_on_event(struct cc_conn *conn, struct copa_state *st, const struct copa_params *p,
			  u32 event)
{
	(void)p;
	if (event != CC_EVENT_RTO)
		return;
	conn->ssthresh_pkts = reno_ssthresh(conn);
	st->loss_seen = 0;
	copa_forget_losses(st);
	st->velocity_log2 = 0;
	st->direction = COPA_STILL;
	st->same_rounds = 0;
}

static u32 copa_undo(struct cc_conn *conn, struct copa_state *st, const struct copa_params *p)
{
	(void)p;
	st->inv_delta_q16 = st->prior_inv_delta_q16;
	/* A change by the stack gives no direction. */
	st->round_pkts = cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);
	return st->round_pkts;
}

static void copa_observe(const struct copa_state *st, const struct copa_params *p,
			 u32 out[CC_OBSERVE_N])
{
	struct copa_rtt rtt = copa_rtt(st);

	(void)p;
	out[0] = rtt.dq_us;
	out[1] = rtt.min_us;
	out[2] = st->competitive ? st->inv_delta_q16 >> 16 : 0U;
	out[3] = 1U << cc_min_u32(st->velocity_log2, COPA_VELOCITY_MAX_LOG2);
}

KNEE_RATE_ALGORITHM(
    copa, COPA_PARAMS, COPA_RULES, COPA_INVARIANTS, CC_NO_RANDOM,
    "moves its window towards a rate of 1/(delta dq); competes with loss-based flows",
    "Arun, Balakrishnan, NSDI 2018", "dq_us|rtt_min_us|competitive_inv_delta_pkts|velocity");
