// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The programs of an algorithm of profile RATE. KNEE_ALGORITHM_FILE is its file.
 */
#include KNEE_ALGORITHM_FILE

enum { KNEE_PROFILE = CC_RATE };

#include "knee/programs.h"

/* An ACK of profile RATE; `ack` is zero before. */
KNEE_INLINE void knee_ack_sampled(struct cc_ack *ack, struct knee_latest *latest,
				  const struct tcp_sock *tp, const struct rate_sample *sample)
{
	s64 rtt_us = sample->rtt_us;
	s64 interval_us = sample->interval_us;
	s32 delivered_pkts = sample->delivered;

	knee_next_draw(latest);
	ack->delivered_pkts = tp->delivered;
	ack->acked_pkts = sample->acked_sacked;
	ack->lost_pkts = (u32)sample->losses;
	ack->rtt_us = rtt_us < 0 ? -1 : (s32)cc_min_u64((u64)rtt_us, 0x7fffffffU);
	ack->random = KNEE_USES_RANDOM ? knee_random(latest) : 0U;
	ack->prior_inflight_pkts = sample->prior_in_flight;
	if (delivered_pkts < 0 || interval_us <= 0)
		return;
	ack->sample_pkts = (u32)delivered_pkts;
	ack->sample_us = (u32)cc_min_u64((u64)interval_us, CC_U32_MAX);
	ack->sample_prior_pkts = sample->prior_delivered;
	ack->sample_app_limited = sample->is_app_limited;
}

/*
 * A global function: the verifier checks it once, for any frame. It would explore a static or
 * inlined one from every state that reaches it, and continue from every state in which it returns;
 * deciding window and rate has too many paths for its limit then.
 */
__attribute__((noinline)) int knee_decide(struct knee_frame *f)
{
	if (!f)
		return 0;
	knee_call_on_ack(&f->conn, &f->own.state, &f->ack);
	return 0;
}

/* The kernel's type since Linux 6.10; before, cong_control has the arguments (sk, sample). */
struct tcp_congestion_ops___since_6_10 {
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *sample);
} KNEE_CORE;

/*
 * The loader answers the question, and the verifier drops the other branch. In C the compiler would
 * choose an address first and read once, which the verifier does not allow of ctx.
 */
KNEE_INLINE const struct rate_sample *knee_sample(const u64 *ctx)
{
	const struct rate_sample *sample;

	if (bpf_core_type_matches(struct tcp_congestion_ops___since_6_10))
		__asm__ volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(sample) : "r"(ctx));
	else
		__asm__ volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(sample) : "r"(ctx));
	return sample;
}

SEC("struct_ops") void knee_on_ack(const u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	const struct rate_sample *sample = knee_sample(ctx);
	struct knee_frame f;

	if (!knee_enter(&f, tp))
		return;
	knee_ack_sampled(&f.ack, &f.own.latest, tp, sample);
	knee_decide(&f);
	knee_leave(&f, tp, knee_traced(), KNEE_CALL_ON_ACK, 0);
	knee_write_back(tp, &f.conn);
}
