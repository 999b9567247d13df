//! `on_rtt` and `on_ack` in one call do what the two do.

use knee_cc::{Ack, Conn, Controller, Params, Profile, algorithms};

/// A window that grows to 60 packets and is then the limit, RTTs of 40 to 140 ms.
fn conn() -> Conn {
    Conn {
        mss_bytes: 1448,
        cwnd_pkts: 10,
        cwnd_max_pkts: 60,
        ssthresh_pkts: 30,
        cwnd_limited: 1,
        ..Conn::default()
    }
}

#[test]
fn both_at_once_are_the_one_and_the_other() {
    let mut seen_notes = 0;
    for &algorithm in algorithms() {
        let (mut apart, mut at_once) = (conn(), conn());
        let mut first = Controller::new(Params::defaults(algorithm), &mut apart);
        let mut second = Controller::new(Params::defaults(algorithm), &mut at_once);
        for number in 1..=5000_u32 {
            for conn in [&mut apart, &mut at_once] {
                conn.now_us += 4000;
                conn.outstanding_pkts = conn.cwnd_pkts;
                conn.inflight_pkts = conn.cwnd_pkts;
                conn.srtt_us = 60_000;
                conn.ack_pos = number;
                conn.snd_pos = number + conn.cwnd_pkts;
            }
            let ack = Ack {
                delivered_pkts: number.into(),
                acked_pkts: 1,
                rtt_us: 40_000 + (number / 7 % 100 * 1000) as i32,
                random: number.wrapping_mul(0x9e37_79b9),
                advanced_pkts: 1,
                ..Ack::default()
            };
            let mut given = ack;
            let Some(notes) = second.on_rtt_and_ack(&mut at_once, &mut given) else {
                assert_eq!(algorithm.profile(), Profile::Rate, "{}", algorithm.name());
                break;
            };
            first.on_rtt(&mut apart, &ack);
            assert_eq!(notes, apart.notes, "{}: notes of on_rtt", algorithm.name());
            let ack = Ack { advanced_pkts: 0, ..ack };
            first.on_ack(&mut apart, &ack);
            assert_eq!((at_once, given), (apart, ack), "{}, ACK {number}", algorithm.name());
            assert_eq!(first.state(), second.state(), "{}, ACK {number}", algorithm.name());
            seen_notes |= notes | at_once.notes;
        }
    }
    let all = knee_cc::NOTE_ROUND | knee_cc::NOTE_DELAY_BACKOFF;
    assert_eq!(seen_notes & all, all, "rounds ended, and some backed off");
}
