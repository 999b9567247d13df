/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Layout of the structures that cross the language border, for the test that compares it with the
 * other side's declarations: for each structure size, alignment, number of fields, then offset and
 * size of each field.
 */
#include "knee/host.h"

#define FIELD(s, f) (unsigned)__builtin_offsetof(struct s, f), (unsigned)sizeof(((struct s *)0)->f)
#define WHOLE(s, n_fields) (unsigned)sizeof(struct s), (unsigned)_Alignof(struct s), n_fields

extern const unsigned knee_layout[];
extern const unsigned knee_layout_n;

const unsigned knee_layout[] = {
    WHOLE(cc_conn, 17),
    FIELD(cc_conn, now_us),
    FIELD(cc_conn, pacing_bytes_per_s),
    FIELD(cc_conn, cwnd_pkts),
    FIELD(cc_conn, cwnd_cnt),
    FIELD(cc_conn, ssthresh_pkts),
    FIELD(cc_conn, cwnd_max_pkts),
    FIELD(cc_conn, mss_bytes),
    FIELD(cc_conn, inflight_pkts),
    FIELD(cc_conn, outstanding_pkts),
    FIELD(cc_conn, srtt_us),
    FIELD(cc_conn, snd_pos),
    FIELD(cc_conn, ack_pos),
    FIELD(cc_conn, notes),
    FIELD(cc_conn, phase),
    FIELD(cc_conn, cwnd_limited),
    FIELD(cc_conn, app_limited),
    FIELD(cc_conn, reserved),
    WHOLE(cc_ack, 11),
    FIELD(cc_ack, delivered_pkts),
    FIELD(cc_ack, acked_pkts),
    FIELD(cc_ack, lost_pkts),
    FIELD(cc_ack, rtt_us),
    FIELD(cc_ack, random),
    FIELD(cc_ack, sample_pkts),
    FIELD(cc_ack, sample_us),
    FIELD(cc_ack, sample_prior_pkts),
    FIELD(cc_ack, prior_inflight_pkts),
    FIELD(cc_ack, sample_app_limited),
    FIELD(cc_ack, advanced_pkts),
    WHOLE(cc_param, 10),
    FIELD(cc_param, name),
    FIELD(cc_param, alias),
    FIELD(cc_param, choices),
    FIELD(cc_param, source),
    FIELD(cc_param, help),
    FIELD(cc_param, min),
    FIELD(cc_param, max),
    FIELD(cc_param, def),
    FIELD(cc_param, kind),
    FIELD(cc_param, index),
    WHOLE(cc_rule, 3),
    FIELD(cc_rule, left),
    FIELD(cc_rule, op),
    FIELD(cc_rule, right),
    WHOLE(cc_algorithm, 20),
    FIELD(cc_algorithm, name),
    FIELD(cc_algorithm, summary),
    FIELD(cc_algorithm, citation),
    FIELD(cc_algorithm, observes),
    FIELD(cc_algorithm, params),
    FIELD(cc_algorithm, rules),
    FIELD(cc_algorithm, n_params),
    FIELD(cc_algorithm, n_rules),
    FIELD(cc_algorithm, state_bytes),
    FIELD(cc_algorithm, uses_random),
    FIELD(cc_algorithm, profile),
    FIELD(cc_algorithm, contract),
    FIELD(cc_algorithm, init),
    FIELD(cc_algorithm, on_rtt),
    FIELD(cc_algorithm, on_ack),
    FIELD(cc_algorithm, ssthresh),
    FIELD(cc_algorithm, on_event),
    FIELD(cc_algorithm, undo),
    FIELD(cc_algorithm, observe),
    FIELD(cc_algorithm, violated),
};
const unsigned knee_layout_n = sizeof(knee_layout) / sizeof(knee_layout[0]);
