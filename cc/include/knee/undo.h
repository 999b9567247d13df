/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The undo of most algorithms: restores the window before the reduction.
 */
#ifndef KNEE_UNDO_H
#define KNEE_UNDO_H

#include "knee/contract.h"

/* Defines NAME_undo, for a state with prior_cwnd_pkts, the window before the latest reduction. The
 * window may have grown beyond that since. */
#define CC_UNDO_TO_PRIOR_CWND(alg)                                                                 \
	static u32 alg##_undo(struct cc_conn *conn, struct alg##_state *st,                        \
			      const struct alg##_params *p)                                        \
	{                                                                                          \
		(void)p;                                                                           \
		return cc_max_u32(conn->cwnd_pkts, st->prior_cwnd_pkts);                           \
	}

#endif
