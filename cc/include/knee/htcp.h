/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The increase function of H-TCP, which delay-based AIMD uses too.
 *
 * "H-TCP paper": Armitage et al. 2008; "AIMD paper": Leith et al., PFLDnet 2007.
 */
#ifndef KNEE_HTCP_H
#define KNEE_HTCP_H

#include "knee/contract.h"

/* Beyond this time (17.9 minutes) the increase function stays at its value there, 298 968. */
#define HTCP_X_MAX_US (1U << 30)
#define HTCP_HALF_Q32 (1ULL << 31)

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
 * The same, as the H-TCP paper's implementation computes it (Listing 2) with a clock of 1000 ticks
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

#endif
