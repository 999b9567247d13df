/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts of the kernel that the shim uses. Only names and kinds matter: the loader adjusts every
 * offset, those of bit-fields too, to the running kernel (CO-RE), so that one object fits many.
 */
#ifndef KNEE_KERNEL_H
#define KNEE_KERNEL_H

#include "knee/types.h"

/* libbpf's headers know the types by the kernel's names. */
typedef u8 __u8;
typedef unsigned short __u16, __be16;
typedef u32 __u32, __be32, __wsum;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define KNEE_INLINE static inline __attribute__((always_inline))
#define KNEE_CORE __attribute__((preserve_access_index))

struct in6_addr {
	u32 words[4]; /* network order */
};

struct sock_common {
	unsigned short skc_family;
	unsigned short skc_num;	  /* local port */
	unsigned short skc_dport; /* remote port, network order */
	u32 skc_rcv_saddr, skc_daddr;
	struct in6_addr skc_v6_rcv_saddr, skc_v6_daddr;
} KNEE_CORE;

struct sock {
	struct sock_common __sk_common;
	u64 sk_pacing_rate; /* bytes/s */
	u64 sk_max_pacing_rate;
	u32 sk_pacing_status;
} KNEE_CORE;

struct inet_sock {
	struct sock sk;
} KNEE_CORE;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_ca_state : 5;
	u8 icsk_ca_initialized : 1;
	u64 icsk_ca_priv[13];
} KNEE_CORE;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
	u32 delivered; /* packets, of the whole connection */
	u32 lost;      /* packets, of the whole connection; not lost_out */
	u32 snd_una, snd_nxt, write_seq;
	u32 srtt_us;	/* times 8 */
	u64 tcp_mstamp; /* microseconds */
	u64 bytes_acked;
	u8 is_cwnd_limited : 1;
} KNEE_CORE;

struct ack_sample {
	u32 pkts_acked; /* cumulatively, also those that SACK had told of */
	s32 rtt_us;
} KNEE_CORE;

struct rate_sample {
	u32 prior_delivered; /* packets, of the whole connection */
	s32 delivered;	     /* packets; negative: no sample */
	s64 interval_us;     /* negative: no sample */
	s64 rtt_us;	     /* negative: none */
	s32 losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u8 is_app_limited;
} KNEE_CORE;

/* sk_pacing_rate of a socket that is not paced, and of one without a limit. */
#define KNEE_UNPACED 0xffffffffffffffffULL

/* Values of sk_pacing_status (include/net/sock.h): who paces. */
enum knee_pacing {
	KNEE_PACING_NONE = 0,
	KNEE_PACING_NEEDED = 1, /* TCP, with a timer of its own */
};

/* UAPI-like: the numbers have not changed since they exist (include/net/tcp.h). */
enum knee_tcp_ca_event {
	KNEE_CA_EVENT_TX_START = 0,
	KNEE_CA_EVENT_CWND_RESTART = 1,
	KNEE_CA_EVENT_COMPLETE_CWR = 2,
	KNEE_CA_EVENT_LOSS = 3,
};

/* Any program may choose the algorithm, not only one with CAP_NET_ADMIN. */
#define KNEE_TCP_CONG_NON_RESTRICTED 1U

/*
 * Members are matched by name. A loader finds `name` and `cwnd_event_tx_start` in the object by
 * their place, the beginning. It removes the latter for kernels without it.
 */
struct tcp_congestion_ops {
	char name[16];
	void (*cwnd_event_tx_start)(struct sock *sk);
	u32 flags;
	void (*init)(struct sock *sk);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *sample);
	u32 (*ssthresh)(struct sock *sk);
	void (*cwnd_event)(struct sock *sk, int event);
	u32 (*undo_cwnd)(struct sock *sk);
};

/* The kernel's type where it has this member, as in Linux 7.2: CA_EVENT_TX_START is then no event
 * of cwnd_event. The part of a name behind ___ tells types of one name in the kernel apart. */
struct tcp_congestion_ops___tx_start {
	void (*cwnd_event_tx_start)(struct sock *sk);
} KNEE_CORE;

/* Constants of include/uapi/linux/bpf.h, which libbpf does not ship. */
enum { BPF_MAP_TYPE_ARRAY_OF_MAPS = 12, BPF_MAP_TYPE_RINGBUF = 27, BPF_RB_NO_WAKEUP = 1 };
enum { KNEE_AF_INET6 = 10 };
/* ::ffff:0:0/96, third word, in network order. */
#define KNEE_MAPPED __builtin_bswap32(0xffffU)

/*
 * A bit-field, unsigned: the storage unit's place and width and the shifts come from the loader.
 * libbpf's BPF_CORE_READ_BITFIELD does it for signed ones too, and reads each field again; with it
 * the programs are an eighth larger.
 */
#define KNEE_BITS(object, field)                                                                  \
	({                                                                                         \
		const u8 *unit = (const u8 *)(object) +                                            \
				 __builtin_preserve_field_info((object)->field,                    \
							       BPF_FIELD_BYTE_OFFSET);             \
		u64 bits = 0;                                                                      \
                                                                                                   \
		__asm__("" : "+r"(unit));                                                          \
		switch (__builtin_preserve_field_info((object)->field, BPF_FIELD_BYTE_SIZE)) {     \
		case 1:                                                                            \
			bits = *unit;                                                              \
			break;                                                                     \
		case 2:                                                                            \
			bits = *(const unsigned short *)unit;                                      \
			break;                                                                     \
		case 4:                                                                            \
			bits = *(const u32 *)unit;                                                 \
			break;                                                                     \
		case 8:                                                                            \
			bits = *(const u64 *)unit;                                                 \
			break;                                                                     \
		}                                                                                  \
		bits <<= __builtin_preserve_field_info((object)->field, BPF_FIELD_LSHIFT_U64);     \
		bits >> __builtin_preserve_field_info((object)->field, BPF_FIELD_RSHIFT_U64);      \
	})

#endif
