/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The window after a reduction.
 */
#ifndef KNEE_REDUCE_H
#define KNEE_REDUCE_H

#include "knee/contract.h"

/* This fraction of the window, rounded down, at least the floor. */
static inline u32 cc_reduced_pkts(u32 pkts, u32 left_ppm)
{
	return cc_max_u32((u32)((u64)pkts * left_ppm / CC_ONE_PPM), CC_CWND_FLOOR_PKTS);
}

/*
 * beta * cwnd, rounded down, at least the floor. A quotient that is a beta was itself rounded down,
 * at most twice, by 2^-32 each: the 2 makes up for it, so that 0.8 * 100 is 80.
 */
static inline u32 cc_reduced_q32_pkts(u32 cwnd_pkts, u64 beta_q32)
{
	return cc_max_u32((u32)(((u64)cwnd_pkts * (beta_q32 + 2ULL)) >> 32), CC_CWND_FLOOR_PKTS);
}

/* (1 - decrease) cwnd, rounded down. */
static inline u32 cc_decreased_pkts(u32 cwnd_pkts, u32 decrease_ppm)
{
	u64 kept_ppm = cc_sub_floor_u32(CC_ONE_PPM, decrease_ppm);

	return (u32)(cwnd_pkts * kept_ppm / CC_ONE_PPM);
}

#endif
