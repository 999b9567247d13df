/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The host `linux`: a Linux kernel whose clock is virtual, with both ends of every flow inside and
 * Knee's path between them. The path is a shared library, crates/knee-linux-guest, that the
 * kernel's process loads before the kernel starts; its src/kernel.rs declares the same structures.
 *
 * There is one processor, and time passes only while it is idle. The path is called with interrupts
 * off, and calls back only to note what a flow is to do, to deliver and to drop packets.
 */
#ifndef KNEE_LINUX_H
#define KNEE_LINUX_H

#include <linux/types.h>

struct cc_algorithm;
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
/* The number of no flow. */
#define KNEE_NO_FLOW (~0U)

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
	const struct cc_algorithm *algorithm;
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

/* A packet; its headers begin with the one of IP. */
struct knee_packet {
	void *skb;
	const u8 *headers;
	u32 headers_bytes;
	u32 bytes; /* of the whole packet */
};

/* A sysctl of net.ipv4, and its value as text. */
struct knee_sysctl {
	char name[64];
	char value[192];
};

/* The functions of the kernel that the path calls. */
struct knee_kernel {
	void (*deliver)(void *skb, u32 end, u32 marked);
	void (*drop)(void *skb);
	void (*packet)(void *skb, struct knee_packet *packet);
	void (*flow_start)(u32 flow);
	void (*flow_write)(u32 flow, u64 bytes);
	void (*flow_stop)(u32 flow);
	void (*flow_state)(u32 flow, struct knee_flow_state *state);
	/* The run has ended. */
	void (*run_ended)(void);
};

/* The path and its run: a shared library, which has one of these under the name `knee_path`. */
struct knee_path {
	/* Reads the run's specification, before the kernel starts. Not 0: it has failed, and has
	 * reported that. */
	int (*read)(void);
	void (*open)(const struct knee_kernel *kernel, struct knee_stack *stack);
	void (*variant)(u32 variant, struct knee_variant_terms *terms);
	void (*flow)(u32 flow, struct knee_flow_terms *terms);
	/* Gives a sysctl of an end, in the order in which they are set; 0: there are no more. */
	int (*sysctl)(u32 end, u32 index, struct knee_sysctl *sysctl);
	/* The kernel does not take a sysctl. */
	void (*refuse)(const struct knee_sysctl *sysctl, int error);
	/* These two give the time at which the path is to be called next. */
	u64 (*advance)(u64 now_ns);
	u64 (*send)(u64 now_ns, u32 end, const struct knee_packet *packet);
	void (*received)(u64 now_ns, u32 flow, u32 bytes);
	void (*called)(u32 flow, const struct knee_called *call);
	u32 (*first_draw)(u32 flow);
	/* Not 0 after the run's end or failure. */
	int (*ended)(void);
	/* `flow` is KNEE_NO_FLOW if the failure is of no flow. */
	void (*fail)(u32 flow, const char *doing, int error);
	void (*finish)(void);
};
extern const struct knee_path *knee_path;

/* For the path. */
void knee_deliver(void *skb, u32 end, u32 marked);
void knee_drop(void *skb);
void knee_packet(void *skb, struct knee_packet *packet);
void knee_flow_start(u32 flow);
void knee_flow_write(u32 flow, u64 bytes);
void knee_flow_stop(u32 flow);
void knee_flow_state(u32 flow, struct knee_flow_state *state);
void knee_run_ended(void);

/* device.c */
int knee_devices(struct net_device *devices[2]);
void knee_start_clock(u64 zero_ns);
u64 knee_now_ns(void);

/* flow.c */
int knee_flows(struct net *nets[2], u32 flows);
void knee_flows_run(void);
/* The flow of a socket. */
u32 knee_flow_of(const struct sock *sk);

/* sysctl.c */
int knee_sysctls(struct net *net, u32 end);

#endif
