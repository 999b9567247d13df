/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Module host: makes a tcp_congestion_ops of an algorithm's descriptor (host/native/knee/host.h).
 *
 *   kernel                             profile CLASSIC                        RATE
 *   init                               init                                   init
 *   pkts_acked                         on_rtt                                 -
 *   cong_avoid                         on_ack                                 -
 *   cong_control                       -                                      on_ack
 *   ssthresh                           ssthresh                               ssthresh
 *   cwnd_event, cwnd_event_tx_start    on_event                               on_event
 *   undo_cwnd                          undo                                   undo
 */
#ifndef KNEE_SHIM_H
#define KNEE_SHIM_H

#include <net/tcp.h>

#include "knee/host.h"

/* Largest number of parameters of an algorithm. */
enum { KNEE_PARAMS_MAX = 64 };

/* A congestion control of the kernel: an algorithm with its parameters. */
struct knee_variant {
	struct tcp_congestion_ops ops;
	const struct cc_algorithm *algorithm;
	u32 params[KNEE_PARAMS_MAX];
};

/* The calls of an algorithm, numbered as in crates/knee-cc/src/call.rs. */
enum knee_call {
	KNEE_CALL_INIT = 0,
	KNEE_CALL_ON_RTT = 1,
	KNEE_CALL_ON_ACK = 2,
	KNEE_CALL_SSTHRESH = 3,
	KNEE_CALL_ON_EVENT = 4,
	KNEE_CALL_UNDO = 5,
};

/* A call of an algorithm, with all inputs and outputs. */
struct knee_called {
	u32 call; /* enum knee_call */
	u32 event;
	u32 result_pkts; /* of ssthresh and undo, before the shim bounds it */
	u32 state_bytes;
	struct cc_conn before;
	struct cc_conn after; /* as the algorithm left it, before the shim bounds it */
	struct cc_ack ack;
	u32 observed[CC_OBSERVE_N];
	u64 state[CC_STATE_MAX_BYTES / 8]; /* after the call; the rest is 0 */
};

/* Whoever uses the shim may set these before the first socket. */
struct knee_hooks {
	/* The first random number of a socket; null: the kernel's generator gives it. */
	u32 (*first_draw)(const struct sock *sk);
	/* Receives each call of a socket; null: nobody does. */
	void (*called)(const struct sock *sk, const struct knee_called *call);
};
extern struct knee_hooks knee_hooks;

/* Makes `variant` the algorithm `algorithm` with `params` and registers it as `name`. */
int knee_register(struct knee_variant *variant, const struct cc_algorithm *algorithm,
		  const char *name, const u32 *params, u32 n_params);

#endif
