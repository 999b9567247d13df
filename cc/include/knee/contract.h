/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The contract between an algorithm and its host (simulator, Linux kernel, QUIC).
 *
 * An algorithm is a set of pure functions of (connection view, own state, parameters, event). It
 * reads no clock, draws no random number, allocates nothing, and keeps no pointer. The host clears
 * the state, all its bytes, and calls init; then it calls in Linux's order, for every
 * acknowledgement that reaches the sender:
 *
 *   1. on_rtt     in every phase; carries the RTT sample if the ACK gave one;
 *   2. ssthresh   if the ACK (or a timer) makes the stack enter recovery; after an expired
 *                 retransmission timer, on_event(CC_EVENT_RTO) follows it at once. Once per window:
 *                 a timer that expires in recovery, or again, causes neither;
 *   3. on_event(CC_EVENT_RECOVERED) if the ACK ends recovery;
 *   4. on_ack     only where the stack may grow the window: not in CC_RECOVERY or CC_CWR.
 *
 * Profile CLASSIC: the stack owns loss detection, retransmission, the window during recovery and
 * the collapse to one packet after a retransmission timeout. The algorithm owns growth and
 * ssthresh, and may write cwnd and ssthresh in on_rtt, on_ack and on_event.
 *
 * Profile RATE: the stack owns loss detection, retransmission and the collapse after a timeout; the
 * algorithm owns the window in every phase, and pacing. Calls 1 and 3 above are not made;
 * 4 is made for every acknowledgement, in every phase, with all that is known of it: RTT sample,
 * losses, delivery rate sample. cc_conn.phase shows when a recovery has ended. The window is not
 * restarted after idle times: there is no CC_EVENT_CWND_RESTART.
 */
#ifndef KNEE_CONTRACT_H
#define KNEE_CONTRACT_H

#include "knee/types.h"
#include "knee/fixed.h"

/* Changes with every change of the structures and rules below that an algorithm would notice. */
#define CC_CONTRACT_VERSION 1U

/* Numbered as Linux numbers icsk_ca_state. */
enum cc_phase {
	CC_OPEN = 0,	 /* nothing suspicious */
	CC_DISORDER = 1, /* duplicate ACKs or SACKs, no loss inferred yet */
	CC_CWR = 2,	 /* window being reduced for a congestion mark */
	CC_RECOVERY = 3, /* fast recovery */
	CC_LOSS = 4, /* after a retransmission timeout, until the data then outstanding is ACKed */
};

enum cc_event {
	CC_EVENT_TX_START = 0,	   /* first transmission after everything was acknowledged */
	CC_EVENT_CWND_RESTART = 1, /* idle for longer than the RTO: the stack restarted cwnd */
	CC_EVENT_RECOVERED = 2,	   /* recovery ended, cwnd is as the stack left it */
	CC_EVENT_RTO = 3, /* timeout: ssthresh() was just called; the stack then sets cwnd = 1 */
};

/* Reports of an algorithm to the host's logs, in cc_conn.notes; no effect on behaviour. */
#define CC_NOTE_ROUND 0x01U	     /* a marked-packet round ended */
#define CC_NOTE_DELAY_BACKOFF 0x02U  /* cwnd was reduced because of delay */
#define CC_NOTE_REGION_B 0x04U	     /* the delay that decided lay in region B */
#define CC_NOTE_LOSS_TOLERATED 0x08U /* ssthresh() left the window unchanged */

/* "No threshold yet": ssthresh of a connection that has seen no congestion. */
#define CC_SSTHRESH_INFINITE 0x7fffffffU
/* Smallest window after a reduction, packets (RFC 5681 section 3.1 eq. 4). */
#define CC_CWND_FLOOR_PKTS 2U

/*
 * Bounds of a host's values; a host clamps its stack's values to them. Where none is given, here
 * or at the field, any value is possible. Within these bounds no arithmetic of an algorithm
 * overflows its type: docs/explanation/proof.md.
 */
#define CC_CWND_MAX_PKTS (1U << 30)
#define CC_NOW_MAX_US (1ULL << 62)
#define CC_DELIVERED_MAX_PKTS (1ULL << 62)
#define CC_MSS_MAX_BYTES 65535U
/* Also a bound of the pacing rates that an algorithm requests. */
#define CC_PACING_MAX_BYTES_PER_S (1ULL << 62)

/* The connection as the algorithm sees it: 64 bytes. (in), (out): who writes. */
struct cc_conn {
	u64 now_us;		/* in: host clock at this event, at most CC_NOW_MAX_US */
	u64 pacing_bytes_per_s; /* in/out, profile RATE: payload bytes/s, at most
				   CC_PACING_MAX_BYTES_PER_S; 0 = no pacing, and at first */
	u32 cwnd_pkts;		/* in/out: 1 ... cwnd_max_pkts */
	u32 cwnd_cnt;		/* in/out: packets acknowledged, counted towards the next +1 */
	u32 ssthresh_pkts;	/* in/out: 2 ... CC_SSTHRESH_INFINITE, which it is at first */
	u32 cwnd_max_pkts;	/* in: largest window that the host accepts, 2 ...
				   CC_CWND_MAX_PKTS */
	u32 mss_bytes;		/* in: payload of a full packet, 1 ... CC_MSS_MAX_BYTES */
	u32 inflight_pkts;	/* in: estimate of packets in the network */
	u32 outstanding_pkts;	/* in: sent and not cumulatively acknowledged */
	u32 srtt_us;		/* in: smoothed RTT (RFC 6298), 0 = none */
	u32 snd_pos;		/* in: next new position to be sent; wraps */
	u32 ack_pos;		/* in: first position not cumulatively acknowledged; wraps */
	u32 notes;		/* out: CC_NOTE_*, cleared by the host before each call */
	u8 phase;		/* in: enum cc_phase */
	u8 cwnd_limited;	/* in: the window, not the application, limited sending */
	u8 app_limited;		/* in: the application had nothing to send */
	u8 reserved;
};
_Static_assert(sizeof(struct cc_conn) == 64, "cc_conn is one cache line");

/* One acknowledgement. The delivery rate sample (draft-ietf-ccwg-bbr, section 4.1.2) is of the
 * packet sent latest among those that this ACK newly acknowledges; profile CLASSIC: all 0. */
struct cc_ack {
	u64 delivered_pkts; /* total on this connection so far, at most CC_DELIVERED_MAX_PKTS */
	u32 acked_pkts;	    /* newly delivered by this ACK (cumulative or selective) */
	u32 lost_pkts;	    /* newly marked lost by this ACK */
	s32 rtt_us;	    /* RTT sample, never of a retransmitted packet; -1: none */
	u32 random;	    /* 32 uniform random bits, fresh for each ACK */
	u32 sample_pkts;    /* delivered from that packet's sending to this ACK */
	u32 sample_us; /* the longer of the times to send and to acknowledge them; 0: no sample,
			* also where it is shorter than the minimum RTT */
	u32 sample_prior_pkts;	 /* delivered_pkts when that packet was sent; wraps */
	u32 prior_inflight_pkts; /* packets in the network before this ACK */
	u32 sample_app_limited;	 /* the application, not the window, limited sending: 0 or 1 */
	u32 advanced_pkts; /* by how many packets ack_pos has moved: 0 of a duplicate; in on_rtt
			    * only, else 0 */
};
_Static_assert(sizeof(struct cc_ack) == 48, "cc_ack layout");

/* State of this size fits the socket itself: the 104 bytes of Linux's icsk_ca_priv, of which the
 * host uses 16. */
#define CC_STATE_MAX_BYTES 88

/* The owner of the window, above. KNEE_ALGORITHM makes a CLASSIC one, KNEE_RATE_ALGORITHM, with the
 * same arguments and no on_rtt, a RATE one. */
enum cc_profile { CC_CLASSIC = 0, CC_RATE = 1 };

/* Argument of KNEE_ALGORITHM: whether the host draws cc_ack.random, or leaves 0. */
enum { CC_NO_RANDOM = 0, CC_USES_RANDOM = 1 };

/* Four values worth plotting; their meaning is named in KNEE_ALGORITHM. */
#define CC_OBSERVE_N 4

/*
 * Parameters. An algorithm lists them once, as an X-macro of
 *
 *   X(kind, field, name, alias, min, max, def, choices, source, help)
 *
 * from which come the structure below (one u32 per parameter, in order), the native table with
 * which every host validates, and the help text. `alias` is FreeBSD's name where it has one.
 * Cross-field rules are an X-macro of R(left field, operator, right field).
 */
enum cc_param_kind {
	CC_TIME_US = 0,	   /* microseconds */
	CC_PKTS = 1,	   /* packets */
	CC_PROB_PPM = 2,   /* probability, parts per million */
	CC_CHOICE = 3,	   /* index into `choices`, a list separated by '|' */
	CC_NUMBER_PPM = 4, /* number without unit, parts per million */
	CC_COUNT = 5,	   /* whole number without unit */
};

enum cc_rule_op {
	CC_LESS_THAN = 0,	  /* left < right */
	CC_ZERO_OR_MORE_THAN = 1, /* left = 0 or left > right */
};

#define CC_PARAM_FIELD(kind, field, name, alias, min, max, def, choices, source, help) u32 field;
#define CC_PARAMS_STRUCT(alg, PARAMS)                                                             \
	struct alg##_params {                                                                      \
		PARAMS(CC_PARAM_FIELD)                                                             \
	}

/*
 * Invariants. They hold of the state after init and after every call, whatever the host passes
 * within the bounds above and in whatever order it calls. An algorithm lists them at its state, as
 * an X-macro of
 *
 *   X(name, condition)
 *
 * in whose conditions `st` is the state and `p` the parameters; nothing where every field may take
 * any value of its type. The proof, the tests and the fuzzer check them; programs for a kernel do
 * not contain them.
 */
#define CC_AT_MOST(X, field, most) X(field, st->field <= (most))
#define CC_WITHIN(X, field, least, most) X(field, st->field >= (least) && st->field <= (most))

#endif
