// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * An algorithm of profile RATE for the tests: paces at a fixed rate and tells as ssthresh, which a
 * program can read, what the latest delivery rate sample was.
 */
#include "knee/host.h"

#define RATE_PARAMS(X)                                                                             \
	X(CC_PKTS, window_pkts, "window", "", 2, 1000, 100, "", "of this test", "window, packets") \
	X(CC_PKTS, pacing_bytes_per_s, "pacing", "", 1, 1000000000, 1000000, "", "of this test",   \
	  "pacing rate, bytes/s")
#define RATE_RULES(R)

CC_PARAMS_STRUCT(rate, RATE_PARAMS);

struct rate_state {
	u32 samples;
	u32 words[21]; /* as large as a state may be: the stack must hold it */
};

#define RATE_INVARIANTS(X)

static void rate_init(struct cc_conn *conn, struct rate_state *st, const struct rate_params *p)
{
	(void)conn;
	(void)p;
	*st = (struct rate_state){0};
}

static void rate_on_ack(struct cc_conn *conn, struct rate_state *st, const struct rate_params *p,
			const struct cc_ack *ack)
{
	conn->cwnd_pkts = p->window_pkts;
	conn->pacing_bytes_per_s = p->pacing_bytes_per_s;
	if (ack->sample_us == 0 || ack->sample_app_limited)
		return;
	st->words[st->samples++ % 16U] = ack->sample_prior_pkts;
	conn->ssthresh_pkts = (u32)cc_div_u64(ack->sample_pkts * 1000000ULL, ack->sample_us, 0);
}

static u32 rate_ssthresh(struct cc_conn *conn, struct rate_state *st, const struct rate_params *p)
{
	(void)st;
	(void)p;
	return conn->ssthresh_pkts;
}

static void rate_on_event(struct cc_conn *conn, struct rate_state *st, const struct rate_params *p,
			  u32 event)
{
	(void)conn;
	(void)st;
	(void)p;
	(void)event;
}

static u32 rate_undo(struct cc_conn *conn, struct rate_state *st, const struct rate_params *p)
{
	(void)st;
	(void)p;
	return conn->cwnd_pkts;
}

static void rate_observe(const struct rate_state *st, const struct rate_params *p,
			 u32 out[CC_OBSERVE_N])
{
	(void)p;
	out[0] = st->samples;
	out[1] = 0U;
	out[2] = 0U;
	out[3] = 0U;
}

KNEE_RATE_ALGORITHM(rate, RATE_PARAMS, RATE_RULES, RATE_INVARIANTS, CC_USES_RANDOM, "paces at a fixed rate", "a test",
		    "samples|||");
