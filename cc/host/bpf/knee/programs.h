/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shared part of the programs of both profiles. A file that includes this has included the
 * algorithm and has defined KNEE_PROFILE.
 *
 * The kernel calls pkts_acked, ssthresh and cwnd_event for the handshake's packets too, before
 * init. The algorithm has no state yet: the shim answers as Linux's Reno would.
 */
#ifndef KNEE_PROGRAMS_H
#define KNEE_PROGRAMS_H

#include "knee/host.h"
#include "knee/trace.h"

/* Values that pkts_acked learns from an ACK and cong_avoid does not get. They share icsk_ca_priv
 * with the state, hence CC_STATE_MAX_BYTES. */
struct knee_latest {
	u32 delivered_pkts; /* tcp_sock.delivered and .lost at the latest pkts_acked */
	u32 lost_pkts;
	s32 rtt_us;
	u32 draws; /* position in the socket's random sequence */
};
_Static_assert(CC_STATE_MAX_BYTES + sizeof(struct knee_latest) <=
		   sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv),
	       "state and the shim's own fit the socket");

KNEE_INLINE int knee_initialized(const struct tcp_sock *tp)
{
	return KNEE_BITS(&tp->inet_conn, icsk_ca_initialized) != 0;
}

/* tcp_is_cwnd_limited() */
KNEE_INLINE int knee_cwnd_limited(const struct tcp_sock *tp)
{
	if (KNEE_BITS(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2U * tp->max_packets_out;
}

/* The contract's pacing rate. */
KNEE_INLINE u64 knee_pacing(const struct tcp_sock *tp)
{
	u64 bytes_per_s = tp->inet_conn.icsk_inet.sk.sk_pacing_rate;

	return bytes_per_s == KNEE_UNPACED ? 0 : cc_min_u64(bytes_per_s, CC_PACING_MAX_BYTES_PER_S);
}

KNEE_INLINE void knee_view(struct cc_conn *conn, const struct tcp_sock *tp)
{
	conn->now_us = tp->tcp_mstamp;
	conn->pacing_bytes_per_s = KNEE_PROFILE == CC_RATE ? knee_pacing(tp) : 0;
	conn->cwnd_max_pkts =
	    cc_max_u32(cc_min_u32(tp->snd_cwnd_clamp, CC_CWND_MAX_PKTS), CC_CWND_FLOOR_PKTS);
	conn->cwnd_pkts = tp->snd_cwnd;
	conn->cwnd_cnt = tp->snd_cwnd_cnt;
	conn->ssthresh_pkts = tp->snd_ssthresh;
	conn->mss_bytes = tp->mss_cache;
	conn->inflight_pkts = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
	conn->outstanding_pkts = tp->packets_out;
	conn->srtt_us = tp->srtt_us >> 3;
	conn->snd_pos = tp->snd_nxt;
	conn->ack_pos = tp->snd_una;
	conn->notes = 0;
	conn->phase = (u8)KNEE_BITS(&tp->inet_conn, icsk_ca_state);
	conn->cwnd_limited = (u8)knee_cwnd_limited(tp);
	conn->app_limited = tp->snd_nxt == tp->write_seq;
	conn->reserved = 0;
}

/* Neither the verifier nor the kernel prevents a window of 0, with which a socket would never send
 * again. */
KNEE_INLINE void knee_write_back(struct tcp_sock *tp, const struct cc_conn *conn)
{
	tp->snd_cwnd = cc_max_u32(cc_min_u32(conn->cwnd_pkts, conn->cwnd_max_pkts), 1U);
	tp->snd_cwnd_cnt = conn->cwnd_cnt;
	tp->snd_ssthresh = cc_max_u32(conn->ssthresh_pkts, CC_CWND_FLOOR_PKTS);
	if (KNEE_PROFILE == CC_RATE) {
		u64 wanted = conn->pacing_bytes_per_s ? conn->pacing_bytes_per_s : KNEE_UNPACED;

		tp->inet_conn.icsk_inet.sk.sk_pacing_rate =
		    cc_min_u64(wanted, tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate);
	}
}

/* From here on the socket is paced at the algorithm's rate: at first the contract's 0, whatever
 * another algorithm left. */
KNEE_INLINE void knee_own_pacing(struct tcp_sock *tp)
{
	if (tp->inet_conn.icsk_inet.sk.sk_pacing_status == KNEE_PACING_NONE)
		tp->inet_conn.icsk_inet.sk.sk_pacing_status = KNEE_PACING_NEEDED;
	tp->inet_conn.icsk_inet.sk.sk_pacing_rate = KNEE_UNPACED;
}

/* Added to where each socket's random sequence begins. Whoever loads the variant may set it: a
 * virtual machine has the kernel's generator in the same state each time that it boots. */
u32 knee_seed SEC(".data.seed") = 0;

/*
 * 32 uniform bits for one ACK: the position in the socket's sequence, mixed (constants: C. Wellons,
 * "Prospecting for hash functions", lowbias32). The kernel's generator, which seeds each socket,
 * would cost more per ACK than the rest of the shim.
 */
KNEE_INLINE u32 knee_random(const struct knee_latest *latest)
{
	u32 bits = latest->draws;

	bits = (bits ^ (bits >> 16)) * 0x7feb352dU;
	bits = (bits ^ (bits >> 15)) * 0x846ca68bU;
	return bits ^ (bits >> 16);
}

KNEE_INLINE void knee_next_draw(struct knee_latest *latest)
{
	latest->draws += 0x9e3779b9U; /* odd: visits all positions */
}

/* The contract's event for a kernel's; -1: none. */
KNEE_INLINE int knee_event(u32 event)
{
	switch (event) {
	case KNEE_CA_EVENT_TX_START:
		/* Once, on a kernel that would call both. */
		return bpf_core_type_matches(struct tcp_congestion_ops___tx_start)
			   ? -1
			   : CC_EVENT_TX_START;
	case KNEE_CA_EVENT_CWND_RESTART:
		return CC_EVENT_CWND_RESTART;
	case KNEE_CA_EVENT_COMPLETE_CWR:
		return CC_EVENT_RECOVERED;
	case KNEE_CA_EVENT_LOSS:
		return CC_EVENT_RTO;
	default:
		return -1;
	}
}

/* The part of icsk_ca_priv that is in use. */
struct knee_socket {
	knee_state state;
	struct knee_latest latest;
} __attribute__((aligned(8)));

/* One call. It works on copies: the verifier takes no variable index into icsk_ca_priv. */
struct knee_frame {
	struct knee_socket own;
	struct cc_conn conn;
	struct cc_ack ack;
};

KNEE_INLINE struct knee_socket *knee_socket(struct tcp_sock *tp)
{
	return (struct knee_socket *)tp->inet_conn.icsk_ca_priv;
}

/* The start of a call; 0 if the algorithm must not be called. */
KNEE_INLINE int knee_enter(struct knee_frame *f, struct tcp_sock *tp)
{
	if (!knee_initialized(tp))
		return 0;
	f->own = *knee_socket(tp);
	f->ack = (struct cc_ack){0};
	knee_view(&f->conn, tp);
	/* A large state stays in memory: spilled piece by piece it would need the stack of the
	 * program twice. */
	if (sizeof(f->own.state) > 64)
		__asm__ volatile("" : : "r"(f) : "memory");
	return 1;
}

/* Records a call before its results are written, while the socket still has the inputs. */
static __attribute__((noinline)) void knee_note(const struct knee_frame *f,
						const struct tcp_sock *tp, u32 call, u32 value)
{
	struct knee_record *record;
	void *ring;
	u32 key = 0;

	if (!knee_wanted(tp))
		return;
	ring = bpf_map_lookup_elem(&knee_rings, &key);
	if (!ring)
		return;
	/* Looked at once: at a second look Linux 6.1 thinks again that it may be NULL. */
	record = bpf_ringbuf_reserve(ring, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&knee_tracing.dropped, 1);
		return;
	}
	knee_identify(record, tp);
	record->call = call;
	record->event = call == KNEE_CALL_ON_EVENT ? value : 0;
	record->result_pkts = call == KNEE_CALL_ON_EVENT ? 0 : value;
	knee_view(&record->before, tp);
	record->after = f->conn;
	record->ack = f->ack;
	knee_call_observe(&f->own.state, record->observed);
	for (u32 i = 0; i < CC_STATE_MAX_BYTES / 8; i++)
		record->state[i] = 0;
	__builtin_memcpy(record->state, &f->own.state, sizeof(f->own.state));
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* The end of a call; `value` is the event, or the call's result. */
KNEE_INLINE void knee_leave(const struct knee_frame *f, struct tcp_sock *tp, int traced, u32 call,
			    u32 value)
{
	if (traced)
		knee_note(f, tp, call, value);
	*knee_socket(tp) = f->own;
}

SEC("struct_ops") void knee_init(const u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct knee_frame f = {0};

	if (KNEE_PROFILE == CC_RATE)
		knee_own_pacing(tp);
	knee_view(&f.conn, tp);
	/* A route may have set these beyond the contract's bounds. From here on they are values
	 * that the shim wrote, or the stack made of those. */
	f.conn.cwnd_pkts = cc_max_u32(cc_min_u32(f.conn.cwnd_pkts, f.conn.cwnd_max_pkts), 1U);
	f.conn.ssthresh_pkts =
	    cc_max_u32(cc_min_u32(f.conn.ssthresh_pkts, CC_SSTHRESH_INFINITE), CC_CWND_FLOOR_PKTS);
	f.own.latest.delivered_pkts = tp->delivered;
	f.own.latest.lost_pkts = tp->lost;
	f.own.latest.rtt_us = -1;
	if (KNEE_USES_RANDOM)
		f.own.latest.draws = bpf_get_prandom_u32() + knee_seed;
	knee_call_init(&f.conn, &f.own.state);
	knee_leave(&f, tp, knee_traced(), KNEE_CALL_INIT, 0);
	knee_write_back(tp, &f.conn);
}

SEC("struct_ops") u32 knee_ssthresh(const u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct knee_frame f;
	u32 pkts;

	if (!knee_enter(&f, tp))
		return cc_max_u32(tp->snd_cwnd / 2U, CC_CWND_FLOOR_PKTS);
	pkts = knee_call_ssthresh(&f.conn, &f.own.state);
	knee_leave(&f, tp, knee_traced(), KNEE_CALL_SSTHRESH, pkts);
	return cc_max_u32(pkts, CC_CWND_FLOOR_PKTS);
}

/*
 * A program in two forms, chosen by a constant: the one that records the call has its whole frame
 * in memory, which would slow down the other.
 */
KNEE_INLINE void knee_on_event_as(const u64 *ctx, int event, int traced)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct knee_frame f;

	if (event < 0 || !knee_enter(&f, tp))
		return;
	knee_call_on_event(&f.conn, &f.own.state, (u32)event);
	knee_leave(&f, tp, traced, KNEE_CALL_ON_EVENT, (u32)event);
	knee_write_back(tp, &f.conn);
}

SEC("struct_ops") void knee_on_event(const u64 *ctx)
{
	if (knee_traced())
		knee_on_event_as(ctx, knee_event((u32)ctx[1]), 1);
	else
		knee_on_event_as(ctx, knee_event((u32)ctx[1]), 0);
}

/* Optional, as the kernel may have no such member. */
SEC("?struct_ops") void knee_on_tx_start(const u64 *ctx)
{
	if (knee_traced())
		knee_on_event_as(ctx, CC_EVENT_TX_START, 1);
	else
		knee_on_event_as(ctx, CC_EVENT_TX_START, 0);
}

SEC("struct_ops") u32 knee_undo(const u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct knee_frame f;
	u32 pkts;

	if (!knee_enter(&f, tp))
		return cc_max_u32(tp->snd_cwnd, tp->prior_cwnd);
	pkts = knee_call_undo(&f.conn, &f.own.state);
	knee_leave(&f, tp, knee_traced(), KNEE_CALL_UNDO, pkts);
	return cc_max_u32(cc_min_u32(pkts, f.conn.cwnd_max_pkts), 1U);
}

char knee_licence[] SEC("license") = "Dual BSD/GPL";

#endif
