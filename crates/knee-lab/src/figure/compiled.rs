//! Drawings and quantities of the compiled algorithms that need no run.

use knee_cc::{
    Ack, Conn, Controller, NOTE_DELAY_BACKOFF, ParamError, Params, SSTHRESH_INFINITE, algorithm,
};
use knee_report::chart::{Axis, Chart, Series, Span, Style};

/// Base RTT of the scripts below, microseconds.
const BASE_US: i32 = 40_000;

fn params(name: &str, given: &[(&str, u64)]) -> Result<Params, ParamError> {
    let found = algorithm(name).ok_or_else(|| ParamError::Unknown {
        algorithm: "registry",
        name: name.to_owned(),
        known: String::new(),
    })?;
    Params::new(found, given.iter().copied())
}

fn connection() -> Conn {
    Conn {
        cwnd_pkts: 20,
        ssthresh_pkts: 2,
        cwnd_max_pkts: 1 << 20,
        mss_bytes: 1448,
        cwnd_limited: 1,
        ..Conn::default()
    }
}

/// Fig. 1: g(q) as HD's compiled code observes it, with a largest observed delay of 100 ms.
pub(super) fn backoff_probability() -> Result<Chart, ParamError> {
    let mut conn = connection();
    let mut hd = Controller::new(params("hd", &[])?, &mut conn);
    let (qmax_us, pmax) = (100_000, 0.02);
    hd.on_rtt(&mut conn, &sample(BASE_US));
    hd.on_rtt(&mut conn, &sample(BASE_US + qmax_us));
    let points = (0..=qmax_us + 20_000).step_by(500).map(|q_us| {
        // Beyond the largest delay a sample would move it: there g is 0 by definition.
        let g = if q_us > qmax_us {
            0.0
        } else {
            hd.on_rtt(&mut conn, &sample(BASE_US + q_us));
            f64::from(hd.observe()[2]) / 1e6 / pmax
        };
        (f64::from(q_us) / 1e3, g)
    });
    let span = |from, to, label: &str| Span { from, to, label: label.to_owned() };
    Ok(Chart {
        title: "Backoff probability g(q) / pmax".to_owned(),
        caption: "qmin 5 ms, qth 30 ms, largest observed delay 100 ms. HD draws per ACK (pmax 0.02), CHD per RTT (pmax 0.25) with the same function.".to_owned(),
        x: Axis::new("queueing delay q (ms)"),
        y: Axis::new("g(q) / pmax"),
        series: vec![Series::new("g(q) / pmax", Style::Line, points.collect::<Vec<_>>())],
        spans: vec![span(5.0, 30.0, "region A"), span(30.0, 100.0, "region B")],
        ..Chart::default()
    })
}

/// Fig. 2: rounds of rising delay, backoffs in regions A and B, then a loss in region B.
pub(super) fn shadow_window() -> Result<Chart, ParamError> {
    let mut conn = connection();
    let mut chd = Controller::new(params("chd", &[("qmax", 100_000)])?, &mut conn);
    let rounds = 40;
    let (backoffs, loss) = ([12, 20, 27], 34);
    let (mut cwnd, mut shadow, mut delay) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        // Base RTT in the first round, then delay rising through A (below 30 ms) into B.
        let q_us = if round == 0 { 0 } else { 4_000 + 2_000 * round };
        conn.ack_pos = conn.snd_pos.wrapping_add(1);
        conn.snd_pos = conn.ack_pos.wrapping_add(conn.cwnd_pkts);
        conn.outstanding_pkts = conn.cwnd_pkts;
        let random = if backoffs.contains(&round) { 0 } else { u32::MAX };
        let ack = Ack { rtt_us: BASE_US + q_us, acked_pkts: 1, random, ..Ack::default() };
        chd.on_rtt(&mut conn, &ack);
        if round == loss {
            conn.ssthresh_pkts = chd.ssthresh(&mut conn);
            conn.cwnd_pkts = conn.ssthresh_pkts;
        } else {
            chd.on_ack(&mut conn, &ack);
            debug_assert_eq!(conn.notes & NOTE_DELAY_BACKOFF != 0, backoffs.contains(&round));
        }
        debug_assert!(conn.ssthresh_pkts < SSTHRESH_INFINITE);
        cwnd.push((f64::from(round), f64::from(conn.cwnd_pkts)));
        shadow.push((f64::from(round), f64::from(chd.observe()[2])));
        delay.push((f64::from(round), f64::from(q_us) / 1e3));
    }
    Ok(Chart {
        title: "Shadow window s and congestion window w".to_owned(),
        caption: format!(
            "Round delays rise from region A into region B (from round 14 on); the draws make the delay backoffs come in rounds {backoffs:?}; a loss comes in round {loss}: w becomes s/2 instead of w/2 (eq. 4)."
        ),
        x: Axis::new("round (RTT)"),
        y: Axis { min: Some(0.0), ..Axis::new("packets; ms for the delay") },
        series: vec![
            Series::new("congestion window w", Style::LineMarks, cwnd),
            Series::new("shadow window s", Style::LineMarks, shadow),
            Series::new("round delay h (ms)", Style::Dashed, delay),
        ],
        ..Chart::default()
    })
}

/// An ACK for one packet that measured an RTT.
fn sample(rtt_us: i32) -> Ack {
    Ack { rtt_us, acked_pkts: 1, ..Ack::default() }
}

/// H-TCP's increase per RTT, `elapsed_s` after a congestion event; `form` is a choice of the
/// algorithm's parameter `alpha_form`.
pub(super) fn htcp_alpha(form: &str, elapsed_s: f64) -> Result<f64, String> {
    let found = algorithm("htcp").ok_or("no such algorithm: `htcp`")?;
    let param = Params::find(found, "alpha_form").map_err(|e| e.to_string())?;
    let choice = param.choices().iter().position(|c| *c == form);
    let choice = choice.ok_or_else(|| format!("`alpha_form` has no choice `{form}`"))?;
    let params = params("htcp", &[("alpha_form", choice as u64)]).map_err(|e| e.to_string())?;
    let mut conn = Conn { now_us: 1_000_000, ..connection() };
    let mut htcp = Controller::new(params, &mut conn);
    conn.now_us += (elapsed_s.clamp(0.0, 1e9) * 1e6).round() as u64;
    htcp.on_rtt(&mut conn, &sample(BASE_US));
    htcp.on_ack(&mut conn, &sample(BASE_US));
    Ok(f64::from(htcp.observe()[0]) / 1e3)
}

/// Probability with which `name` reduces its window for a queueing delay of `q_ms`, with default
/// parameters but no smoothing of the delay: the draws that do, of all.
pub(super) fn response(name: &str, q_ms: f64) -> Result<f64, String> {
    let unsmoothed: &[(&str, u64)] = match name {
        "ftcp" | "pert" | "mpert" => &[("srtt_weight", 0)],
        _ => &[],
    };
    let params = params(name, unsmoothed).map_err(|e| e.to_string())?;
    // A window far above any estimate of the bandwidth share.
    let mut conn = Conn { now_us: 1_000_000, cwnd_pkts: 100_000, ..connection() };
    let mut controller = Controller::new(params, &mut conn);
    for _ in 0..100 {
        conn.now_us += 1000;
        (conn.ack_pos, conn.snd_pos) = (conn.ack_pos + 1, conn.snd_pos + 1);
        let base = Ack { random: u32::MAX, ..sample(BASE_US) };
        controller.on_rtt(&mut conn, &base);
        controller.on_ack(&mut conn, &base);
    }
    conn.now_us += 1000;
    let rtt_us = BASE_US + (q_ms.clamp(0.0, 1e6) * 1e3).round() as i32;
    let responds = |random: u32| {
        let (mut conn, mut controller) = (conn, controller.clone());
        let ack = Ack { random, ..sample(rtt_us) };
        controller.on_rtt(&mut conn, &ack);
        controller.on_ack(&mut conn, &ack);
        conn.notes & NOTE_DELAY_BACKOFF != 0
    };
    // All draws below `low` do, none from `high` on.
    let (mut low, mut high) = (0_u64, 1 << 32);
    while low < high {
        let middle = low + (high - low) / 2;
        if responds(middle as u32) { low = middle + 1 } else { high = middle }
    }
    Ok(low as f64 / 4_294_967_296.0)
}
