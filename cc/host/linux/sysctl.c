// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The sysctls that a scenario sets. There is no user space to write them: the functions that
 * handle writes to the files below /proc/sys/net/ipv4 get the values.
 */
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/version.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include "linux.h"

/* The sysctls that both ends share: their files are not those of a namespace. */
static const struct ctl_table knee_shared[] = {
    {
	.procname = "tcp_mem",
	.data = &sysctl_tcp_mem,
	.maxlen = sizeof(sysctl_tcp_mem),
	.mode = 0644,
	.proc_handler = proc_doulongvec_minmax,
    },
    {
	.procname = "tcp_max_orphans",
	.data = &sysctl_tcp_max_orphans,
	.maxlen = sizeof(int),
	.mode = 0644,
	.proc_handler = proc_dointvec,
    },
};

/* Entries of a namespace's table; before Linux 6.6 its last one has no name. */
static int knee_entries(const struct ctl_table_header *header)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	return header->ctl_table_size;
#else
	int entries = 0;

	while (header->ctl_table[entries].procname)
		entries++;
	return entries;
#endif
}

static int knee_write_sysctl(const struct ctl_table *entry, char *value)
{
	/* The handler's type has no `const` before Linux 6.11. */
	struct ctl_table *table = (struct ctl_table *)entry;
	size_t bytes = strlen(value);
	loff_t at = 0;

	return entry->mode & 0222 ? entry->proc_handler(table, 1, value, &bytes, &at) : -EPERM;
}

static int knee_set_sysctl(struct net *net, struct knee_sysctl *sysctl)
{
	const struct ctl_table_header *header = net->ipv4.ipv4_hdr;
	int entries = knee_entries(header);
	int i;

	for (i = 0; i < entries; i++)
		if (header->ctl_table[i].procname &&
		    !strcmp(header->ctl_table[i].procname, sysctl->name))
			return knee_write_sysctl(&header->ctl_table[i], sysctl->value);
	for (i = 0; i < (int)ARRAY_SIZE(knee_shared); i++)
		if (!strcmp(knee_shared[i].procname, sysctl->name))
			return knee_write_sysctl(&knee_shared[i], sysctl->value);
	return -ENOENT;
}

int knee_sysctls(struct net *net, u32 end)
{
	struct knee_sysctl *sysctl = kzalloc(sizeof(*sysctl), GFP_KERNEL);
	int error = sysctl ? 0 : -ENOMEM;
	u32 index;

	for (index = 0; !error && knee_path->sysctl(end, index, sysctl); index++) {
		error = knee_set_sysctl(net, sysctl);
		if (error)
			knee_path->refuse(sysctl, error);
	}
	kfree(sysctl);
	return error;
}
