/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The host `linux`: a Linux kernel whose clock is virtual, with both ends of every flow inside and
 * Knee's path between them. crates/knee-linux-guest is the Rust side; its src/kernel.rs declares
 * the same structures and functions.
 *
 * There is one processor, and time passes only while it is idle. Rust is called with interrupts
 * off, and calls back only to note what a flow is to do, to deliver and to drop packets.
 */
#ifndef KNEE_LINUX_H
#define KNEE_LINUX_H

#include <linux/types.h>

struct knee_called;
struct net;
struct net_device;
struct sk_buff;
struct sock;

/* "Never": as a time; as bytes: without end. */
#define KNEE_NEVER (~0ULL)
/* Address of flow i on end e: 10.(1 + e).0.0 + i + 1; its port, on both ends. */
#define KNEE_ADDRESS(end, flow) htonl((10U << 24) + ((1U + (end)) << 16) + (flow) + 1U)
enum { KNEE_FIRST_PORT = 10000 };

/* The stack of both ends. */
struct knee_stack {
	u64 zero_after_ns; /* the run starts so long after a clock tick */
	u32 flows;
	u32 variants;
	u32 mtu_bytes;
	u32 sack;
	u32 timestamps;
	u32 idle_restart;
	u32 ecn;
	u32 reserved;
};

/* An algorithm with parameters, to be registered as `name`. */
struct knee_variant_terms {
	char algorithm[32];
	char name[16];
	u32 n_params;
	u32 params[64];
};

/* The terms of a flow. */
struct knee_flow_terms {
	u64 window_bytes;
	u32 tcp;     /* 0: it has no sockets */
	u32 reverse; /* it sends from end 1 */
	u32 packet_bytes;
	u32 mss_bytes;
	u32 initial_window_pkts;
	u32 rto_min_ms;
	u32 ack_each;
	char cc[16];
	u32 reserved;
};

/* The state of a connection's sender. */
struct knee_flow_state {
	u32 connected;
	u32 cwnd_pkts;
	u32 ssthresh_pkts;
	u32 inflight_pkts;
	u32 srtt_us;
	u32 mss_bytes;
	u32 timeouts;
	u32 idle; /* all that was written is acknowledged */
};

/* A packet that an end sends. */
struct knee_packet {
	void *skb;
	u32 bytes;
	u32 flow;
	u32 end;
	u32 ecn; /* the ECN field */
	u32 seq;
	u32 span; /* sequence space: payload, SYN, FIN */
	u32 syn;
	u32 reserved;
};

/* Rust: the run. Those that return an int give 0, or the number of an error that they have
 * reported. */
int knee_guest_open(struct knee_stack *stack);
void knee_guest_variant(u32 variant, struct knee_variant_terms *terms);
void knee_guest_flow(u32 flow, struct knee_flow_terms *terms);
/* These two give the time at which the path is to be called next. */
u64 knee_guest_advance(u64 now_ns);
u64 knee_guest_send(u64 now_ns, const struct knee_packet *packet);
void knee_guest_received(u64 now_ns, u32 flow, u32 bytes);
void knee_guest_called(u32 flow, const struct knee_called *call);
u32 knee_guest_first_draw(u32 flow);
/* Whether the run has reached its end, or failed. */
int knee_guest_ended(void);
void knee_guest_fail(u32 flow, const char *doing, int error);
void knee_guest_finish(void);

/* For Rust. */
void knee_deliver(void *skb, u32 end, u32 marked);
void knee_drop(void *skb);
void knee_flow_start(u32 flow);
void knee_flow_write(u32 flow, u64 bytes);
void knee_flow_stop(u32 flow);
void knee_flow_state(u32 flow, struct knee_flow_state *state);

/* device.c */
int knee_devices(struct net_device *devices[2]);
void knee_start_clock(u64 zero_ns);
u64 knee_now_ns(void);

/* flow.c */
int knee_flows(struct net *nets[2], u32 flows);
void knee_flows_run(void);
/* Rust: the run has ended. */
void knee_run_ended(void);
/* The flow of a socket. */
u32 knee_flow_of(const struct sock *sk);

#endif
