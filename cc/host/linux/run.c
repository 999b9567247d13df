// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A run, from the kernel's start to its end. There is no user space: process 1 never leaves the
 * kernel.
 */
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/reboot.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/ip_fib.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
#include <init.h>
#include <os.h>

#include "knee/shim.h"
#include "linux.h"

/* Largest memory of all sockets, and of one, for buffers that have no fixed size. */
enum { KNEE_SOCKETS_PAGES = 1 << 20, KNEE_SOCKET_BYTES = 1 << 30 };

static u64 knee_seed;

/* Randomness of the kernel: from the seed alone. The kernel's build calls it (edit.sh). */
long knee_random(void *to, unsigned long bytes, unsigned int flags);
long knee_random(void *to, unsigned long bytes, unsigned int flags)
{
	u8 *at = to;
	unsigned long i;

	for (i = 0; i < bytes; i++) {
		u64 mixed;

		/* SplitMix64. */
		if (i % 8 == 0)
			knee_seed += 0x9e3779b97f4a7c15ULL;
		mixed = knee_seed;
		mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
		mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
		mixed ^= mixed >> 31;
		at[i] = (u8)(mixed >> (i % 8 * 8));
	}
	return (long)bytes;
}

static int __init knee_seed_setup(char *text, int *add)
{
	*add = 0;
	return kstrtou64(text, 10, &knee_seed) ? 1 : 0;
}
__uml_setup("knee_seed=", knee_seed_setup,
	    "knee_seed=NUMBER\n    The seed of all randomness in the kernel.\n\n");

/* Functions of the process that the kernel is. */
void *dlopen(const char *file, int flags);
void *dlsym(void *library, const char *name);
char *dlerror(void);
void exit(int code) __noreturn;
enum { KNEE_RTLD_NOW = 2 };

const struct knee_path *knee_path;

static const struct knee_kernel knee_kernel = {
    .deliver = knee_deliver,
    .drop = knee_drop,
    .packet = knee_packet,
    .flow_start = knee_flow_start,
    .flow_write = knee_flow_write,
    .flow_stop = knee_flow_stop,
    .flow_state = knee_flow_state,
    .run_ended = knee_run_ended,
};

/* The kernel has not started: this runs on the stack of an ordinary process. */
static int __init knee_path_setup(char *file, int *add)
{
	void *library = dlopen(file, KNEE_RTLD_NOW);

	*add = 0;
	if (library)
		knee_path = dlsym(library, "knee_path");
	if (!knee_path) {
		os_warn("cannot load Knee's path: %s\n", dlerror());
		exit(1);
	}
	if (knee_path->read())
		exit(1);
	return 0;
}
__uml_setup("knee_path=", knee_path_setup,
	    "knee_path=FILE\n    The shared library with Knee's path.\n\n");

static void knee_metric(struct nlattr **at, int type, u32 value)
{
	(*at)->nla_type = (u16)type;
	(*at)->nla_len = nla_attr_size(sizeof(value));
	memcpy(nla_data(*at), &value, sizeof(value));
	*at = (struct nlattr *)((char *)*at + nla_total_size(sizeof(value)));
}

static int knee_route(struct net *net, const struct net_device *device, u8 type, __be32 to, u8 bits,
		      struct nlattr *metrics, int metrics_bytes)
{
	int local = type == RTN_LOCAL;
	u32 id = local ? RT_TABLE_LOCAL : RT_TABLE_MAIN;
	struct fib_config config = {
	    .fc_dst_len = bits,
	    .fc_protocol = RTPROT_STATIC,
	    .fc_scope = local ? RT_SCOPE_HOST : RT_SCOPE_LINK,
	    .fc_type = type,
	    .fc_table = id,
	    .fc_dst = to,
	    .fc_oif = device->ifindex,
	    .fc_nlflags = NLM_F_CREATE | NLM_F_EXCL,
	    .fc_mx = metrics,
	    .fc_mx_len = metrics_bytes,
	    .fc_nlinfo.nl_net = net,
	};
	struct fib_table *table = fib_new_table(net, id);

	return table ? fib_table_insert(net, table, &config, NULL) : -ENOBUFS;
}

/* A flow's own route from an end: with it go its window, timer and acknowledgement settings. */
static int knee_flow_route(struct net *net, const struct net_device *device, u32 end, u32 flow)
{
	struct nlattr room[16];
	struct nlattr *at = room;
	struct knee_flow_terms terms;

	knee_path->flow(flow, &terms);
	if (!terms.tcp)
		return 0;
	memset(room, 0, sizeof(room));
	knee_metric(&at, RTAX_MTU, terms.packet_bytes);
	if (end == terms.reverse) {
		knee_metric(&at, RTAX_INITCWND, terms.initial_window_pkts);
		/* The kernel heeds this one only if it is locked. */
		knee_metric(&at, RTAX_LOCK, 1U << RTAX_RTO_MIN);
		knee_metric(&at, RTAX_RTO_MIN, terms.rto_min_ms);
	} else if (terms.ack_each) {
		knee_metric(&at, RTAX_QUICKACK, 1);
	}
	return knee_route(net, device, RTN_UNICAST, KNEE_ADDRESS(!end, flow), 32, room,
			  (int)((char *)at - (char *)room));
}

static void knee_settings(struct net *net, const struct knee_stack *stack)
{
	net->ipv4.sysctl_tcp_sack = (u8)stack->sack;
	net->ipv4.sysctl_tcp_timestamps = (u8)stack->timestamps;
	net->ipv4.sysctl_tcp_slow_start_after_idle = (u8)stack->idle_restart;
	net->ipv4.sysctl_tcp_ecn = (u8)stack->ecn;
	/* A flow starts from nothing, whatever an earlier one found out. */
	net->ipv4.sysctl_tcp_nometrics_save = 1;
	net->ipv4.sysctl_tcp_rmem[2] = KNEE_SOCKET_BYTES;
	net->ipv4.sysctl_tcp_wmem[2] = KNEE_SOCKET_BYTES;
}

static int knee_end(struct net **net, struct net_device *device, u32 end,
		    const struct knee_stack *stack)
{
	u32 flow;
	int error;

	*net = copy_net_ns(CLONE_NEWNET, &init_user_ns, &init_net);
	if (IS_ERR(*net))
		return PTR_ERR(*net);
	knee_settings(*net, stack);
	error = knee_sysctls(*net, end);
	if (error)
		return error;
	rtnl_lock();
	error = dev_change_net_namespace(device, *net, NULL) ?:
		dev_set_mtu(device, (int)stack->mtu_bytes) ?:
		dev_change_flags((*net)->loopback_dev, (*net)->loopback_dev->flags | IFF_UP, NULL) ?:
		dev_change_flags(device, device->flags | IFF_UP, NULL) ?:
		knee_route(*net, (*net)->loopback_dev, RTN_LOCAL, KNEE_ADDRESS(end, -1U), 16, NULL,
			   0);
	for (flow = 0; flow < stack->flows && !error; flow++)
		error = knee_flow_route(*net, device, end, flow);
	rtnl_unlock();
	return error;
}

static int knee_variants(u32 n)
{
	struct knee_variant *variants = kvcalloc(n, sizeof(*variants), GFP_KERNEL);
	struct knee_variant_terms *terms = kzalloc(sizeof(*terms), GFP_KERNEL);
	u32 i;
	int error = variants && terms ? 0 : -ENOMEM;

	for (i = 0; i < n && !error; i++) {
		knee_path->variant(i, terms);
		error = knee_register(&variants[i], terms->algorithm, terms->name, terms->params,
				      terms->n_params);
	}
	kfree(terms);
	return error;
}

static u32 knee_first_draw(const struct sock *sk)
{
	return knee_path->first_draw(knee_flow_of(sk));
}

static void knee_call(const struct sock *sk, const struct knee_called *call)
{
	unsigned long flags;

	local_irq_save(flags);
	knee_path->called(knee_flow_of(sk), call);
	local_irq_restore(flags);
}

static void knee_run(void)
{
	struct net_device *devices[2];
	struct net *nets[2];
	struct knee_stack stack;
	u64 tick_ns = NSEC_PER_SEC / HZ;
	u64 zero_ns;
	u32 end;
	int error;

	knee_path->open(&knee_kernel, &stack);
	sysctl_tcp_mem[0] = sysctl_tcp_mem[1] = sysctl_tcp_mem[2] = KNEE_SOCKETS_PAGES;
	knee_hooks.first_draw = knee_first_draw;
	knee_hooks.called = knee_call;
	error = knee_variants(stack.variants) ?: knee_devices(devices);
	for (end = 0; end < 2 && !error; end++)
		error = knee_end(&nets[end], devices[end], end, &stack);
	if (error) {
		knee_path->fail(KNEE_NO_FLOW, "setting the kernel up", error);
		return;
	}
	if (knee_flows(nets, stack.flows))
		return;
	/* Until the timers have switched to high resolution the first event is late: one tick, and
	 * one more for timers of the set-up. */
	zero_ns = (div64_u64(ktime_get_ns(), tick_ns) + 3) * tick_ns + stack.zero_after_ns;
	msleep(8);
	knee_start_clock(zero_ns);
	knee_flows_run();
	knee_path->finish();
}

static int __init knee_begin(void)
{
	if (knee_path)
		knee_run();
	kernel_power_off();
	return 0;
}
late_initcall_sync(knee_begin);
