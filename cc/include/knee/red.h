/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The response curve of gentle RED over the queueing delay, which PERT, m-PERT and F-TCP emulate
 * at the sender (F-TCP paper Fig. 2a).
 */
#ifndef KNEE_RED_H
#define KNEE_RED_H

#include "knee/contract.h"

/*
 * Response probability f(q), 0 ... 2^32:
 *
 *   q <= tmin:            0
 *   tmin < q <= tmax:     rises linearly from 0 to pmax
 *   tmax < q < ttop:      rises linearly from pmax to 1
 *   ttop <= q:            1
 *
 * F-TCP and PERT have ttop = 2 tmax. Requires tmin < tmax < ttop <= CC_TIME_MAX_US.
 */
static inline u64 cc_red_prob_q32(u32 q_us, u32 tmin_us, u32 tmax_us, u32 ttop_us, u32 pmax_ppm)
{
	u64 pmax_q32 = cc_ppm_to_q32(pmax_ppm);
	u64 one_q32 = 1ULL << 32;

	if (q_us <= tmin_us)
		return 0ULL;
	if (q_us <= tmax_us)
		return cc_scale_q32(pmax_q32, q_us - tmin_us, tmax_us - tmin_us);
	if (q_us < ttop_us)
		return cc_min_u64(
		    pmax_q32 + cc_scale_q32(one_q32 - pmax_q32, q_us - tmax_us, ttop_us - tmax_us),
		    one_q32);
	return one_q32;
}

#endif
