// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The operations of every variant.
 *
 * The kernel calls pkts_acked, ssthresh and cwnd_event for the handshake's packets too, before
 * init. The algorithm has no state yet: the shim answers as Linux's Reno would.
 */
#include <linux/module.h>
#include <linux/random.h>

#include "knee/shim.h"

struct knee_hooks knee_hooks;

/* The shim's part of a socket: the parts of an ACK that pkts_acked gets and cong_avoid does not. */
struct knee_latest {
	u32 delivered_pkts; /* tcp_sock.delivered and .lost at the latest pkts_acked */
	u32 lost_pkts;
	s32 rtt_us;
	u32 draws; /* position in the socket's random sequence */
};

/* The use of icsk_ca_priv. */
struct knee_socket {
	u64 state[CC_STATE_MAX_BYTES / 8];
	struct knee_latest latest;
};
_Static_assert(sizeof(struct knee_socket) <=
		   sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv),
	       "state and the shim's own fit the socket");

/* A call in progress. */
struct knee_frame {
	struct tcp_sock *tp;
	const struct knee_variant *variant;
	struct knee_socket *own;
	struct cc_conn conn;
	struct cc_ack ack;
};

/* sk_pacing_rate of a socket that is not paced. */
#define KNEE_UNPACED (~0UL)

static u64 knee_pacing(const struct sock *sk)
{
	unsigned long rate = READ_ONCE(sk->sk_pacing_rate);

	return rate == KNEE_UNPACED ? 0 : min_t(u64, rate, CC_PACING_MAX_BYTES_PER_S);
}

static int knee_is_rate(const struct knee_variant *variant)
{
	return variant->algorithm->profile == CC_RATE;
}

static void knee_view(struct cc_conn *conn, struct sock *sk, int rate)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	conn->now_us = tp->tcp_mstamp;
	conn->pacing_bytes_per_s = rate ? knee_pacing(sk) : 0;
	conn->cwnd_max_pkts =
	    clamp_t(u32, tp->snd_cwnd_clamp, CC_CWND_FLOOR_PKTS, CC_CWND_MAX_PKTS);
	conn->cwnd_pkts = tcp_snd_cwnd(tp);
	conn->cwnd_cnt = tp->snd_cwnd_cnt;
	conn->ssthresh_pkts = tp->snd_ssthresh;
	conn->mss_bytes = tp->mss_cache;
	conn->inflight_pkts = tcp_packets_in_flight(tp);
	conn->outstanding_pkts = tp->packets_out;
	conn->srtt_us = tp->srtt_us >> 3;
	conn->snd_pos = tp->snd_nxt;
	conn->ack_pos = tp->snd_una;
	conn->notes = 0;
	conn->phase = inet_csk(sk)->icsk_ca_state;
	conn->cwnd_limited = tcp_is_cwnd_limited(sk);
	conn->app_limited = tp->snd_nxt == tp->write_seq;
	conn->reserved = 0;
}

/* The start of a call; 0 if the algorithm must not be called. */
static int knee_enter(struct knee_frame *f, struct sock *sk)
{
	if (!inet_csk(sk)->icsk_ca_initialized)
		return 0;
	f->tp = tcp_sk(sk);
	f->variant = container_of(inet_csk(sk)->icsk_ca_ops, struct knee_variant, ops);
	f->own = inet_csk_ca(sk);
	f->ack = (struct cc_ack){0};
	knee_view(&f->conn, sk, knee_is_rate(f->variant));
	return 1;
}

/* Reports a call, while the socket still has the inputs. */
static noinline void knee_report(const struct knee_frame *f, struct sock *sk, u32 call, u32 value)
{
	const struct cc_algorithm *algorithm = f->variant->algorithm;
	struct knee_called called = {
	    .call = call,
	    .event = call == KNEE_CALL_ON_EVENT ? value : 0,
	    .result_pkts = call == KNEE_CALL_ON_EVENT ? 0 : value,
	    .state_bytes = algorithm->state_bytes,
	    .after = f->conn,
	    .ack = f->ack,
	};

	knee_view(&called.before, sk, knee_is_rate(f->variant));
	/* A route may have set these beyond the contract's bounds. */
	if (call == KNEE_CALL_INIT) {
		called.before.cwnd_pkts =
		    clamp_t(u32, called.before.cwnd_pkts, 1U, called.before.cwnd_max_pkts);
		called.before.ssthresh_pkts = clamp_t(u32, called.before.ssthresh_pkts,
						      CC_CWND_FLOOR_PKTS, CC_SSTHRESH_INFINITE);
	}
	algorithm->observe(f->own->state, f->variant->params, called.observed);
	memcpy(called.state, f->own->state, algorithm->state_bytes);
	knee_hooks.called(sk, &called);
}

/* The end of a call; `value` is the event, or the call's result. */
static void knee_leave(const struct knee_frame *f, struct sock *sk, u32 call, u32 value)
{
	if (knee_hooks.called)
		knee_report(f, sk, call, value);
}

/* A window of 0 would stop the socket for ever. */
static void knee_write_back(const struct knee_frame *f, struct sock *sk)
{
	struct tcp_sock *tp = f->tp;

	tcp_snd_cwnd_set(tp, clamp_t(u32, f->conn.cwnd_pkts, 1U, f->conn.cwnd_max_pkts));
	tp->snd_cwnd_cnt = f->conn.cwnd_cnt;
	tp->snd_ssthresh = max_t(u32, f->conn.ssthresh_pkts, CC_CWND_FLOOR_PKTS);
	if (knee_is_rate(f->variant)) {
		u64 wanted =
		    f->conn.pacing_bytes_per_s ? f->conn.pacing_bytes_per_s : (u64)KNEE_UNPACED;

		WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, wanted, sk->sk_max_pacing_rate));
	}
}

/* From here on the socket is paced at the algorithm's rate: at first the contract's 0, whatever
 * another algorithm left. */
static void knee_own_pacing(struct sock *sk)
{
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	WRITE_ONCE(sk->sk_pacing_rate, KNEE_UNPACED);
}

/*
 * 32 uniform bits for one ACK: the position in the socket's sequence, mixed (constants: C. Wellons,
 * "Prospecting for hash functions", lowbias32).
 */
static u32 knee_random(const struct knee_frame *f)
{
	u32 bits = f->own->latest.draws;

	if (!f->variant->algorithm->uses_random)
		return 0;
	bits = (bits ^ (bits >> 16)) * 0x7feb352dU;
	bits = (bits ^ (bits >> 15)) * 0x846ca68bU;
	return bits ^ (bits >> 16);
}

static void knee_next_draw(struct knee_frame *f)
{
	f->own->latest.draws += 0x9e3779b9U; /* odd: visits all positions */
}

static void knee_init(struct sock *sk)
{
	struct knee_frame f = {
	    .tp = tcp_sk(sk),
	    .variant = container_of(inet_csk(sk)->icsk_ca_ops, struct knee_variant, ops),
	    .own = inet_csk_ca(sk),
	};
	const struct cc_algorithm *algorithm = f.variant->algorithm;

	*f.own = (struct knee_socket){0};
	if (knee_is_rate(f.variant))
		knee_own_pacing(sk);
	knee_view(&f.conn, sk, knee_is_rate(f.variant));
	/* A route may have set these beyond the contract's bounds. */
	f.conn.cwnd_pkts = clamp_t(u32, f.conn.cwnd_pkts, 1U, f.conn.cwnd_max_pkts);
	f.conn.ssthresh_pkts =
	    clamp_t(u32, f.conn.ssthresh_pkts, CC_CWND_FLOOR_PKTS, CC_SSTHRESH_INFINITE);
	f.own->latest.delivered_pkts = f.tp->delivered;
	f.own->latest.lost_pkts = f.tp->lost;
	f.own->latest.rtt_us = -1;
	if (algorithm->uses_random)
		f.own->latest.draws =
		    knee_hooks.first_draw ? knee_hooks.first_draw(sk) : get_random_u32();
	algorithm->init(&f.conn, f.own->state, f.variant->params);
	knee_leave(&f, sk, KNEE_CALL_INIT, 0);
	knee_write_back(&f, sk);
}

/* An ACK, before the stack has judged it. */
static void knee_on_rtt(struct sock *sk, const struct ack_sample *sample)
{
	struct knee_frame f;
	struct knee_latest *latest;

	if (!knee_enter(&f, sk))
		return;
	latest = &f.own->latest;
	knee_next_draw(&f);
	f.ack.delivered_pkts = f.tp->delivered;
	f.ack.acked_pkts = f.tp->delivered - latest->delivered_pkts;
	f.ack.rtt_us = sample->rtt_us < 0 ? -1 : sample->rtt_us;
	f.ack.advanced_pkts = sample->pkts_acked;
	f.ack.random = knee_random(&f);
	latest->delivered_pkts = f.tp->delivered;
	latest->lost_pkts = f.tp->lost;
	latest->rtt_us = f.ack.rtt_us;
	f.variant->algorithm->on_rtt(&f.conn, f.own->state, f.variant->params, &f.ack);
	knee_leave(&f, sk, KNEE_CALL_ON_RTT, 0);
	knee_write_back(&f, sk);
}

/* The same ACK, where the window may grow. */
static void knee_on_ack(struct sock *sk, u32 ack, u32 acked_pkts)
{
	struct knee_frame f;

	if (!knee_enter(&f, sk))
		return;
	f.ack.delivered_pkts = f.tp->delivered;
	f.ack.acked_pkts = acked_pkts;
	f.ack.lost_pkts = f.tp->lost - f.own->latest.lost_pkts;
	f.ack.rtt_us = f.own->latest.rtt_us;
	f.ack.random = knee_random(&f);
	f.variant->algorithm->on_ack(&f.conn, f.own->state, f.variant->params, &f.ack);
	knee_leave(&f, sk, KNEE_CALL_ON_ACK, 0);
	knee_write_back(&f, sk);
}

/* An ACK of profile RATE. */
static void knee_sampled(struct sock *sk, const struct rate_sample *sample)
{
	struct knee_frame f;

	if (!knee_enter(&f, sk))
		return;
	knee_next_draw(&f);
	f.ack.delivered_pkts = f.tp->delivered;
	f.ack.acked_pkts = sample->acked_sacked;
	f.ack.lost_pkts = (u32)sample->losses;
	f.ack.rtt_us = sample->rtt_us < 0 ? -1 : (s32)min_t(u64, sample->rtt_us, S32_MAX);
	f.ack.random = knee_random(&f);
	f.ack.prior_inflight_pkts = sample->prior_in_flight;
	if (sample->delivered >= 0 && sample->interval_us > 0) {
		f.ack.sample_pkts = (u32)sample->delivered;
		f.ack.sample_us = (u32)min_t(u64, sample->interval_us, U32_MAX);
		f.ack.sample_prior_pkts = sample->prior_delivered;
		f.ack.sample_app_limited = sample->is_app_limited;
	}
	f.variant->algorithm->on_ack(&f.conn, f.own->state, f.variant->params, &f.ack);
	knee_leave(&f, sk, KNEE_CALL_ON_ACK, 0);
	knee_write_back(&f, sk);
}

/* The kernel's type changed in Linux 6.10; the build looks at the headers. */
#ifdef KNEE_CONG_CONTROL_WITH_FLAG
static void knee_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *sample)
#else
static void knee_cong_control(struct sock *sk, const struct rate_sample *sample)
#endif
{
	knee_sampled(sk, sample);
}

static u32 knee_ssthresh(struct sock *sk)
{
	struct knee_frame f;
	u32 pkts;

	if (!knee_enter(&f, sk))
		return max_t(u32, tcp_snd_cwnd(tcp_sk(sk)) / 2U, CC_CWND_FLOOR_PKTS);
	pkts = f.variant->algorithm->ssthresh(&f.conn, f.own->state, f.variant->params);
	knee_leave(&f, sk, KNEE_CALL_SSTHRESH, pkts);
	return max_t(u32, pkts, CC_CWND_FLOOR_PKTS);
}

static u32 knee_undo(struct sock *sk)
{
	struct knee_frame f;
	u32 pkts;

	if (!knee_enter(&f, sk))
		return max(tcp_snd_cwnd(tcp_sk(sk)), tcp_sk(sk)->prior_cwnd);
	pkts = f.variant->algorithm->undo(&f.conn, f.own->state, f.variant->params);
	knee_leave(&f, sk, KNEE_CALL_UNDO, pkts);
	return clamp_t(u32, pkts, 1U, f.conn.cwnd_max_pkts);
}

static void knee_on_event(struct sock *sk, u32 event)
{
	struct knee_frame f;

	if (!knee_enter(&f, sk))
		return;
	f.variant->algorithm->on_event(&f.conn, f.own->state, f.variant->params, event);
	knee_leave(&f, sk, KNEE_CALL_ON_EVENT, event);
	knee_write_back(&f, sk);
}

static void knee_on_tx_start(struct sock *sk)
{
	knee_on_event(sk, CC_EVENT_TX_START);
}

static void knee_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	switch (event) {
#ifndef KNEE_TX_START_IS_A_MEMBER
	case CA_EVENT_TX_START:
		knee_on_tx_start(sk);
		break;
#endif
	case CA_EVENT_CWND_RESTART:
		knee_on_event(sk, CC_EVENT_CWND_RESTART);
		break;
	case CA_EVENT_COMPLETE_CWR:
		knee_on_event(sk, CC_EVENT_RECOVERED);
		break;
	case CA_EVENT_LOSS:
		knee_on_event(sk, CC_EVENT_RTO);
		break;
	default:
		break;
	}
}

int knee_register(struct knee_variant *variant, const struct cc_algorithm *algorithm,
		  const char *name, const u32 *params, u32 n_params)
{
	struct tcp_congestion_ops *ops = &variant->ops;

	if (algorithm->contract != CC_CONTRACT_VERSION || n_params != algorithm->n_params ||
	    n_params > KNEE_PARAMS_MAX)
		return -EINVAL;
	variant->algorithm = algorithm;
	memcpy(variant->params, params, n_params * sizeof(*params));
	if (strscpy(ops->name, name, sizeof(ops->name)) < 0)
		return -ENAMETOOLONG;
	ops->owner = THIS_MODULE;
	ops->flags = TCP_CONG_NON_RESTRICTED;
	ops->init = knee_init;
	ops->ssthresh = knee_ssthresh;
	ops->undo_cwnd = knee_undo;
	ops->cwnd_event = knee_cwnd_event;
#ifdef KNEE_TX_START_IS_A_MEMBER
	ops->cwnd_event_tx_start = knee_on_tx_start;
#endif
	if (algorithm->profile == CC_RATE) {
		ops->cong_control = knee_cong_control;
	} else {
		ops->pkts_acked = knee_on_rtt;
		ops->cong_avoid = knee_on_ack;
	}
	return tcp_register_congestion_control(ops);
}
