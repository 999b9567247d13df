/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A host for tests/arithmetic.rs: each call of an algorithm as a program that the test runs, with
 * all that goes in and comes out in one variable. The compiler, its options, the verifier and the
 * JIT are those of the real BPF host.
 */
#ifndef KNEE_HOST_H
#define KNEE_HOST_H

#include "knee/contract.h"
#include "knee/kernel.h"

struct knee_case {
	struct cc_conn conn;
	struct cc_ack ack;
	u64 state[CC_STATE_MAX_BYTES / 8];
	u32 observed[CC_OBSERVE_N];
	u32 event;
	u32 result;
};
struct knee_case knee_case SEC(".data.knee");

char knee_licence[] SEC("license") = "Dual BSD/GPL";

#define CASE_DEFAULT(kind, field, name, alias, min, max, def, choices, source, help) .field = (def),

#define CASE_CALL(alg, name, code)                                                                 \
	SEC("syscall") int knee_##name(void *ctx)                                                  \
	{                                                                                          \
		struct cc_conn *conn = &knee_case.conn;                                            \
		struct alg##_state *st = (struct alg##_state *)knee_case.state;                    \
		const struct alg##_params *p = &knee_params;                                       \
                                                                                                   \
		(void)ctx;                                                                         \
		(void)conn;                                                                        \
		__asm__("" : "+r"(p));                                                             \
		code;                                                                              \
		return 0;                                                                          \
	}

#define CASE_CALLS(alg, PARAMS)                                                                    \
	const struct alg##_params knee_params SEC(".rodata.knee") = {PARAMS(CASE_DEFAULT)};        \
	CASE_CALL(alg, init, alg##_init(conn, st, p))                                              \
	CASE_CALL(alg, on_ack, alg##_on_ack(conn, st, p, &knee_case.ack))                          \
	CASE_CALL(alg, ssthresh, knee_case.result = alg##_ssthresh(conn, st, p))                   \
	CASE_CALL(alg, on_event, alg##_on_event(conn, st, p, knee_case.event))                     \
	CASE_CALL(alg, undo, knee_case.result = alg##_undo(conn, st, p))                           \
	CASE_CALL(alg, observe, alg##_observe(st, p, knee_case.observed))

#define KNEE_ALGORITHM(alg, PARAMS, RULES, INVARIANTS, random, text, cite, observed)                           \
	CASE_CALLS(alg, PARAMS)                                                                    \
	CASE_CALL(alg, on_rtt, alg##_on_rtt(conn, st, p, &knee_case.ack))
#define KNEE_RATE_ALGORITHM(alg, PARAMS, RULES, INVARIANTS, random, text, cite, observed)                      \
	CASE_CALLS(alg, PARAMS)

#endif
