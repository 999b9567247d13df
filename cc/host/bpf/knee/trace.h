/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One record for each call, for a tracer in user space. While nobody traces, this costs only the
 * test of one word.
 *
 * A tracer makes the ring, puts it into knee_rings, and then says in knee_tracing what it wants.
 */
#ifndef KNEE_TRACE_H
#define KNEE_TRACE_H

#include "knee/contract.h"
#include "knee/kernel.h"

/* The tracer's requests. The programs write `dropped` only. */
struct knee_tracing {
	u64 dropped;	    /* records that found no room in the ring */
	u64 tracer_started; /* start of the tracing process, as /proc says, so that ... */
	u32 tracer_pid;	    /* ... one that was killed is known as such */
	u32 ring;	    /* number of the ring's map: whose this is */
	u32 on;
	u32 variant; /* goes into each record */
	u32 port;    /* either side's; 0: any */
	u32 any_address;
	u32 record_bytes; /* so that a tracer of another version leaves this alone */
	u32 reserved;
	u32 address[4]; /* either side's, as in the record */
};

/* Only the type of map matters here: the ring that the tracer inserts has its own size. */
struct knee_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__array(values, struct knee_ring);
} knee_rings SEC(".maps");

/* One call. Its reader is crates/knee-kernel/src/tracer.rs. */
struct knee_record {
	u32 variant;
	/* Initial sequence number: tells two lives of the same addresses and ports apart. */
	u32 socket;
	u32 local[4], remote[4]; /* IPv6, network order; IPv4 as ::ffff:a.b.c.d */
	unsigned short local_port, remote_port;
	u32 call; /* enum knee_call */
	u32 event;
	u32 result_pkts; /* of ssthresh and undo, before the shim bounds it */
	u64 dropped;	 /* knee_tracing.dropped so far */
	struct cc_conn before;
	struct cc_conn after; /* as the algorithm left it, before the shim bounds it */
	struct cc_ack ack;
	u32 observed[CC_OBSERVE_N];
	u64 state[CC_STATE_MAX_BYTES / 8]; /* after the call */
};

#define KNEE_AT(s, field, offset)                                                                  \
	_Static_assert(__builtin_offsetof(struct s, field) == (offset), "as tracer.rs has it")
_Static_assert(sizeof(struct knee_tracing) == 64 && sizeof(struct knee_record) == 344, "sizes");
KNEE_AT(knee_tracing, tracer_pid, 16);
KNEE_AT(knee_tracing, record_bytes, 40);
KNEE_AT(knee_tracing, address, 48);
KNEE_AT(knee_record, local, 8);
KNEE_AT(knee_record, remote, 24);
KNEE_AT(knee_record, local_port, 40);
KNEE_AT(knee_record, call, 44);
KNEE_AT(knee_record, dropped, 56);
KNEE_AT(knee_record, before, 64);
KNEE_AT(knee_record, after, 128);
KNEE_AT(knee_record, ack, 192);
KNEE_AT(knee_record, observed, 240);
KNEE_AT(knee_record, state, 256);

struct knee_tracing knee_tracing SEC(".data.knee") = {
    .record_bytes = sizeof(struct knee_record),
};

KNEE_INLINE int knee_traced(void)
{
	return knee_tracing.on != 0;
}

/* Numbered as knee_run::Call. */
enum knee_call {
	KNEE_CALL_INIT = 0,
	KNEE_CALL_ON_RTT = 1,
	KNEE_CALL_ON_ACK = 2,
	KNEE_CALL_SSTHRESH = 3,
	KNEE_CALL_ON_EVENT = 4,
	KNEE_CALL_UNDO = 5,
};

/* The two ends of a connection. */
struct knee_ends {
	struct in6_addr local, remote;
	u32 local_port, remote_port;
};

KNEE_INLINE void knee_ends(struct knee_ends *ends, const struct tcp_sock *tp)
{
	const struct sock_common *sk = &tp->inet_conn.icsk_inet.sk.__sk_common;

	ends->local_port = sk->skc_num;
	ends->remote_port = __builtin_bswap16(sk->skc_dport);
	if (sk->skc_family == KNEE_AF_INET6) {
		for (u32 i = 0; i < 4; i++) {
			ends->local.words[i] = sk->skc_v6_rcv_saddr.words[i];
			ends->remote.words[i] = sk->skc_v6_daddr.words[i];
		}
		return;
	}
	ends->local = (struct in6_addr){{0, 0, KNEE_MAPPED, sk->skc_rcv_saddr}};
	ends->remote = (struct in6_addr){{0, 0, KNEE_MAPPED, sk->skc_daddr}};
}

KNEE_INLINE int knee_is_address(const struct in6_addr *address)
{
	const u32 *wanted = knee_tracing.address;

	return address->words[0] == wanted[0] && address->words[1] == wanted[1] &&
	       address->words[2] == wanted[2] && address->words[3] == wanted[3];
}

KNEE_INLINE int knee_wanted(const struct tcp_sock *tp)
{
	u32 port = knee_tracing.port;
	struct knee_ends ends;

	knee_ends(&ends, tp);
	if (port && ends.local_port != port && ends.remote_port != port)
		return 0;
	return knee_tracing.any_address || knee_is_address(&ends.local) ||
	       knee_is_address(&ends.remote);
}

/* Fills in the known identity of the socket. */
KNEE_INLINE void knee_identify(struct knee_record *record, const struct tcp_sock *tp)
{
	struct knee_ends ends;

	record->variant = knee_tracing.variant;
	/* Read again: kept since knee_wanted(), they would use stack that the algorithm needs. */
	knee_ends(&ends, tp);
	/* The oldest unacknowledged position, less what was acknowledged so far. */
	record->socket = tp->snd_una - (u32)tp->bytes_acked;
	for (u32 i = 0; i < 4; i++) {
		record->local[i] = ends.local.words[i];
		record->remote[i] = ends.remote.words[i];
	}
	record->local_port = (unsigned short)ends.local_port;
	record->remote_port = (unsigned short)ends.remote_port;
	record->dropped = knee_tracing.dropped;
}

#endif
