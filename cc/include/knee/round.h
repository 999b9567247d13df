/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Marked-packet rounds: "once per RTT" of the papers (CHD paper section IV-A, footnote 2).
 *
 * The next packet to be sent is marked; the round ends when it is acknowledged (or passed by a
 * later cumulative ACK); then the next packet to be sent is marked. Positions wrap, so a mark is
 * meaningful only near the connection's present: it starts at the current send position, never at
 * a constant.
 */
#ifndef KNEE_ROUND_H
#define KNEE_ROUND_H

#include "knee/contract.h"

struct cc_round {
	u32 mark_pos;
};

static inline void cc_round_start(struct cc_round *round, const struct cc_conn *conn)
{
	round->mark_pos = conn->snd_pos;
}

/* True if this ACK ended the round; then the next one has begun. */
static inline int cc_round_ended(struct cc_round *round, const struct cc_conn *conn)
{
	if (!cc_after(conn->ack_pos, round->mark_pos))
		return 0;
	cc_round_start(round, conn);
	return 1;
}

#endif
