// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The applications: sockets that write and read as soon as they can. Rust says what a flow is to
 * do; process 1 does it, at the same instant.
 */
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <net/tcp.h>

#include "linux.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define KNEE_SOCKADDR(address) ((struct sockaddr_unsized *)(address))
#else
#define KNEE_SOCKADDR(address) ((struct sockaddr *)(address))
#endif

/* Most bytes that are written or read at once. */
enum { KNEE_CHUNK_BYTES = 64 << 10 };
/* Send buffer of a socket. The kernel would make it twice the window: without SACK that is full
 * while a recovery waits for its second repair, and the sender stops for want of data. */
enum { KNEE_SEND_BUFFER_BYTES = 128 << 20 };
/* Unsent bytes that a socket holds at most. */
enum { KNEE_UNSENT_BYTES = 256 << 10 };
/* After so many bytes a segment of full size has arrived. Until then the window is no larger than
 * the one that the kernel opens a connection with. */
enum { KNEE_FIRST_WINDOW_BYTES = 64 << 10 };

struct knee_flow {
	struct list_head ready; /* in knee_ready, or empty */
	struct socket *listener, *sender, *receiver;
	struct knee_flow_terms terms;
	u64 pending_bytes; /* KNEE_NEVER: without end */
	u64 read_bytes;
	u32 timeouts;
	u8 start, connecting, stop, closed;
};

static struct knee_flow *knee_flow;
static u32 knee_flow_n;
static LIST_HEAD(knee_ready);
static DECLARE_WAIT_QUEUE_HEAD(knee_wait);
static char *knee_bytes;

u32 knee_flow_of(const struct sock *sk)
{
	return (u32)inet_sk(sk)->inet_num - KNEE_FIRST_PORT;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
static u32 knee_timeouts(const struct knee_flow *f)
{
	return tcp_sk(f->sender->sk)->total_rto;
}

static void knee_count_timeouts(struct sock *sk)
{
}
#else
static u32 knee_timeouts(const struct knee_flow *f)
{
	return f->timeouts;
}

/* The kernel's own function of the timer. */
static void (*knee_kernel_timer)(struct timer_list *timer);

static void knee_retransmit(struct timer_list *timer)
{
	struct inet_connection_sock *icsk = from_timer(icsk, timer, icsk_retransmit_timer);
	struct sock *sk = &icsk->icsk_inet.sk;
	u32 before = icsk->icsk_retransmits;

	sock_hold(sk);
	knee_kernel_timer(timer);
	if (icsk->icsk_retransmits > before)
		knee_flow[knee_flow_of(sk)].timeouts++;
	sock_put(sk);
}

/* The kernel does not count a socket's timeouts. */
static void knee_count_timeouts(struct sock *sk)
{
	struct timer_list *timer = &inet_csk(sk)->icsk_retransmit_timer;

	knee_kernel_timer = timer->function;
	timer->function = knee_retransmit;
}
#endif

/* Process 1 is to look at a flow. */
static void knee_wake(u32 flow)
{
	unsigned long flags;

	if (flow >= knee_flow_n)
		return;
	local_irq_save(flags);
	if (list_empty(&knee_flow[flow].ready))
		list_add_tail(&knee_flow[flow].ready, &knee_ready);
	local_irq_restore(flags);
	wake_up(&knee_wait);
}

static void knee_woken(struct sock *sk)
{
	knee_wake(knee_flow_of(sk));
}

/* A sender has room. */
static void knee_room(struct sock *sk)
{
	struct socket *socket = sk->sk_socket;

	if (!socket || !sk_stream_is_writeable(sk))
		return;
	clear_bit(SOCK_NOSPACE, &socket->flags);
	knee_woken(sk);
}

void knee_flow_start(u32 flow)
{
	knee_flow[flow].start = 1;
	knee_wake(flow);
}

void knee_flow_write(u32 flow, u64 bytes)
{
	struct knee_flow *f = &knee_flow[flow];

	f->pending_bytes = bytes == KNEE_NEVER ? KNEE_NEVER : f->pending_bytes + bytes;
	knee_wake(flow);
}

void knee_flow_stop(u32 flow)
{
	knee_flow[flow].stop = 1;
	knee_wake(flow);
}

void knee_flow_state(u32 flow, struct knee_flow_state *state)
{
	const struct knee_flow *f = &knee_flow[flow];
	const struct tcp_sock *tp;

	*state = (struct knee_flow_state){0};
	if (!f->sender)
		return;
	tp = tcp_sk(f->sender->sk);
	*state = (struct knee_flow_state){
	    .connected = f->sender->sk->sk_state == TCP_ESTABLISHED,
	    .cwnd_pkts = tcp_snd_cwnd(tp),
	    .ssthresh_pkts = tp->snd_ssthresh,
	    .inflight_pkts = tcp_packets_in_flight(tp),
	    .srtt_us = tp->srtt_us >> 3,
	    .mss_bytes = tp->mss_cache,
	    .timeouts = knee_timeouts(f),
	    .idle = !f->pending_bytes && tp->snd_una == tp->write_seq,
	};
}

static int knee_option(struct socket *socket, int level, int option, int value)
{
	return socket->ops->setsockopt(socket, level, option, KERNEL_SOCKPTR(&value),
				       sizeof(value));
}

static int knee_clamp(struct knee_flow *f, struct socket *socket)
{
	return knee_option(socket, SOL_TCP, TCP_WINDOW_CLAMP,
			   (int)min_t(u64, f->terms.window_bytes, S32_MAX));
}

static struct sockaddr_in knee_address(u32 end, u32 flow)
{
	return (struct sockaddr_in){
	    .sin_family = AF_INET,
	    .sin_port = htons((u16)(KNEE_FIRST_PORT + flow)),
	    .sin_addr.s_addr = KNEE_ADDRESS(end, flow),
	};
}

static int knee_open_listener(struct knee_flow *f, u32 flow, struct net *net)
{
	struct sockaddr_in at = knee_address(!f->terms.reverse, flow);
	/* Twice, for the kernel's bookkeeping: the clamp is to be what limits. */
	u64 buffer_bytes = min_t(u64, 2 * f->terms.window_bytes, S32_MAX / 2);
	struct sock *sk;
	int error = sock_create_kern(net, AF_INET, SOCK_STREAM, IPPROTO_TCP, &f->listener);

	if (error)
		return error;
	sk = f->listener->sk;
	sk->sk_data_ready = knee_woken;
	sk->sk_state_change = knee_woken;
	WRITE_ONCE(sk->sk_rcvbuf, max_t(u64, buffer_bytes, SOCK_MIN_RCVBUF));
	sk->sk_userlocks |= SOCK_RCVBUF_LOCK;
	return knee_clamp(f, f->listener) ?:
	       kernel_bind(f->listener, KNEE_SOCKADDR(&at), sizeof(at)) ?:
	       kernel_listen(f->listener, 1);
}

static int knee_open_sender(struct knee_flow *f, u32 flow, struct net *net)
{
	struct sockaddr_in at = knee_address(f->terms.reverse, flow);
	struct sock *sk;
	int error = sock_create_kern(net, AF_INET, SOCK_STREAM, IPPROTO_TCP, &f->sender);

	if (error)
		return error;
	sk = f->sender->sk;
	knee_count_timeouts(sk);
	sk->sk_write_space = knee_room;
	sk->sk_state_change = knee_woken;
	sk->sk_error_report = knee_woken;
	WRITE_ONCE(sk->sk_sndbuf, KNEE_SEND_BUFFER_BYTES);
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
	/* It ends with a reset: unsent data stay unsent. */
	sock_no_linger(sk);
	return f->sender->ops->setsockopt(f->sender, SOL_TCP, TCP_CONGESTION,
					  KERNEL_SOCKPTR(f->terms.cc), strlen(f->terms.cc)) ?:
	       knee_option(f->sender, SOL_TCP, TCP_NOTSENT_LOWAT, KNEE_UNSENT_BYTES) ?:
	       kernel_bind(f->sender, KNEE_SOCKADDR(&at), sizeof(at));
}

int knee_flows(struct net *nets[2], u32 flows)
{
	u32 flow;

	knee_flow = kvcalloc(flows, sizeof(*knee_flow), GFP_KERNEL);
	knee_bytes = kzalloc(KNEE_CHUNK_BYTES, GFP_KERNEL);
	if (!knee_flow || !knee_bytes)
		return -ENOMEM;
	knee_flow_n = flows;
	for (flow = 0; flow < flows; flow++) {
		struct knee_flow *f = &knee_flow[flow];
		int error;

		INIT_LIST_HEAD(&f->ready);
		knee_path->flow(flow, &f->terms);
		if (!f->terms.tcp)
			continue;
		error = knee_open_listener(f, flow, nets[!f->terms.reverse]);
		if (error) {
			knee_path->fail(flow, "opening the receiver", error);
			return error;
		}
		error = knee_open_sender(f, flow, nets[f->terms.reverse]);
		if (error) {
			knee_path->fail(flow, "opening the sender", error);
			return error;
		}
	}
	return 0;
}

static int knee_connect(struct knee_flow *f, u32 flow)
{
	struct sockaddr_in to = knee_address(!f->terms.reverse, flow);
	int error = kernel_connect(f->sender, KNEE_SOCKADDR(&to), sizeof(to), O_NONBLOCK);

	return error == -EINPROGRESS ? 0 : error;
}

static int knee_write(struct knee_flow *f)
{
	while (f->pending_bytes) {
		size_t bytes = min_t(u64, f->pending_bytes, KNEE_CHUNK_BYTES);
		struct msghdr message = {.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL};
		struct kvec part = {knee_bytes, bytes};
		int written;

		if (!sk_stream_memory_free(f->sender->sk)) {
			set_bit(SOCK_NOSPACE, &f->sender->flags);
			return 0;
		}
		written = kernel_sendmsg(f->sender, &message, &part, 1, bytes);
		if (written == -EAGAIN)
			return 0;
		if (written < 0)
			return written;
		if (f->pending_bytes != KNEE_NEVER)
			f->pending_bytes -= (u32)written;
	}
	return 0;
}

static int knee_read(struct knee_flow *f, u32 flow)
{
	for (;;) {
		struct msghdr message = {.msg_flags = 0};
		struct kvec part = {knee_bytes, KNEE_CHUNK_BYTES};
		unsigned long flags;
		int read = kernel_recvmsg(f->receiver, &message, &part, 1, KNEE_CHUNK_BYTES,
					  MSG_DONTWAIT | MSG_TRUNC);

		if (read == -EAGAIN || read == 0 || read == -ECONNRESET)
			return 0;
		if (read < 0)
			return read;
		/* Linux 6.12, unlike 6.1, forgets the clamp when a larger segment than before has
		 * shown what memory segments take. */
		if (f->read_bytes < KNEE_FIRST_WINDOW_BYTES)
			knee_clamp(f, f->receiver);
		f->read_bytes += (u32)read;
		local_irq_save(flags);
		knee_path->received(knee_now_ns(), flow, (u32)read);
		local_irq_restore(flags);
	}
}

/* Takes a flow's next steps; `doing` names the step that failed. */
static int knee_act(struct knee_flow *f, u32 flow, const char **doing)
{
	int error = 0;

	if (f->closed || !f->sender)
		return 0;
	if (f->stop) {
		f->closed = 1;
		sock_release(f->sender);
		f->sender = NULL;
		return 0;
	}
	*doing = "connecting";
	if (f->start && !f->connecting) {
		f->connecting = 1;
		error = knee_connect(f, flow);
	}
	error = error ?: sock_error(f->sender->sk);
	if (error)
		return error;
	if (!f->receiver) {
		*doing = "accepting a connection";
		error = kernel_accept(f->listener, &f->receiver, O_NONBLOCK);
		if (error && error != -EAGAIN)
			return error;
	}
	*doing = "writing";
	if (f->sender->sk->sk_state == TCP_ESTABLISHED)
		error = knee_write(f);
	else
		error = 0;
	if (error)
		return error;
	*doing = "reading";
	return f->receiver ? knee_read(f, flow) : 0;
}

static struct knee_flow *knee_next(void)
{
	struct knee_flow *f;
	unsigned long flags;

	local_irq_save(flags);
	f = list_first_entry_or_null(&knee_ready, struct knee_flow, ready);
	if (f)
		list_del_init(&f->ready);
	local_irq_restore(flags);
	return f;
}

void knee_flows_run(void)
{
	struct knee_flow *f;

	while (!knee_path->ended()) {
		wait_event(knee_wait, !list_empty(&knee_ready) || knee_path->ended());
		while (!knee_path->ended() && (f = knee_next())) {
			u32 flow = (u32)(f - knee_flow);
			const char *doing = "";
			int error = knee_act(f, flow, &doing);

			if (error)
				knee_path->fail(flow, doing, error);
		}
	}
}

void knee_run_ended(void)
{
	wake_up(&knee_wait);
}
