/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * BPF host: turns each algorithm into a struct_ops map of the kernel's type tcp_congestion_ops.
 *
 *   kernel        profile CLASSIC                                RATE
 *   init          init                                           init
 *   pkts_acked    on_rtt                                         -
 *   cong_avoid    on_ack                                         -
 *   cong_control  -                                              on_ack
 *   ssthresh      ssthresh                                       ssthresh
 *   cwnd_event    on_event (COMPLETE_CWR: RECOVERED, LOSS: RTO)  on_event (LOSS: RTO)
 *   undo_cwnd     undo                                           undo
 *
 * TX_START is an event of cwnd_event too, but a member of its own, cwnd_event_tx_start, where the
 * kernel has that (Linux 7.2).
 *
 * With CLASSIC the stack keeps recovery, PRR, the collapse after a timeout, and pacing. With RATE
 * it keeps the collapse, paces at the algorithm's rate (by TCP's own timer where the device has no
 * fq), and sends neither COMPLETE_CWR nor, after idle times, CWND_RESTART.
 *
 * This header gives the algorithm, at its end, names that do not depend on it. The programs are
 * plain C in classic.c and rate.c, of which one is compiled with the algorithm included, and in
 * knee/programs.h, which both share.
 *
 * The loader, and nothing else, changes three parts of an object: the name that the kernel
 * registers (start of .struct_ops.link), the parameters (.rodata.knee), which it has validated with
 * the native build's table, and the relocation that sets cwnd_event_tx_start.
 */
#ifndef KNEE_HOST_H
#define KNEE_HOST_H

#include "knee/contract.h"
#include "knee/kernel.h"

/* The programs. */
void knee_init(const u64 *ctx);
void knee_on_rtt(const u64 *ctx);
void knee_on_ack(const u64 *ctx);
u32 knee_ssthresh(const u64 *ctx);
void knee_on_event(const u64 *ctx);
void knee_on_tx_start(const u64 *ctx);
u32 knee_undo(const u64 *ctx);

#define KNEE_DEFAULT(kind, field, name, alias, min, max, def, choices, source, help) .field = (def),

/*
 * The parameters' address is hidden from the compiler, which would otherwise put the defaults in
 * their place; the verifier knows the loaded values and drops dead branches.
 */
#define KNEE_BIND(alg, PARAMS, uses_random) \
	_Static_assert(sizeof(struct alg##_state) <= CC_STATE_MAX_BYTES, "state fits the socket"); \
	typedef struct alg##_state knee_state; \
	enum { KNEE_USES_RANDOM = (uses_random) }; \
	struct knee_config { \
		char algorithm[16]; \
		struct alg##_params params; \
	}; \
	const struct knee_config knee_config SEC(".rodata.knee") = { \
	    .algorithm = #alg, \
	    .params = {PARAMS(KNEE_DEFAULT)}, \
	}; \
	KNEE_INLINE const struct alg##_params *knee_params(void) \
	{ \
		const struct alg##_params *params = &knee_config.params; \
 \
		__asm__("" : "+r"(params)); \
		return params; \
	} \
	KNEE_INLINE void knee_call_init(struct cc_conn *conn, knee_state *st) \
	{ \
		alg##_init(conn, st, knee_params()); \
	} \
	KNEE_INLINE void knee_call_on_ack(struct cc_conn *conn, knee_state *st, \
					  const struct cc_ack *ack) \
	{ \
		alg##_on_ack(conn, st, knee_params(), ack); \
	} \
	KNEE_INLINE u32 knee_call_ssthresh(struct cc_conn *conn, knee_state *st) \
	{ \
		return alg##_ssthresh(conn, st, knee_params()); \
	} \
	KNEE_INLINE void knee_call_on_event(struct cc_conn *conn, knee_state *st, u32 event) \
	{ \
		alg##_on_event(conn, st, knee_params(), event); \
	} \
	KNEE_INLINE u32 knee_call_undo(struct cc_conn *conn, knee_state *st) \
	{ \
		return alg##_undo(conn, st, knee_params()); \
	} \
	KNEE_INLINE void knee_call_observe(const knee_state *st, u32 out[CC_OBSERVE_N]) \
	{ \
		alg##_observe(st, knee_params(), out); \
	}

/* The map with the operations that both profiles have, and those given. */
#define KNEE_OPERATIONS(alg, ...) \
	SEC(".struct_ops.link") \
	struct tcp_congestion_ops knee_##alg = { \
	    .name = "knee_" #alg, \
	    .flags = KNEE_TCP_CONG_NON_RESTRICTED, \
	    .init = (void *)knee_init, \
	    .ssthresh = (void *)knee_ssthresh, \
	    .cwnd_event = (void *)knee_on_event, \
	    .cwnd_event_tx_start = (void *)knee_on_tx_start, \
	    .undo_cwnd = (void *)knee_undo, \
	    __VA_ARGS__, \
	}

#define KNEE_ALGORITHM(alg, PARAMS, RULES, INVARIANTS, uses_random, text, cite, names) \
	KNEE_BIND(alg, PARAMS, uses_random) \
	KNEE_INLINE void knee_call_on_rtt(struct cc_conn *conn, knee_state *st, \
					  const struct cc_ack *ack) \
	{ \
		alg##_on_rtt(conn, st, knee_params(), ack); \
	} \
	KNEE_OPERATIONS(alg, .pkts_acked = (void *)knee_on_rtt, .cong_avoid = (void *)knee_on_ack)

#define KNEE_RATE_ALGORITHM(alg, PARAMS, RULES, INVARIANTS, uses_random, text, cite, names) \
	KNEE_BIND(alg, PARAMS, uses_random) \
	KNEE_OPERATIONS(alg, .cong_control = (void *)knee_on_ack)

#endif
