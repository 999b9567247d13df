/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The increase function of H-TCP and growth by a fractional number of packets per round trip,
 * shared by H-TCP and delay-based AIMD.
 *
 * "H-TCP paper": Armitage et al. 2008; "AIMD paper": Leith et al., PFLDnet 2007.
 */
#ifndef KNEE_HTCP_H
#define KNEE_HTCP_H

#include "knee/contract.h"
#include "knee/reno.h"

/* Beyond this time (17.9 minutes) the increase function stays at its value there, 298 968. */
#define HTCP_X_MAX_US (1U << 30)
#define HTCP_HALF_Q32 (1ULL << 31)
/* Largest alpha that htcp_avoid() takes: 2^22.6 packets. */
#define HTCP_ALPHA_MAX_Q16 (6U * 1000000ULL << 16)
/* Most packets that one ACK counts for in htcp_avoid(). */
#define HTCP_COUNTED_MAX_PKTS (1U << 25)

/* x: how far the time since the last backoff is beyond the low-speed period, 0 ... HTCP_X_MAX_US.
 */
static inline u32 htcp_x_us(u64 delta_us, u32 low_speed_us)
{
	u64 x_us = delta_us > low_speed_us ? delta_us - low_speed_us : 0ULL;

	return x_us < HTCP_X_MAX_US ? (u32)x_us : HTCP_X_MAX_US;
}

/*
 * alpha(x) = 1 + 10 x + (x/2)^2, x in seconds (H-TCP paper eq. 2; AIMD paper eq. 2 as corrected),
 * rounded down to 2^-16. In microseconds and times 2^16:
 *
 *   2^16 + x 10 2^16 / 10^6 + x^2 2^16 / (4 10^12) = 2^16 + (4 x^2 + 160 000 000 x) / 244 140 625
 *
 * whose numerator stays below 2^63. Requires x <= HTCP_X_MAX_US.
 */
static inline u64 htcp_alpha_q16(u32 x_us)
{
	u64 x = x_us;

	return (1ULL << 16) + (4ULL * x * x + 160000000ULL * x) / 244140625ULL;
}

/*
 * The same as the H-TCP paper's implementation computed it (Listing 2) with a clock of 1000 ticks
 * per second: in sixteenths, the quadratic term with one factor in whole seconds, the result in
 * whole packets. Requires x <= HTCP_X_MAX_US.
 */
static inline u64 htcp_alpha_listing2_q16(u32 x_us)
{
	u64 ticks = x_us / 1000U;
	u64 sixteenths = 16ULL + 160ULL * ticks / 1000ULL +
			 (ticks / 1000ULL) * ((ticks << 4) / (4ULL * 1000ULL));

	return (sixteenths >> 4) << 16;
}

/* 2 (1 - beta) alpha: makes up for a backoff of another depth than 1/2 (H-TCP paper eq. 9; AIMD
 * paper Algorithm 1 line 19). For alpha_q16 < 2^38 and beta_q32 <= 2^32. */
static inline u64 htcp_alpha_for_beta_q16(u64 alpha_q16, u64 beta_q32)
{
	u64 factor_q24 = ((1ULL << 32) - beta_q32) >> 7;

	return (alpha_q16 * factor_q24) >> 24;
}

/*
 * cwnd += alpha/cwnd for each counted packet (H-TCP paper eq. 1, the increment). What is owed
 * towards the next +1 is kept: whole packets in cwnd_cnt, as NewReno's count of acknowledged
 * packets is, and the fraction in `credit_q16`, below 2^16. With alpha = 1 this is reno_avoid().
 */
static inline void htcp_avoid(struct cc_conn *conn, u32 *credit_q16, u64 alpha_q16,
			      u32 counted_pkts)
{
	u64 window = cc_max_u32(conn->cwnd_pkts, 1U);
	u64 alpha = alpha_q16 < HTCP_ALPHA_MAX_Q16 ? alpha_q16 : HTCP_ALPHA_MAX_Q16;
	u64 counted = cc_min_u32(counted_pkts, HTCP_COUNTED_MAX_PKTS);
	/* Below 2^63.6 + 2^48. */
	u64 credit = alpha * counted + ((u64)conn->cwnd_cnt << 16) + *credit_q16;
	u64 steps = cc_div_u64(credit >> 16, window, 0ULL);
	u64 left = credit - ((steps * window) << 16);
	u64 room = cc_sub_floor_u32(conn->cwnd_max_pkts, conn->cwnd_pkts);

	conn->cwnd_cnt = (u32)(left >> 16);
	*credit_q16 = (u32)(left & 0xffffULL);
	conn->cwnd_pkts += (u32)(steps < room ? steps : room);
}

/*
 * beta * cwnd, rounded down, at least the floor. A quotient that is a beta was itself rounded down,
 * at most twice, by 2^-32 each: the 2 makes up for it, so that 0.8 * 100 is 80.
 */
static inline u32 htcp_reduced_pkts(u32 cwnd_pkts, u64 beta_q32)
{
	return cc_max_u32((u32)(((u64)cwnd_pkts * (beta_q32 + 2ULL)) >> 32), CC_CWND_FLOOR_PKTS);
}

#endif
