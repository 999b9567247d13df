/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * BPF host: gives each algorithm typed, external entry points for the struct_ops shim. Parameter
 * tables stay on the loading side, which validates with the native build's; only the structure's
 * layout is shared.
 */
#ifndef KNEE_HOST_H
#define KNEE_HOST_H

#include "knee/contract.h"

#define KNEE_ALGORITHM(alg, PARAMS, RULES, random, text, cite, observed)                          \
	_Static_assert(sizeof(struct alg##_state) <= CC_STATE_MAX_BYTES, "state fits the socket"); \
	extern void knee_##alg##_init(struct cc_conn *c, struct alg##_state *s,                    \
				      const struct alg##_params *p);                               \
	void knee_##alg##_init(struct cc_conn *c, struct alg##_state *s,                           \
			       const struct alg##_params *p)                                       \
	{                                                                                          \
		alg##_init(c, s, p);                                                               \
	}                                                                                          \
	extern void knee_##alg##_on_rtt(struct cc_conn *c, struct alg##_state *s,                  \
					const struct alg##_params *p, const struct cc_ack *a);     \
	void knee_##alg##_on_rtt(struct cc_conn *c, struct alg##_state *s,                         \
				 const struct alg##_params *p, const struct cc_ack *a)             \
	{                                                                                          \
		alg##_on_rtt(c, s, p, a);                                                          \
	}                                                                                          \
	extern void knee_##alg##_on_ack(struct cc_conn *c, struct alg##_state *s,                  \
					const struct alg##_params *p, const struct cc_ack *a);     \
	void knee_##alg##_on_ack(struct cc_conn *c, struct alg##_state *s,                         \
				 const struct alg##_params *p, const struct cc_ack *a)             \
	{                                                                                          \
		alg##_on_ack(c, s, p, a);                                                          \
	}                                                                                          \
	extern u32 knee_##alg##_ssthresh(struct cc_conn *c, struct alg##_state *s,                 \
					 const struct alg##_params *p);                            \
	u32 knee_##alg##_ssthresh(struct cc_conn *c, struct alg##_state *s,                        \
				  const struct alg##_params *p)                                    \
	{                                                                                          \
		return alg##_ssthresh(c, s, p);                                                    \
	}                                                                                          \
	extern void knee_##alg##_on_event(struct cc_conn *c, struct alg##_state *s,                \
					  const struct alg##_params *p, u32 event);                \
	void knee_##alg##_on_event(struct cc_conn *c, struct alg##_state *s,                       \
				   const struct alg##_params *p, u32 event)                        \
	{                                                                                          \
		alg##_on_event(c, s, p, event);                                                    \
	}                                                                                          \
	extern u32 knee_##alg##_undo(struct cc_conn *c, struct alg##_state *s,                     \
				     const struct alg##_params *p);                                \
	u32 knee_##alg##_undo(struct cc_conn *c, struct alg##_state *s,                            \
			      const struct alg##_params *p)                                        \
	{                                                                                          \
		return alg##_undo(c, s, p);                                                        \
	}                                                                                          \
	extern void knee_##alg##_observe(const struct alg##_state *s,                              \
					 const struct alg##_params *p, u32 out[CC_OBSERVE_N]);     \
	void knee_##alg##_observe(const struct alg##_state *s, const struct alg##_params *p,       \
				  u32 out[CC_OBSERVE_N])                                           \
	{                                                                                          \
		alg##_observe(s, p, out);                                                          \
	}                                                                                          \
	_Static_assert(1, "swallows the semicolon")

#endif
