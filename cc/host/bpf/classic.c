// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The programs of an algorithm of profile CLASSIC. KNEE_ALGORITHM_FILE is its file.
 */
#include KNEE_ALGORITHM_FILE

enum { KNEE_PROFILE = CC_CLASSIC };

#include "knee/programs.h"

KNEE_INLINE void knee_ack_seen(struct cc_ack *ack, struct knee_latest *latest,
			       const struct tcp_sock *tp, const struct ack_sample *sample)
{
	knee_next_draw(latest);
	ack->delivered_pkts = tp->delivered;
	ack->acked_pkts = tp->delivered - latest->delivered_pkts;
	ack->lost_pkts = 0; /* judged later */
	ack->rtt_us = sample->rtt_us < 0 ? -1 : sample->rtt_us;
	ack->advanced_pkts = sample->pkts_acked;
	ack->random = KNEE_USES_RANDOM ? knee_random(latest) : 0U;
	latest->delivered_pkts = tp->delivered;
	latest->lost_pkts = tp->lost;
	latest->rtt_us = ack->rtt_us;
}

KNEE_INLINE void knee_ack_judged(struct cc_ack *ack, const struct knee_latest *latest,
				 const struct tcp_sock *tp, u32 acked_pkts)
{
	ack->delivered_pkts = tp->delivered;
	ack->acked_pkts = acked_pkts;
	ack->lost_pkts = tp->lost - latest->lost_pkts;
	ack->rtt_us = latest->rtt_us;
	ack->random = KNEE_USES_RANDOM ? knee_random(latest) : 0U;
}

/*
 * A global function: the verifier looks at it once, with any frame, where it would follow a static
 * one, or one compiled in, from each state that leads to it and on from each that it ends in.
 */
__attribute__((noinline)) int knee_measure(struct knee_frame *f)
{
	if (!f)
		return 0;
	knee_call_on_rtt(&f->conn, &f->own.state, &f->ack);
	return 0;
}

KNEE_INLINE void knee_on_rtt_as(const u64 *ctx, int traced)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
	struct knee_frame f;

	if (!knee_enter(&f, tp))
		return;
	knee_ack_seen(&f.ack, &f.own.latest, tp, sample);
	knee_measure(&f);
	knee_leave(&f, tp, traced, KNEE_CALL_ON_RTT, 0);
	knee_write_back(tp, &f.conn);
}

KNEE_INLINE void knee_on_ack_as(const u64 *ctx, int traced)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct knee_frame f;

	if (!knee_enter(&f, tp))
		return;
	knee_ack_judged(&f.ack, &f.own.latest, tp, (u32)ctx[2]);
	knee_call_on_ack(&f.conn, &f.own.state, &f.ack);
	knee_leave(&f, tp, traced, KNEE_CALL_ON_ACK, 0);
	knee_write_back(tp, &f.conn);
}

SEC("struct_ops") void knee_on_rtt(const u64 *ctx)
{
	if (knee_traced())
		knee_on_rtt_as(ctx, 1);
	else
		knee_on_rtt_as(ctx, 0);
}

SEC("struct_ops") void knee_on_ack(const u64 *ctx)
{
	if (knee_traced())
		knee_on_ack_as(ctx, 1);
	else
		knee_on_ack_as(ctx, 0);
}
