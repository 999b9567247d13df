/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ABSE: adaptive bandwidth share estimation from the times of ACKs.
 *
 * R. Wang, M. Valla, M. Y. Sanadidi, M. Gerla: "Adaptive Bandwidth Share Estimation in TCP
 * Westwood", Globecom 2002, with the delay-sensitive instability measure of J. Sansa-Otim,
 * I. A. Rai, J. M. van der Hulst: "F-TCP: a Delay-based Protocol with Fair Co-existence", ICN 2010,
 * section III-A.
 *
 * For each ACK k that delivers d packets, dt after the ACK before it, RTT being the smoothed one:
 *
 *   Th    <- eps Th + (1 - eps) (packets of the last RTT) / RTT
 *   T     =  RTT (cwnd - Th RTTmin) / cwnd, at least dt        no backlog: the last two ACKs
 *   s     =  (packets of the last T) / T
 *   U     <- beta U + (1 - beta) |s - s of the ACK before|     F-TCP paper eq. 1
 *   tau   =  RTT + N RTT U / Umax                              Umax: largest of the last ten U
 *   BE    <- a BE + (1 - a) s,  a = (2 tau - dt) / (2 tau + dt)
 *
 * beta is one constant after a loss and another after a response to delay.
 *
 * Readings taken where the papers are silent:
 *  - AB-a: BE grows from 0, as the filter has it, or starts at the first sample: `be_start`.
 *  - AB-b: an ACK in the same microsecond as the one before has no rate of its own: its packets
 *    count with the next ACK's. dt is never 0.
 *  - AB-c: after a pause of more than two RTTs (twice the constant tau, if that is longer) BE is
 *    held, or a sample of 0 is filtered for every tau / 2: `idle`. In either case the ACK gives no
 *    sample. In a shorter gap a is negative only if a constant tau is less than the RTT; then 0 is
 *    used.
 *  - AB-d: U / Umax = 0 where both are 0.
 *  - AB-e: an ACK that delivers nothing is ignored, as are all ACKs before the host knows an RTT;
 *    the first one after that only starts the clock.
 *  - AB-f: the packets of an ACK are taken to have been delivered evenly since the ACK before it.
 *    Counted at one instant, they would make s jump by up to a factor of 2 when T passes a whole
 *    number of ACK intervals.
 *  - FT-j: whether tau grows with U (the ABSE papers) or shrinks (the F-TCP paper): `agility`.
 *  - FT-i: T as above, or always the last two ACKs: `sampling`.
 *
 *  - AB-g: Umax is the largest of the last ten U, as recalled from the ABSE papers, or the largest
 *    ever: `umax`.
 *
 * Approximations. The ACKs themselves do not fit. The curve of the packets delivered over the
 * last RTT is kept as six straight pieces: the running one, which ends at the present ACK, and five
 * before it. An ACK goes into the running piece where that changes the curve by 1/64 packet at
 * most; else it begins a new one, and of all neighbours those two become one piece that thereby
 * move the curve least. So a smooth stream is one piece, and a train of ACKs and the gap before it
 * are two, wherever they lie in the RTT. Older pieces have 14 significant bits of time and 11 of
 * packets, U has 11; tau is at most 16.7 s. A pause is measured modulo 2^32 us.
 * crates/knee-cc/tests/abse.rs measures the error of BE against the equations.
 */
#ifndef KNEE_ABSE_H
#define KNEE_ABSE_H

#include "knee/contract.h"

enum { ABSE_AGILITY_ABSE = 0, ABSE_AGILITY_FTCP_TEXT = 1 };
enum { ABSE_SAMPLING_ADAPTIVE = 0, ABSE_SAMPLING_LAST_TWO_ACKS = 1 };
enum { ABSE_IDLE_HOLD = 0, ABSE_IDLE_ZERO_SAMPLES = 1 };
enum { ABSE_START_ZERO = 0, ABSE_START_FIRST_SAMPLE = 1 };
enum { ABSE_UMAX_TEN = 0, ABSE_UMAX_EVER = 1 };

/* beta and eps are at most 0.99: beyond that, rounding would swallow the last steps. */
#define ABSE_PARAMS(X) \
	X(CC_TIME_US, tau_const_us, "tau_const", "", 0, 10000000, 0, "", \
	  "F-TCP paper Fig. 1: 0.1 s, 1 s, adaptive", \
	  "time constant of the bandwidth filter; 0: adaptive") \
	X(CC_CHOICE, agility, "agility", "", 0, 1, ABSE_AGILITY_ABSE, "abse|ftcp_text", \
	  "ABSE; F-TCP paper sIII-A; reading FT-j", \
	  "instability makes the filter slower (abse) or faster (ftcp_text)") \
	X(CC_NUMBER_PPM, agility_n_ppm, "agility_n", "", 0, 100000000, 10000000, "", "ABSE: N = 10", \
	  "N: tau varies from RTT to (1 + N) RTT") \
	X(CC_PROB_PPM, beta_u_ppm, "beta_u", "", 0, 990000, 600000, "", \
	  "F-TCP paper sIII-A: 0.6", "weight of the past in the instability U, after a loss") \
	X(CC_PROB_PPM, beta_u_delay_ppm, "beta_u_delay", "", 0, 990000, 800000, "", \
	  "F-TCP paper sIII-A: 0.8", \
	  "the same after a response to delay; if equal to beta_u, delay makes no difference") \
	X(CC_PROB_PPM, epsilon_ppm, "epsilon", "", 0, 990000, 600000, "", "ABSE: 0.6", \
	  "weight of the past in the throughput that determines the sampling interval") \
	X(CC_CHOICE, sampling, "sampling", "", 0, 1, ABSE_SAMPLING_ADAPTIVE, \
	  "adaptive|last_two_acks", "ABSE; F-TCP paper Fig. 1: last two ACKs; reading FT-i", \
	  "interval over which a rate sample is taken") \
	X(CC_CHOICE, idle, "idle", "", 0, 1, ABSE_IDLE_HOLD, "hold|zero_samples", "reading AB-c", \
	  "what a long pause does to the estimate") \
	X(CC_CHOICE, be_start, "be_start", "", 0, 1, ABSE_START_ZERO, \
	  "zero|first_sample", "reading AB-a", "where the estimate starts") \
	X(CC_CHOICE, umax, "umax", "", 0, 1, ABSE_UMAX_TEN, "ten|ever", \
	  "ABSE: ten, from memory; reading AB-g", "Umax: the largest of the last ten U, or of all")

struct cc_abse_params {
	ABSE_PARAMS(CC_PARAM_FIELD)
};

/* The estimator's parameters within those of an algorithm, which has ABSE_PARAMS as its last rows.
 */
#define ABSE_PARAMS_OF(p)                                                                         \
	((const struct cc_abse_params *)(const void *)((const u8 *)((p) + 1) -                     \
						       sizeof(struct cc_abse_params)))

/* Pieces before the running one; pieces in all. */
#define ABSE_PIECES 5U
#define ABSE_TAKERS (ABSE_PIECES + 1ULL)

/* 72 bytes. Times are the low 32 bits of the host's clock. Lanes are 16 bits, newest lowest. */
struct cc_abse {
	u64 be_q24; /* BE, packets/s, at most 2^30; 0: no estimate yet */
	u64 u_lo;   /* ten lanes: the last U, packets/s * 2^24, floats */
	u64 u_hi;
	u32 u_top;
	u32 th_q8;		/* Th, packets/s */
	u32 sample_f;		/* s, packets/s * 2^24, float */
	u32 ack_us;		/* latest ACK that counted */
	u32 run_us;		/* the running piece: how long; 0: no ACK yet */
	u32 run_q11;		/* packets in it */
	u32 piece[ABSE_PIECES]; /* before it, newest first: packets * 2^11 and us, floats */
	u16 responses;		/* ABSE_AFTER_DELAY, ABSE_PRIOR_AFTER_DELAY */
	u16 waiting_pkts;	/* of ACKs in the same microsecond as the latest one that counted */
};
_Static_assert(sizeof(struct cc_abse) == 72, "cc_abse layout");

/* The latest congestion response was to delay, not to a loss. */
#define ABSE_AFTER_DELAY 1U
/* The same before the latest loss, for undo. */
#define ABSE_PRIOR_AFTER_DELAY 2U
#define ABSE_PKTS_MAX (1U << 28)
#define ABSE_RATE_MAX_Q24 ((1ULL << 54) - 1ULL)
#define ABSE_Q11_IN_Q24 (1ULL << 13)
/* Largest first sample accepted: 134 Gbit/s of 1000-byte packets. */
#define ABSE_START_MAX_Q24 (1ULL << 48)
/* Once all of the last U are below this (1/64 packets/s), a U that is also below it is ignored:
 * with constant samples U / Umax would otherwise end in rounding errors of small numbers. */
#define ABSE_U_MIN_LANE (8U << ABSE_U_BITS)
/* Every U is less than 2^54. */
#define ABSE_U_MAX_LANE (44U << ABSE_U_BITS)
/* A piece has at most 2^20 packets, * 2^11. */
#define ABSE_PIECE_Q11_BITS 31U
/* Bits of a piece that hold its time. */
#define ABSE_PIECE_TIME 17U
/* The running piece's time is less than 2^25; the mask takes nothing from it, and shows that. */
#define ABSE_RUN_MASK_US ((1U << 25) - 1U)
/* Packets by which an ACK may move the running piece: 1/64. */
#define ABSE_STRAIGHT_Q11 32ULL
/* Fraction bits of a float's significand. */
#define ABSE_PIECE_PKTS_BITS 10U
#define ABSE_PIECE_US_BITS 13U
#define ABSE_U_BITS 10U
#define ABSE_SAMPLE_BITS 26U

/* Invariants of `st->abse`, where it is `used`. */
#define ABSE_INVARIANTS(X, used) \
	X(abse_be_q24, !(used) || st->abse.be_q24 <= ABSE_RATE_MAX_Q24) \
	X(abse_u, !(used) || (abse_largest_of_nine(&st->abse) <= ABSE_U_MAX_LANE && \
			      st->abse.u_top >> 16 <= ABSE_U_MAX_LANE)) \
	X(abse_run_us, !(used) || st->abse.run_us <= ABSE_RUN_MASK_US) \
	X(abse_responses, !(used) || st->abse.responses <= (ABSE_AFTER_DELAY | ABSE_PRIOR_AFTER_DELAY))

/*
 * Floats without sign: 2^bits + value as a significand of bits + 1 bits, rounded to nearest,
 * shifted; the leading bit is left out. Small values and 0 are exact; the order is that of the
 * values. No branches: the BPF verifier would explore each of them with every value that it tracks.
 */
static inline u32 abse_float(u64 value, u32 bits)
{
	u64 biased = value + (1ULL << bits);
	u32 shift = 63U - bits - (u32)__builtin_clzll(biased);
	u32 significand = (u32)((biased + ((1ULL << shift) >> 1)) >> shift);

	return (shift << bits) + significand - (1U << bits);
}

static inline u64 abse_value(u32 code, u32 bits)
{
	u64 significand = (code & ((1U << bits) - 1U)) | 1U << bits;

	return (significand << (code >> bits)) - (1ULL << bits);
}

/* value * factor, for value < 2^55 and factor 0 ... 2^33 for 0 ... 1. */
/*@ requires value < (1ULL << 55) && factor_q33 <= (1ULL << 33);
    assigns \result \from value, factor_q33; ensures \result <= value; */
static inline u64 abse_part(u64 value, u64 factor_q33)
{
	u64 high = value / (1ULL << 24);
	u64 low = value % (1ULL << 24);

	return high * factor_q33 / (1ULL << 9) + low * factor_q33 / (1ULL << 33);
}

static inline u64 abse_ppm_q33(u32 ppm)
{
	return ((u64)ppm << 33) / CC_ONE_PPM;
}

/* packets / time, packets/s; count_q11 is less than 2^43, the time more than 0. */
/*@ requires count_q11 < (1ULL << 43) && over_us != 0;
    assigns \result \from count_q11, over_us; ensures \result <= ABSE_RATE_MAX_Q24; */
static inline u64 abse_rate_q24(u64 count_q11, u32 over_us)
{
	u64 scaled = count_q11 * CC_ONE_PPM;
	u64 whole_q11, rest;

	/* The product of 512 packets or fewer fits at once. */
	if (count_q11 <= 1ULL << 20)
		return scaled * ABSE_Q11_IN_Q24 / over_us;
	whole_q11 = scaled / over_us;
	rest = scaled % over_us;
	return cc_min_u64(whole_q11, ABSE_RATE_MAX_Q24 / ABSE_Q11_IN_Q24) * ABSE_Q11_IN_Q24 +
	       rest * ABSE_Q11_IN_Q24 / over_us;
}

/*
 * The count that a piece can hold: less than 2^31 and 2^24. A larger one is divided, not cut off: a
 * constant on one path would keep the verifier from seeing that it leads to the same as the other.
 */
/*@ assigns \result \from pkts_q11; ensures \result < (1ULL << ABSE_PIECE_Q11_BITS); */
static inline u64 abse_within_q11(u64 pkts_q11)
{
	return pkts_q11 / (1ULL + pkts_q11 / (1ULL << ABSE_PIECE_Q11_BITS));
}

/*@ assigns \result \from us; ensures \result < (1ULL << 24); */
static inline u32 abse_within_us(u32 us)
{
	return us / (1U + us / (1U << 24));
}

/*
 * A piece of the curve of delivered packets: its packets (15 bits) and its time less 1 us (17
 * bits); 0 stands for nothing in 1 us.
 */
static inline u32 abse_piece(u64 pkts_q11, u32 us)
{
	return (abse_float(abse_within_q11(pkts_q11), ABSE_PIECE_PKTS_BITS) << ABSE_PIECE_TIME) +
	       abse_float(abse_within_us(us - 1U), ABSE_PIECE_US_BITS);
}

static inline u64 abse_piece_q11(u32 piece)
{
	return abse_value(piece >> ABSE_PIECE_TIME, ABSE_PIECE_PKTS_BITS);
}

/* 1 ... 2^24. */
static inline u32 abse_piece_us(u32 piece)
{
	return 1U + (u32)abse_value(piece & ((1U << ABSE_PIECE_TIME) - 1U), ABSE_PIECE_US_BITS);
}

/* Packets * 2^11 by which the curve moves where two neighbours become one piece, times the time of
 * both. */
static inline u64 abse_bend_q11_us(u64 old_q11, u32 old_us, u64 new_q11, u32 new_us)
{
	u64 a = old_q11 * new_us;
	u64 b = new_q11 * old_us;

	return a > b ? a - b : b - a;
}

/* Packets of a bend, times 2^11. */
static inline u64 abse_bend_q11(u64 old_q11, u32 old_us, u64 new_q11, u32 new_us)
{
	return abse_bend_q11_us(old_q11, old_us, new_q11, new_us) / ((u64)old_us + new_us);
}

/*
 * The least of the bends times ABSE_TAKERS, plus which piece takes in its newer neighbour there: 0
 * is the running one, which the ACK would go into with `least`. Pieces that have gone by are
 * emptied.
 */
static inline u64 abse_least_bend(struct cc_abse *abse, u64 least, u64 age_us, u32 rtt_us)
{
	/* The RTT may grow a little before they have gone. */
	u64 needed_us = 1ULL + rtt_us + rtt_us / 8U;
	u64 newer_q11 = abse->run_q11;
	u32 newer_us = abse->run_us;

	for (u32 i = 0U; i < ABSE_PIECES; i++) {
		u32 older = (u32)(abse->piece[i] / (1ULL + (age_us / needed_us << 32)));
		u64 older_q11 = abse_piece_q11(older);
		u32 older_us = abse_piece_us(older);

		abse->piece[i] = older;
		least = cc_min_u64(
		    least,
		    abse_bend_q11(older_q11, older_us, newer_q11, newer_us) * ABSE_TAKERS + i + 1U);
		age_us += older_us;
		newer_q11 = older_q11;
		newer_us = older_us;
	}
	return least;
}

/* Takes in the packets of an ACK, delivered since the ACK before it. */
static inline void abse_count(struct cc_abse *abse, u64 count_q11, u32 dt_us, u32 rtt_us)
{
	u64 new_q11 = abse_within_q11(count_q11);
	u32 new_us = abse_within_us(dt_us);
	u64 bend_q11_us = abse_bend_q11_us(abse->run_q11, abse->run_us, new_q11, new_us);
	u64 run_q11 = abse->run_q11 + new_q11;
	u32 run_us = abse->run_us + new_us;
	u32 taker = 0U;
	u32 newer;

	if (bend_q11_us >= (ABSE_STRAIGHT_Q11 + 1ULL) * run_us) {
		u64 bend_q11 = abse_bend_q11(abse->run_q11, abse->run_us, new_q11, new_us);

		taker = (u32)(abse_least_bend(abse, bend_q11 * ABSE_TAKERS, run_us, rtt_us) %
			      ABSE_TAKERS);
	}
	if (taker == 0U) {
		/* Four RTTs describe a straight line completely. */
		u32 halves = (u32)(run_q11 >> 32) | run_us >> 24 | (run_us / 4U > rtt_us);

		abse->run_q11 = cc_low_u32(run_q11 >> halves);
		abse->run_us = run_us >> halves & ABSE_RUN_MASK_US;
		return;
	}
	newer = abse_piece(abse->run_q11, abse->run_us);
	/* The remainder that rounding took from the old piece goes to the new one. */
	abse->run_q11 = cc_low_u32(cc_sub_floor_u64(run_q11, abse_piece_q11(newer)));
	abse->run_us =
	    cc_max_u32(cc_sub_floor_u32(run_us, abse_piece_us(newer)) & ABSE_RUN_MASK_US, 1U);
	for (u32 i = 0U; i < ABSE_PIECES; i++) {
		u32 older = abse->piece[i];

		if (i + 1U == taker) {
			abse->piece[i] = abse_piece(abse_piece_q11(older) + abse_piece_q11(newer),
						    abse_piece_us(older) + abse_piece_us(newer));
			break;
		}
		abse->piece[i] = newer;
		newer = older;
	}
}

/* Packets * 2^11 of a piece in the window, of which left_us are left. */
/*@ requires piece_q11 <= (1ULL << 39) && piece_us != 0 && \valid(left_us) && *left_us < (1 << 25);
    assigns \result, *left_us \from piece_q11, piece_us, *left_us;
    ensures \result <= piece_q11 && *left_us <= \old(*left_us); */
static inline u64 abse_take_q11(u64 piece_q11, u32 piece_us, u32 *left_us)
{
	u32 take_us = *left_us;

	if (piece_us <= take_us) {
		*left_us = take_us - piece_us;
		return piece_q11;
	}
	*left_us = 0U;
	return piece_q11 * take_us / piece_us;
}

/* Packets * 2^11 delivered in the last window_us, of which count_q11 in the last dt_us. Less than
 * 2^35. */
static inline u64 abse_packets_q11(const struct cc_abse *abse, u64 count_q11, u32 dt_us,
				   u32 window_us)
{
	u32 left_us = window_us;
	u64 sum_q11 = abse_take_q11(count_q11, dt_us, &left_us);

	/* The running piece but for the present ACK. */
	sum_q11 += abse_take_q11(cc_sub_floor_u64(abse->run_q11, count_q11),
				 cc_max_u32(cc_sub_floor_u32(abse->run_us, dt_us), 1U), &left_us);

	for (u32 i = 0U; i < ABSE_PIECES; i++) {
		if (left_us == 0U)
			break;
		sum_q11 += abse_take_q11(abse_piece_q11(abse->piece[i]),
					 abse_piece_us(abse->piece[i]), &left_us);
	}
	return sum_q11;
}

/* The largest of four lanes and another. */
static inline u32 abse_largest_lane(u64 lanes, u32 largest)
{
	for (u32 i = 0U; i < 4U; i++) {
		largest = cc_max_u32(largest, (u32)(lanes & 0xffffULL));
		lanes >>= 16;
	}
	return largest;
}

/* The largest of the last nine U, a lane; the tenth and oldest is u_top >> 16. */
static inline u32 abse_largest_of_nine(const struct cc_abse *abse)
{
	return abse_largest_lane(abse->u_lo, abse_largest_lane(abse->u_hi, abse->u_top & 0xffffU));
}

static inline u32 abse_latest_u(const struct cc_abse *abse)
{
	return cc_min_u32((u32)(abse->u_lo & 0xffffULL), ABSE_U_MAX_LANE);
}

/* part / whole, at most 1; 0 where both are 0. From 40 significant bits. */
static inline u32 abse_ratio_q20(u64 part, u64 whole)
{
	u64 den = cc_max_u64(whole, 1ULL);
	u32 zeros = (u32)__builtin_clzll(den);
	u64 num = cc_min_u64(part, den);

	return (u32)((num << zeros >> 24 << 20) / (den << zeros >> 24));
}

/* U / Umax; 0 where both are 0. */
static inline u32 cc_abse_instability_q20(const struct cc_abse *abse)
{
	u32 largest = cc_max_u32(abse_largest_of_nine(abse), abse->u_top >> 16);

	return abse_ratio_q20(abse_value(abse_latest_u(abse), ABSE_U_BITS),
			      abse_value(cc_min_u32(largest, ABSE_U_MAX_LANE), ABSE_U_BITS));
}

static inline u32 abse_tau_us(const struct cc_abse *abse, const struct cc_abse_params *p,
			      u32 rtt_us)
{
	u64 n_rtt_us = (u64)rtt_us * p->agility_n_ppm / CC_ONE_PPM;
	u32 instability_q20;

	if (p->tau_const_us != 0U)
		return p->tau_const_us;
	instability_q20 = cc_abse_instability_q20(abse);
	if (p->agility == ABSE_AGILITY_FTCP_TEXT)
		instability_q20 = cc_sub_floor_u32(1U << 20, instability_q20);
	return (u32)cc_min_u64(rtt_us + ((n_rtt_us * instability_q20) >> 20), CC_TIME_MAX_US);
}

/* rtt_us less the part needed / cwnd of it; 0 if all is needed. */
/*@ requires rtt_us < (1ULL << 24) && cwnd_q8 < (1ULL << 40);
    assigns \result \from rtt_us, needed_q8, cwnd_q8; ensures \result <= rtt_us; */
static inline u32 abse_backlog_us(u32 rtt_us, u64 needed_q8, u64 cwnd_q8)
{
	if (needed_q8 >= cwnd_q8)
		return 0U;
	return (u32)(rtt_us * (cwnd_q8 - needed_q8) / cwnd_q8);
}

/* T. */
static inline u32 abse_interval_us(const struct cc_abse *abse, const struct cc_abse_params *p,
				   const struct cc_conn *conn, u32 rtt_us, u32 rtt_min_us,
				   u32 dt_us)
{
	u64 cwnd_q8 = (u64)conn->cwnd_pkts << 8;
	u64 needed_q8 = (u64)abse->th_q8 * rtt_min_us / CC_ONE_PPM;

	if (p->sampling == ABSE_SAMPLING_LAST_TWO_ACKS)
		return dt_us;
	return cc_max_u32(abse_backlog_us(rtt_us, needed_q8, cwnd_q8), dt_us);
}

/* Eq. 1. */
static inline void abse_push_u(struct cc_abse *abse, const struct cc_abse_params *p, u64 sample_q24)
{
	u64 before_q24 = abse_value(abse->sample_f, ABSE_SAMPLE_BITS);
	u64 change_q24 =
	    sample_q24 > before_q24 ? sample_q24 - before_q24 : before_q24 - sample_q24;
	u64 beta_q33 = abse_ppm_q33((abse->responses & ABSE_AFTER_DELAY) != 0U ? p->beta_u_delay_ppm
									       : p->beta_u_ppm);
	u64 u_q24 = abse_part(abse_value(abse_latest_u(abse), ABSE_U_BITS), beta_q33) +
		    abse_part(change_q24, (1ULL << 33) - beta_q33);
	u32 lane = abse_float(u_q24, ABSE_U_BITS);
	u32 oldest = abse->u_top & 0xffffU;

	if (lane < ABSE_U_MIN_LANE && abse_largest_of_nine(abse) < ABSE_U_MIN_LANE &&
	    abse->u_top >> 16 < ABSE_U_MIN_LANE)
		return;
	/* The oldest lane goes, or stays as the largest ever. */
	if (p->umax == ABSE_UMAX_EVER)
		oldest = cc_max_u32(oldest, abse->u_top >> 16);
	abse->u_top = oldest << 16 | (u32)(abse->u_hi >> 48);
	abse->u_hi = cc_shift_out_u64(abse->u_hi, 16U) | abse->u_lo >> 48;
	abse->u_lo = cc_shift_out_u64(abse->u_lo, 16U) | lane;
}

/* from + gain (to - from). */
/*@ requires from <= ABSE_RATE_MAX_Q24 && to <= ABSE_RATE_MAX_Q24 && gain_q33 <= (1ULL << 33);
    assigns \result \from from, to, gain_q33; ensures \result <= ABSE_RATE_MAX_Q24; */
static inline u64 abse_towards_q24(u64 from, u64 to, u64 gain_q33)
{
	if (to > from)
		return from + abse_part(to - from, gain_q33);
	return from - abse_part(from - to, gain_q33);
}

/* BE <- a BE + (1 - a) s, written as BE + (1 - a) (s - BE); 1 - a = 2 dt / (2 tau + dt). */
static inline void abse_filter(struct cc_abse *abse, u64 sample_q24, u32 tau_us, u32 dt_us)
{
	u64 span_us = 2ULL * tau_us + dt_us;
	u64 gain_q33 = cc_min_u64((((2ULL * dt_us) << 33) + span_us / 2ULL) / span_us, 1ULL << 33);

	abse->be_q24 = abse_towards_q24(abse->be_q24, sample_q24, gain_q33);
}

/* Samples of 0 at intervals of tau / 2, for which a = 3/5; forty leave a part in 10^9. */
static inline void abse_zero_samples(struct cc_abse *abse, u32 tau_us, u32 dt_us)
{
	u64 n = 2ULL * dt_us / tau_us;

	for (u32 i = 0U; i < 40U; i++) {
		if (i < n)
			abse->be_q24 = (abse->be_q24 * 3ULL + 4ULL) / 5ULL;
	}
}

/* weight * was + (1 - weight) * latest, to the nearest. */
/*@ requires weight_ppm <= CC_ONE_PPM; assigns \result \from was, latest, weight_ppm; */
static inline u32 abse_mean(u32 was, u32 latest, u32 weight_ppm)
{
	return (u32)((was * (u64)weight_ppm + latest * (u64)(CC_ONE_PPM - weight_ppm) +
		      CC_ONE_PPM / 2U) /
		     CC_ONE_PPM);
}

/* Th, from the packets of the last RTT. */
static inline void abse_throughput(struct cc_abse *abse, const struct cc_abse_params *p,
				   u64 packets_q11, u32 rtt_us)
{
	u64 latest_q8 = cc_min_u64(abse_rate_q24(packets_q11, rtt_us) >> 16, CC_U32_MAX);

	abse->th_q8 = abse_mean(abse->th_q8, (u32)latest_q8, p->epsilon_ppm);
}

/* s over the last interval_us, and U. */
static inline u64 abse_sample_q24(struct cc_abse *abse, const struct cc_abse_params *p,
				  u64 count_q11, u32 dt_us, u32 interval_us)
{
	u64 packets_q11 = interval_us == dt_us
			      ? count_q11
			      : abse_packets_q11(abse, count_q11, dt_us, interval_us);
	u64 sample_q24 = abse_rate_q24(packets_q11, interval_us);

	if (abse->sample_f != 0U) {
		abse_push_u(abse, p, sample_q24);
	} else {
		sample_q24 = cc_min_u64(sample_q24, ABSE_START_MAX_Q24);
		if (p->be_start == ABSE_START_FIRST_SAMPLE)
			abse->be_q24 = sample_q24;
	}
	abse->sample_f = abse_float(sample_q24, ABSE_SAMPLE_BITS);
	return sample_q24;
}

/* Takes in one ACK. To be called for every ACK, in every phase; rtt_min_us is of the connection. */
static inline void cc_abse_ack(struct cc_abse *abse, const struct cc_abse_params *p,
			       const struct cc_conn *conn, u32 rtt_min_us, u32 acked_pkts)
{
	u32 rtt_us = cc_min_u32(conn->srtt_us, CC_TIME_MAX_US);
	u32 pkts = cc_add_sat_u32(acked_pkts, abse->waiting_pkts);
	u64 count_q11 = (u64)cc_min_u32(pkts, ABSE_PKTS_MAX) << 11;
	u32 now_us = cc_low_u32(conn->now_us);
	u32 dt_us = cc_wrapping_sub_u32(now_us, abse->ack_us);

	if (rtt_us == 0U || acked_pkts == 0U)
		return;
	if (abse->run_us == 0U) {
		abse->run_us = 1U;
		abse->ack_us = now_us;
		return;
	}
	if (dt_us == 0U) {
		abse->waiting_pkts = (u16)cc_min_u32(pkts, 0xffffU);
		return;
	}
	abse->waiting_pkts = 0U;
	abse->ack_us = now_us;
	abse_count(abse, count_q11, dt_us, rtt_us);
	abse_throughput(abse, p, abse_packets_q11(abse, count_q11, dt_us, rtt_us), rtt_us);
	if (dt_us <= 2U * cc_max_u32(p->tau_const_us, rtt_us)) {
		u32 interval_us = abse_interval_us(abse, p, conn, rtt_us, rtt_min_us, dt_us);
		u64 sample_q24 = abse_sample_q24(abse, p, count_q11, dt_us, interval_us);

		abse_filter(abse, sample_q24, abse_tau_us(abse, p, rtt_us), dt_us);
	} else if (p->idle == ABSE_IDLE_ZERO_SAMPLES) {
		abse_zero_samples(abse, abse_tau_us(abse, p, rtt_us), dt_us);
	}
}

/* A congestion response: to delay, or to a loss. */
static inline void cc_abse_responds_to_delay(struct cc_abse *abse)
{
	abse->responses |= ABSE_AFTER_DELAY;
}

static inline void cc_abse_responds_to_loss(struct cc_abse *abse)
{
	abse->responses = (abse->responses & ABSE_AFTER_DELAY) != 0U ? ABSE_PRIOR_AFTER_DELAY : 0U;
}

/* The latest response to a loss was unnecessary. */
static inline void cc_abse_undo_loss(struct cc_abse *abse)
{
	abse->responses = (abse->responses & ABSE_PRIOR_AFTER_DELAY) != 0U ? ABSE_AFTER_DELAY : 0U;
}

/* A rate of at most ABSE_RATE_MAX_Q24 as a window of one rtt_us, packets * 2^8; at most 2^42. */
static inline u64 abse_window_of_q8(u64 rate_q24, u32 rtt_us)
{
	return (rate_q24 >> 16) * rtt_us / CC_ONE_PPM;
}

/* BE as a window of one rtt_us. */
static inline u64 cc_abse_window_q8(const struct cc_abse *abse, u32 rtt_us)
{
	return abse_window_of_q8(abse->be_q24, rtt_us);
}

#endif
