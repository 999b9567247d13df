// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * libFuzzer target: any sequence of calls of one algorithm, with any parameters in their ranges and
 * rules and any input that knee/contract.h allows. KNEE_ALGORITHM_FILE is the algorithm's file and
 * FUZZ_ONE its descriptor; FUZZ_OTHER is the same file compiled by another compiler, which must
 * give the same results. scripts/fuzz.sh builds and runs it.
 *
 * An input is the parameters' words followed by records of `struct fuzz_call`, all in the byte
 * order of this machine. Values out of their range are moved into it, so that each input is a
 * case.
 */
#include KNEE_ALGORITHM_FILE

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of the calls, the same as those of knee_cc::Call. */
enum { CALL_INIT, CALL_ON_RTT, CALL_ON_ACK, CALL_SSTHRESH, CALL_ON_EVENT, CALL_UNDO, CALL_N };

/* In fuzz_call.carry. */
enum {
	CARRY_WINDOW = 1, /* window, threshold and pacing are those that the last call left */
	CARRY_CLOCK = 2,  /* now_us is the time since the last call; its low 32 bits count */
};

struct fuzz_call {
	u8 call, event, carry, reserved[5];
	struct cc_conn conn;
	struct cc_ack ack;
};
_Static_assert(sizeof(struct fuzz_call) == 120, "corpora keep this layout");

#define PARAMS_MAX 64

extern const struct cc_algorithm FUZZ_OTHER;

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n);

/* All that a call changes. */
struct outcome {
	struct cc_conn conn;
	u64 state[CC_STATE_MAX_BYTES / 8];
	u32 observed[CC_OBSERVE_N];
	u32 result;
};

static void check(int holds, const char *what, u64 value)
{
	if (holds)
		return;
	fprintf(stderr, "%s: %s: %llu\n", FUZZ_ONE.name, what, (unsigned long long)value);
	abort();
}

static u32 within(u32 value, u32 least, u32 most)
{
	if (value >= least && value <= most)
		return value;
	return least + (u32)((u64)value % ((u64)(most - least) + 1U));
}

static int valid(const u32 *words)
{
	for (u32 i = 0; i < FUZZ_ONE.n_rules; i++) {
		const struct cc_rule *rule = &FUZZ_ONE.rules[i];
		u32 left = words[rule->left], right = words[rule->right];

		if (rule->op == CC_LESS_THAN ? left >= right : left != 0 && left <= right)
			return 0;
	}
	return 1;
}

static size_t parameters(u32 *words, const unsigned char *bytes, size_t n)
{
	size_t size = FUZZ_ONE.n_params * sizeof(u32);

	check(FUZZ_ONE.n_params <= PARAMS_MAX, "too many parameters", FUZZ_ONE.n_params);
	for (u32 i = 0; i < FUZZ_ONE.n_params; i++) {
		const struct cc_param *param = &FUZZ_ONE.params[i];

		words[param->index] = (u32)param->def;
		if (n >= size) {
			memcpy(&words[param->index], bytes + 4U * i, sizeof(u32));
			words[param->index] =
			    within(words[param->index], (u32)param->min, (u32)param->max);
		}
	}
	return n >= size ? size : n;
}

/* Moves the host's side of a call into the contract. */
static void allow(struct fuzz_call *c, const struct cc_conn *last)
{
	struct cc_conn *conn = &c->conn;

	c->call = (u8)(c->call % CALL_N);
	c->event = (u8)(c->event % (CC_EVENT_RTO + 1U));
	if (c->carry & CARRY_CLOCK)
		conn->now_us = last->now_us + (u32)(conn->now_us & CC_U32_MAX);
	conn->now_us = cc_min_u64(conn->now_us, CC_NOW_MAX_US);
	if (c->carry & CARRY_WINDOW) {
		conn->cwnd_pkts = last->cwnd_pkts;
		conn->cwnd_cnt = last->cwnd_cnt;
		conn->ssthresh_pkts = last->ssthresh_pkts;
		conn->pacing_bytes_per_s = last->pacing_bytes_per_s;
	}
	conn->cwnd_max_pkts = within(conn->cwnd_max_pkts, CC_CWND_FLOOR_PKTS, CC_CWND_MAX_PKTS);
	/* The host's rule; it meets the ends more often. */
	conn->cwnd_pkts = cc_max_u32(cc_min_u32(conn->cwnd_pkts, conn->cwnd_max_pkts), 1U);
	conn->ssthresh_pkts = within(conn->ssthresh_pkts, CC_CWND_FLOOR_PKTS, CC_SSTHRESH_INFINITE);
	conn->pacing_bytes_per_s = cc_min_u64(conn->pacing_bytes_per_s, CC_PACING_MAX_BYTES_PER_S);
	conn->mss_bytes = within(conn->mss_bytes, 1U, CC_MSS_MAX_BYTES);
	conn->notes = 0;
	conn->phase = (u8)(conn->phase % (CC_LOSS + 1U));
	conn->cwnd_limited &= 1U;
	conn->app_limited &= 1U;
	conn->reserved = 0;
	c->ack.delivered_pkts = cc_min_u64(c->ack.delivered_pkts, CC_DELIVERED_MAX_PKTS);
	c->ack.rtt_us = c->ack.rtt_us < 0 ? -1 : c->ack.rtt_us;
	c->ack.sample_app_limited &= 1U;
}

static void make(const struct cc_algorithm *alg, const struct fuzz_call *c, const u32 *words,
		 struct outcome *out)
{
	const char *violated;

	out->conn = c->conn;
	out->result = 0;
	switch (c->call) {
	case CALL_INIT:
		memset(out->state, 0, sizeof(out->state));
		alg->init(&out->conn, out->state, words);
		break;
	case CALL_ON_RTT:
		if (alg->on_rtt)
			alg->on_rtt(&out->conn, out->state, words, &c->ack);
		break;
	case CALL_ON_ACK:
		alg->on_ack(&out->conn, out->state, words, &c->ack);
		break;
	case CALL_SSTHRESH:
		out->result = alg->ssthresh(&out->conn, out->state, words);
		check(out->result >= CC_CWND_FLOOR_PKTS, "ssthresh() gives", out->result);
		break;
	case CALL_ON_EVENT:
		alg->on_event(&out->conn, out->state, words, c->event);
		break;
	default:
		out->result = alg->undo(&out->conn, out->state, words);
		check(out->result >= 1U, "undo() gives", out->result);
	}
	alg->observe(out->state, words, out->observed);
	violated = alg->violated(out->state, words);
	check(violated == 0, violated, c->call);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n)
{
	u32 words[PARAMS_MAX] = {0};
	struct outcome one = {0}, other = {0};
	struct fuzz_call c = {0};
	size_t at = parameters(words, bytes, n);

	if (!valid(words))
		return -1;
	c.conn.cwnd_max_pkts = CC_CWND_MAX_PKTS;
	c.conn.ssthresh_pkts = CC_SSTHRESH_INFINITE;
	c.conn.cwnd_pkts = 10;
	c.conn.mss_bytes = 1448;
	allow(&c, &c.conn);
	for (;;) {
		make(&FUZZ_ONE, &c, words, &one);
		make(&FUZZ_OTHER, &c, words, &other);
		check(memcmp(&one, &other, sizeof(one)) == 0, "the compilers differ in call",
		      c.call);
		check(one.conn.cwnd_pkts >= 1U, "window", one.conn.cwnd_pkts);
		check(one.conn.cwnd_pkts <= c.conn.cwnd_max_pkts, "window", one.conn.cwnd_pkts);
		check(one.conn.ssthresh_pkts >= CC_CWND_FLOOR_PKTS, "ssthresh",
		      one.conn.ssthresh_pkts);
		check(one.conn.ssthresh_pkts <= CC_SSTHRESH_INFINITE, "ssthresh",
		      one.conn.ssthresh_pkts);
		check(one.conn.pacing_bytes_per_s <= CC_PACING_MAX_BYTES_PER_S, "pacing",
		      one.conn.pacing_bytes_per_s);
		if (n - at < sizeof(c))
			return 0;
		memcpy(&c, bytes + at, sizeof(c));
		at += sizeof(c);
		allow(&c, &one.conn);
	}
}
