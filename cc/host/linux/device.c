// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The devices of both ends. Their packets enter Knee's path; a timer fires when something on the
 * path is due.
 */
#include <linux/hrtimer.h>
#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <linux/version.h>
#include <net/inet_ecn.h>

#include "linux.h"

static struct net_device *knee_device[2];
static struct hrtimer knee_timer;
static u64 knee_zero_ns = KNEE_NEVER;
static u64 knee_due_ns = KNEE_NEVER;

u64 knee_now_ns(void)
{
	return ktime_get_ns() - knee_zero_ns;
}

static void knee_arm(u64 due_ns)
{
	if (due_ns == knee_due_ns)
		return;
	knee_due_ns = due_ns;
	if (due_ns == KNEE_NEVER)
		hrtimer_try_to_cancel(&knee_timer);
	else
		hrtimer_start(&knee_timer, ns_to_ktime(knee_zero_ns + due_ns), HRTIMER_MODE_ABS);
}

static enum hrtimer_restart knee_fire(struct hrtimer *timer)
{
	knee_due_ns = knee_path->advance(knee_now_ns());
	if (knee_due_ns == KNEE_NEVER)
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(knee_zero_ns + knee_due_ns));
	return HRTIMER_RESTART;
}

/* The run's time 0. */
void knee_start_clock(u64 zero_ns)
{
	unsigned long flags;

	local_irq_save(flags);
	knee_zero_ns = zero_ns;
	hrtimer_start(&knee_timer, ns_to_ktime(zero_ns), HRTIMER_MODE_ABS);
	knee_due_ns = 0;
	local_irq_restore(flags);
}

void knee_deliver(void *packet, u32 end, u32 marked)
{
	struct sk_buff *skb = packet;

	if (marked)
		INET_ECN_set_ce(skb);
	skb_scrub_packet(skb, true);
	skb->dev = knee_device[end];
	skb->protocol = htons(ETH_P_IP);
	skb->pkt_type = PACKET_HOST;
	netif_rx(skb);
}

void knee_drop(void *packet)
{
	dev_kfree_skb_any(packet);
}

void knee_packet(void *packet, struct knee_packet *of)
{
	const struct sk_buff *skb = packet;

	*of = (struct knee_packet){
	    .skb = packet,
	    .headers = skb->data,
	    .headers_bytes = skb_headlen(skb),
	    .bytes = skb->len,
	};
}

static netdev_tx_t knee_send(struct sk_buff *skb, struct net_device *device)
{
	struct knee_packet packet;
	unsigned long flags;

	if (knee_zero_ns == KNEE_NEVER) {
		knee_drop(skb);
		return NETDEV_TX_OK;
	}
	/* It has left the machine: TCP may send it again. */
	skb_orphan(skb);
	knee_packet(skb, &packet);
	local_irq_save(flags);
	knee_arm(knee_path->send(knee_now_ns(), device == knee_device[1], &packet));
	local_irq_restore(flags);
	return NETDEV_TX_OK;
}

static const struct net_device_ops knee_device_ops = {.ndo_start_xmit = knee_send};

static void knee_set_up(struct net_device *device)
{
	device->netdev_ops = &knee_device_ops;
	device->type = ARPHRD_NONE;
	device->flags = IFF_POINTOPOINT | IFF_NOARP;
	device->priv_flags |= IFF_NO_QUEUE;
	device->min_mtu = 68;
	device->max_mtu = 65535;
	device->mtu = 1500;
	/* Checksums are of no use; whole segments are cut before they come here. */
	device->features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA;
	device->hw_features = device->features;
	device->needs_free_netdev = true;
}

int knee_devices(struct net_device *devices[2])
{
	u32 end;
	int error;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup(&knee_timer, knee_fire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(&knee_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	knee_timer.function = knee_fire;
#endif
	for (end = 0; end < 2; end++) {
		knee_device[end] = alloc_netdev(0, "end%d", NET_NAME_ENUM, knee_set_up);
		if (!knee_device[end])
			return -ENOMEM;
		error = register_netdev(knee_device[end]);
		if (error)
			return error;
		devices[end] = knee_device[end];
	}
	return 0;
}
