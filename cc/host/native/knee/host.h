/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Native host: gives each algorithm a descriptor with untyped entry points and its parameter table.
 * The other hosts have a header of this name too; the include path chooses.
 */
#ifndef KNEE_HOST_H
#define KNEE_HOST_H

#include "knee/contract.h"

struct cc_param {
	const char *name;
	const char *alias;   /* "" : none */
	const char *choices; /* CC_CHOICE: names separated by '|' */
	const char *source;
	const char *help;
	u64 min, max, def;
	u32 kind;  /* enum cc_param_kind */
	u32 index; /* of the u32 in the parameter structure */
};

struct cc_rule {
	u32 left, op, right; /* parameter indices and enum cc_rule_op */
};

struct cc_algorithm {
	const char *name;
	const char *summary;
	const char *citation;
	const char *observes; /* names of the observed values, separated by '|' */
	const struct cc_param *params;
	const struct cc_rule *rules;
	u32 n_params, n_rules;
	u32 state_bytes;
	u32 uses_random;
	u32 profile;  /* enum cc_profile; CC_RATE: on_rtt is null */
	u32 contract; /* CC_CONTRACT_VERSION that it was compiled with */
	void (*init)(struct cc_conn *conn, void *st, const void *p);
	void (*on_rtt)(struct cc_conn *conn, void *st, const void *p, const struct cc_ack *ack);
	void (*on_ack)(struct cc_conn *conn, void *st, const void *p, const struct cc_ack *ack);
	u32 (*ssthresh)(struct cc_conn *conn, void *st, const void *p);
	void (*on_event)(struct cc_conn *conn, void *st, const void *p, u32 event);
	u32 (*undo)(struct cc_conn *conn, void *st, const void *p);
	void (*observe)(const void *st, const void *p, u32 out[CC_OBSERVE_N]);
	/* The first invariant that this state does not keep; null: it keeps all. */
	const char *(*violated)(const void *st, const void *p);
};

#define CC_PARAM_ROW(k, field, n, a, lo, hi, d, ch, src, h)                                        \
	{.name = (n),                                                                              \
	 .alias = (a),                                                                             \
	 .choices = (ch),                                                                          \
	 .source = (src),                                                                          \
	 .help = (h),                                                                              \
	 .min = (lo),                                                                              \
	 .max = (hi),                                                                              \
	 .def = (d),                                                                               \
	 .kind = (k),                                                                              \
	 .index = (u32)(__builtin_offsetof(KNEE_PARAMS_TYPE, field) / sizeof(u32))},
#define CC_RULE_ROW(l, o, r)                                                                       \
	{.left = (u32)(__builtin_offsetof(KNEE_PARAMS_TYPE, l) / sizeof(u32)),                     \
	 .op = (o),                                                                                \
	 .right = (u32)(__builtin_offsetof(KNEE_PARAMS_TYPE, r) / sizeof(u32))},

#define CC_INVARIANT_CHECK(name, condition)                                                        \
	if (!(condition))                                                                          \
		return #name;

/* The rows above need the parameter structure's type; a typedef local to the file names it. */
#define KNEE_DESCRIBE(alg, PARAMS, RULES, INVARIANTS, random, text, cite, observed, profile_,      \
		      on_rtt_)                                                                    \
	typedef struct alg##_params KNEE_PARAMS_TYPE;                                              \
	_Static_assert(sizeof(struct alg##_state) <= CC_STATE_MAX_BYTES, "state fits the socket"); \
	static void alg##_init_any(struct cc_conn *c, void *s, const void *p)                      \
	{                                                                                          \
		alg##_init(c, s, p);                                                               \
	}                                                                                          \
	static void alg##_on_ack_any(struct cc_conn *c, void *s, const void *p,                    \
				     const struct cc_ack *a)                                       \
	{                                                                                          \
		alg##_on_ack(c, s, p, a);                                                          \
	}                                                                                          \
	static u32 alg##_ssthresh_any(struct cc_conn *c, void *s, const void *p)                   \
	{                                                                                          \
		return alg##_ssthresh(c, s, p);                                                    \
	}                                                                                          \
	static void alg##_on_event_any(struct cc_conn *c, void *s, const void *p, u32 event)       \
	{                                                                                          \
		alg##_on_event(c, s, p, event);                                                    \
	}                                                                                          \
	static u32 alg##_undo_any(struct cc_conn *c, void *s, const void *p)                       \
	{                                                                                          \
		return alg##_undo(c, s, p);                                                        \
	}                                                                                          \
	static void alg##_observe_any(const void *s, const void *p, u32 out[CC_OBSERVE_N])         \
	{                                                                                          \
		alg##_observe(s, p, out);                                                          \
	}                                                                                          \
	static const char *alg##_violated(const void *state, const void *params)                   \
	{                                                                                          \
		const struct alg##_state *st = state;                                              \
		const struct alg##_params *p = params;                                             \
                                                                                                   \
		(void)st;                                                                          \
		(void)p;                                                                           \
		INVARIANTS(CC_INVARIANT_CHECK)                                                     \
		return 0;                                                                          \
	}                                                                                          \
	static const struct cc_param alg##_param_table[] = {PARAMS(CC_PARAM_ROW)};                 \
	static const struct cc_rule alg##_rule_table[] = {RULES(CC_RULE_ROW){0, 0, 0}};            \
	extern const struct cc_algorithm knee_##alg;                                               \
	const struct cc_algorithm knee_##alg = {                                                   \
	    .name = #alg,                                                                          \
	    .summary = (text),                                                                     \
	    .citation = (cite),                                                                    \
	    .observes = (observed),                                                                \
	    .params = alg##_param_table,                                                           \
	    .rules = alg##_rule_table,                                                             \
	    .n_params = (u32)(sizeof(alg##_param_table) / sizeof(alg##_param_table[0])),           \
	    .n_rules = (u32)(sizeof(alg##_rule_table) / sizeof(alg##_rule_table[0])) - 1U,         \
	    .state_bytes = (u32)sizeof(struct alg##_state),                                        \
	    .uses_random = (random),                                                               \
	    .profile = (profile_),                                                                 \
	    .contract = CC_CONTRACT_VERSION,                                                       \
	    .init = alg##_init_any,                                                                \
	    .on_rtt = (on_rtt_),                                                                   \
	    .on_ack = alg##_on_ack_any,                                                            \
	    .ssthresh = alg##_ssthresh_any,                                                        \
	    .on_event = alg##_on_event_any,                                                        \
	    .undo = alg##_undo_any,                                                                \
	    .observe = alg##_observe_any,                                                          \
	    .violated = alg##_violated,                                                            \
	}

#define KNEE_ALGORITHM(alg, PARAMS, RULES, INVARIANTS, random, text, cite, observed)                          \
	static void alg##_on_rtt_any(struct cc_conn *c, void *s, const void *p,                    \
				     const struct cc_ack *a)                                       \
	{                                                                                          \
		alg##_on_rtt(c, s, p, a);                                                          \
	}                                                                                          \
	KNEE_DESCRIBE(alg, PARAMS, RULES, INVARIANTS, random, text, cite, observed, CC_CLASSIC,    \
		      alg##_on_rtt_any)

#define KNEE_RATE_ALGORITHM(alg, PARAMS, RULES, INVARIANTS, random, text, cite, observed)                     \
	KNEE_DESCRIBE(alg, PARAMS, RULES, INVARIANTS, random, text, cite, observed, CC_RATE, 0)

#endif
