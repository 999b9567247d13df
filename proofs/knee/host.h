/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Proof host: makes of each algorithm a program that Frama-C's Eva analyses. Parameters anywhere in
 * their ranges and rules, init, then any number of calls in any order, with any input within the
 * bounds of knee/contract.h. The other hosts have a header of this name too; the include path
 * chooses.
 */
#ifndef KNEE_HOST_H
#define KNEE_HOST_H

/* Eva's parser knows none; the compilers check them. */
#define _Static_assert(condition, text) extern int prove_static_assert

#include "__fc_builtin.h"
#include "knee/contract.h"
#include "knee/delay.h"

static u32 prove_any(u32 least, u32 most)
{
	return Frama_C_unsigned_int_interval(least, most);
}

static u64 prove_any_u64(u64 least, u64 most)
{
	return Frama_C_unsigned_long_long_interval(least, most);
}

/* What the host may tell, anew before each call. */
static void prove_conn(struct cc_conn *conn, u32 cwnd_least_pkts, u32 cwnd_most_pkts)
{
	conn->now_us = prove_any_u64(0, CC_NOW_MAX_US);
	conn->pacing_bytes_per_s = prove_any_u64(0, CC_PACING_MAX_BYTES_PER_S);
	conn->cwnd_max_pkts = prove_any(cwnd_least_pkts, cwnd_most_pkts);
	conn->cwnd_pkts = prove_any(1, cwnd_most_pkts);
	conn->cwnd_cnt = prove_any(0, CC_U32_MAX);
	conn->ssthresh_pkts = prove_any(CC_CWND_FLOOR_PKTS, CC_SSTHRESH_INFINITE);
	conn->mss_bytes = prove_any(1, CC_MSS_MAX_BYTES);
	conn->inflight_pkts = prove_any(0, CC_U32_MAX);
	conn->outstanding_pkts = prove_any(0, CC_U32_MAX);
	conn->srtt_us = prove_any(0, CC_U32_MAX);
	conn->snd_pos = prove_any(0, CC_U32_MAX);
	conn->ack_pos = prove_any(0, CC_U32_MAX);
	conn->notes = 0;
	conn->phase = (u8)prove_any(CC_OPEN, CC_LOSS);
	conn->cwnd_limited = (u8)prove_any(0, 1);
	conn->app_limited = (u8)prove_any(0, 1);
	conn->reserved = 0;
	if (conn->cwnd_pkts > conn->cwnd_max_pkts)
		conn->cwnd_pkts = conn->cwnd_max_pkts;
}

static void prove_ack(struct cc_ack *ack)
{
	ack->delivered_pkts = prove_any_u64(0, CC_DELIVERED_MAX_PKTS);
	ack->acked_pkts = prove_any(0, CC_U32_MAX);
	ack->lost_pkts = prove_any(0, CC_U32_MAX);
	ack->rtt_us = Frama_C_interval(-1, 0x7fffffff);
	ack->random = prove_any(0, CC_U32_MAX);
	ack->sample_pkts = prove_any(0, CC_U32_MAX);
	ack->sample_us = prove_any(0, CC_U32_MAX);
	ack->sample_prior_pkts = prove_any(0, CC_U32_MAX);
	ack->prior_inflight_pkts = prove_any(0, CC_U32_MAX);
	ack->sample_app_limited = prove_any(0, 1);
	ack->advanced_pkts = prove_any(0, CC_U32_MAX);
}

/* The same as the compiler's, for x > 0. */
static u32 prove_leading_zeros(u64 x, u32 bits)
{
	u32 n = 0;

	/*@ assert leading_zeros_of_0: x != 0; */
	/*@ loop unroll 64; */
	while (n < bits - 1U && x < 1ULL << (bits - 1U - n))
		n++;
	return n;
}
#define __builtin_clzll(x) prove_leading_zeros((x), 64U)
#define __builtin_clz(x) prove_leading_zeros((x), 32U)

#define PROVE_PARAM(kind, field, name, alias, least, most, def, choices, source, help)              \
	p->field = prove_any((least), (most));
#define PROVE_RULE(left, op, right)                                                                 \
	if ((op) == CC_LESS_THAN ? p->left >= p->right                          \
				 : p->left != 0 && p->left <= p->right)  \
		return 0;

/* After each call. The script looks for the shown name: the call can return. */
static void prove_result(const struct cc_conn *conn, u32 cwnd_most_pkts)
{
	/*@ assert cwnd_at_least_1: conn->cwnd_pkts >= 1; */
	/*@ assert cwnd_at_most_max: conn->cwnd_pkts <= cwnd_most_pkts; */
	/*@ assert ssthresh_at_least_2: conn->ssthresh_pkts >= CC_CWND_FLOOR_PKTS; */
	/*@ assert ssthresh_at_most_infinite: conn->ssthresh_pkts <= CC_SSTHRESH_INFINITE; */
	/*@ assert pacing_finite: conn->pacing_bytes_per_s <= CC_PACING_MAX_BYTES_PER_S; */
}

/* What ssthresh() and undo() give. A function: the preprocessor takes comments out of macros. */
static void prove_at_least(u32 pkts, u32 least_pkts)
{
	/*@ assert result_at_least: pkts >= least_pkts; */
}

/* An invariant of the state. The script looks for the shown name: it may not hold. Nothing is taken
 * as true from there on. */
#define PROVE_INVARIANT(name, condition)                                                           \
	if (!(condition))                                                                          \
		Frama_C_show_each_violated_##name();

#define PROVE_ON_RTT(alg)                                                                          \
	alg##_on_rtt(&conn, st, p, &ack);                                    \
	Frama_C_show_each_returned_on_rtt();
/* The host of a RATE algorithm makes no such call. */
#define PROVE_NO_ON_RTT(alg) ;

#define PROVE_PROGRAM(alg, PARAMS, RULES, INVARIANTS, ON_RTT)                                                  \
	static struct alg##_params p[1];                                                   \
	static struct alg##_state st[1];                                                     \
	static void prove_calls(u32 cwnd_least_pkts, u32 cwnd_most_pkts)                           \
	{                                                                                          \
		struct cc_conn conn;                                                               \
		struct cc_ack ack;                                                                 \
		u32 observed[CC_OBSERVE_N];                                                        \
		u32 pkts;                                                                          \
                                                                                                   \
		prove_conn(&conn, cwnd_least_pkts, cwnd_most_pkts);                                \
		alg##_init(&conn, st, p);                                    \
		Frama_C_show_each_returned_init();                                                 \
		prove_result(&conn, cwnd_most_pkts);                                               \
		INVARIANTS(PROVE_INVARIANT)                                                        \
		while (prove_any(0, 1)) {                                                          \
			prove_conn(&conn, cwnd_least_pkts, cwnd_most_pkts);                        \
			prove_ack(&ack);                                                           \
			switch (prove_any(0, 5)) {                                                 \
			case 0:                                                                    \
				pkts = alg##_ssthresh(&conn, st, p);         \
				prove_at_least(pkts, CC_CWND_FLOOR_PKTS);                          \
				Frama_C_show_each_returned_ssthresh();                             \
				break;                                                             \
			case 1:                                                                    \
				alg##_on_event(&conn, st, p,                 \
					       prove_any(CC_EVENT_TX_START, CC_EVENT_RTO));        \
				Frama_C_show_each_returned_on_event();                             \
				break;                                                             \
			case 2:                                                                    \
				pkts = alg##_undo(&conn, st, p);             \
				prove_at_least(pkts, 1U);                                          \
				Frama_C_show_each_returned_undo();                                 \
				break;                                                             \
			case 3:                                                                    \
				alg##_observe(st, p, observed);              \
				Frama_C_show_each_returned_observe();                              \
				break;                                                             \
			case 4:                                                                    \
				alg##_on_ack(&conn, st, p, &ack);            \
				Frama_C_show_each_returned_on_ack();                               \
				break;                                                             \
			default:                                                                   \
				ON_RTT(alg)                                                        \
			}                                                                          \
			prove_result(&conn, cwnd_most_pkts);                                       \
			INVARIANTS(PROVE_INVARIANT)                                                \
		}                                                                                  \
	}                                                                                          \
	int main(void)                                                                             \
	{                                                                                          \
		PARAMS(PROVE_PARAM)                                                                \
		RULES(PROVE_RULE)                                                                  \
		prove_calls(PROVE_CWND_LEAST_PKTS, PROVE_CWND_MOST_PKTS);                          \
		return 0;                                                                          \
	}

#define KNEE_ALGORITHM(alg, PARAMS, RULES, INVARIANTS, random, text, cite, observed)                           \
	PROVE_PROGRAM(alg, PARAMS, RULES, INVARIANTS, PROVE_ON_RTT)
#define KNEE_RATE_ALGORITHM(alg, PARAMS, RULES, INVARIANTS, random, text, cite, observed)                      \
	PROVE_PROGRAM(alg, PARAMS, RULES, INVARIANTS, PROVE_NO_ON_RTT)

#endif
